"""A headless Chromium, driven through its own protocol over a pipe (no driver, no network)."""

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One tab.

    `complaints` collects uncaught exceptions, messages of the console's error level and failed or outside requests.
    """

    def __init__(self, folder: Path, width: int = 1400, height: int = 900) -> None:
        self.complaints: list[str] = []
        self.number = 0
        self.contexts: dict[int, dict[str, Any]] = {}
        commands, self.write = os.pipe()
        self.read, answers = os.pipe()
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        arguments += ["--remote-debugging-pipe", f"--user-data-dir={folder}", f"--window-size={width},{height}"]
        # Chromium reads commands from descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}', executable() or "chromium", *arguments],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self.waiting = b""
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command of the DevTools protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._notice(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            part = os.read(self.read, 2**20)
            if not part:
                raise ConnectionError("Chromium has gone")
            self.waiting += part
        message, _, self.waiting = self.waiting.partition(b"\0")
        return dict(json.loads(message))

    def _notice(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"].get("exception", given["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and given["type"] == "error":
            self.complaints.append(str([part.get("value", part.get("description")) for part in given["args"]]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.complaints.append(str(given["entry"]))
        elif method == "Network.requestWillBeSent" and given["request"]["url"].startswith(("http:", "https:")):
            self.complaints.append(f"request to {given['request']['url']}")
        elif method == "Runtime.executionContextCreated":
            self.contexts[given["context"]["id"]] = given["context"]
        elif method == "Runtime.executionContextDestroyed":
            self.contexts.pop(given["executionContextId"], None)
        elif method == "Runtime.executionContextsCleared":
            self.contexts.clear()

    def open(self, path: Path) -> None:
        """Load a file, as a double click would."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def run(self, code: str, frame: bool = False) -> Any:
        """The value of a JavaScript expression in the page, or in the frame inside it that was made last."""
        chosen: dict[str, Any] = {}
        if frame:
            self.call("Runtime.evaluate", expression="0")
            chosen = {"contextId": max(self.contexts, default=0)}
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, **chosen)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{code}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, code: str, frame: bool = False, seconds: float = 60) -> Any:
        """Wait for an expression to be true and return its value; what it asks for may not be there at first."""
        end = time.monotonic() + seconds
        seen: Any = None
        while time.monotonic() < end:
            try:
                seen = self.run(code, frame)
            except RuntimeError as error:
                seen = error
            else:
                if seen:
                    return seen
            time.sleep(0.1)
        raise AssertionError(f"still not true: {code}: {seen}")

    def click(self, text: str, selector: str = "a, button, li, span, td") -> None:
        """Click the innermost element with this text."""
        find = f"[...document.querySelectorAll('{selector}')].filter(x => x.textContent.trim() === {json.dumps(text)}).pop()"
        self.until(f"!!{find}")
        self.run(f"{find}.click()")

    def screenshot(self, path: Path) -> None:
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
