"""A file server on loopback with the faults that real ones have, and settings for fetching from it."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from replication.datasets.download import DownloadLimits

ONCE = DownloadLimits(retries=0, pause=0, timeout=5, parallel=1)
"""One attempt, no waiting."""


def entry(source: str, **further: Any) -> dict[str, Any]:
    """A dataset's entry in config.yaml, with what decides on its files."""
    whole = {"source": source, "path": None, "subjects": None, "nights": "all"}
    return whole | {"medmnist_flag": "pathmnist", "medmnist_size": 28} | further


@dataclass
class Server:
    """What is served, by path, and the faults of the next requests for each path, one a request."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and range asked for, in order."""
    released: threading.Event = field(default_factory=threading.Event)
    together: int = 0
    most_together: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    def folder(self, folder: Path, below: str = "") -> None:
        """Serve all files of a folder."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.files[f"{below}{path.relative_to(folder).as_posix()}"] = path.read_bytes()

    def ranges(self, name: str) -> list[str | None]:
        return [asked for path, asked in self.requests if path == name]


class Handler(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        state: Server = self.server.state
        name = self.path.lstrip("/").partition("?")[0]
        with state.lock:
            state.requests.append((name, self.headers.get("Range")))
            fault = state.faults.get(name, []).pop(0) if state.faults.get(name) else ""
            state.together += 1
            state.most_together = max(state.together, state.most_together)
        try:
            self.answer(state, name, fault)
        finally:
            with state.lock:
                state.together -= 1

    def answer(self, state: Server, name: str, fault: str) -> None:
        if fault.isdigit() or name not in state.files:
            self.send_error(int(fault) if fault else 404)
            return
        if fault.startswith("redirect "):
            self.send_response(302)
            self.send_header("Location", state.url(fault.split()[1]))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = state.files[name]
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and fault != "ignore range" else 0
        if start >= len(content) > 0 and asked:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            shown = 0 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        body = content[start:]
        if fault != "no length":
            self.send_header("Content-Length", str(len(body)))
        if fault == "gzip":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if fault == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            return
        if fault == "stall":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            state.released.wait(20)
            return
        if fault == "slow":
            state.released.wait(0.2)
        self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Server]:
    """A server on 127.0.0.1 while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        state = Server(f"http://127.0.0.1:{running.server_address[1]}")
        running.state = state  # type: ignore[attr-defined]
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            yield state
        finally:
            state.released.set()
            running.shutdown()
