"""A file server on loopback, and settings for fetching from it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def entry(source: str, **further: Any) -> dict[str, Any]:
    """A dataset's entry in config.yaml, with what decides on its files."""
    whole = {"source": source, "path": None, "subjects": None, "nights": "all"}
    return whole | {"medmnist_flag": "pathmnist", "medmnist_size": 28} | further


@dataclass
class Server:
    """What is served, by path, how many of the next requests fail, and the paths that were asked for, in order."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    failing: int = 0
    requests: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        state: Server = self.server.state
        name = self.path.lstrip("/").partition("?")[0]
        state.requests.append(name)
        if state.failing or name not in state.files:
            state.failing = max(0, state.failing - 1)
            self.send_error(503 if name in state.files else 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(state.files[name])))
        # As some servers say of any .gz, where a client accepts it.
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(state.files[name])


@contextmanager
def serving() -> Iterator[Server]:
    """A server on 127.0.0.1 while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state = Server(f"http://127.0.0.1:{running.server_address[1]}")
        running.state = state  # type: ignore[attr-defined]
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            yield state
        finally:
            running.shutdown()
