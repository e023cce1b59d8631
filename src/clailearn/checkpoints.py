"""Checkpoints: states on disk with which an interrupted training continues, to the same end as an uninterrupted one.

A training saves its state after each epoch. A new file replaces the old one whole, so a kill during writing leaves the old one.
On a request to stop (SIGTERM, which schedulers send before they kill; SIGINT, which Ctrl-C sends) the process ends with status
`STOPPED`. The next one repeats the epoch that was cut off.
"""

import contextlib
import io
import logging
import os
import secrets
import signal
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch

logger = logging.getLogger("clailearn")

STOPPED = 75
"""Exit status of a process that ended on a request to stop: EX_TEMPFAIL of sysexits.h, try again later."""


class Checkpoint:
    """File with the state of one training. As a context manager, it also ends the process on a request to stop.

    Attributes:
        earlier: wall and processor time (s) that interrupted processes spent on the state that was resumed.
        epoch_seconds: wall time of the steps of each epoch, those of interrupted processes first.

    Args:
        fingerprint: identifies data, settings, code and device; a training resumes from a state with the same one only.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.earlier = (0.0, 0.0)
        self.epoch_seconds: list[float] = []
        self._after = ""  # place of the state on disk, in words
        self._started = time.monotonic()
        self._handlers: dict[int, Any] = {}  # of signals, before this context

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        logger.info("%s: stopped; the last state %s; the same command goes on from there", name, self.where())
        raise SystemExit(STOPPED)

    def where(self) -> str:
        """Return which state is saved and where, as words to follow "the last state"."""
        return f"is that after {self._after}, in {self.path}" if self._after else "is the start: nothing was saved yet"

    def load(self) -> dict[str, Any] | None:
        """Return the saved state, on the devices that it came from; None where no state fits."""
        if not self.path.exists():
            return None
        try:
            with zipfile.ZipFile(self.path) as archive:
                # torch.load does not look at the checksums, and would go on with other numbers.
                if damaged := archive.testzip():
                    raise ValueError(f"{damaged} has another checksum than when it was written")
            state: dict[str, Any] = torch.load(self.path, weights_only=True)
        except Exception as error:  # A damaged file can raise almost any error.
            logger.warning("%s cannot be read here (%s: %s): starting anew", self.path, type(error).__name__, error)
            return None
        if state["fingerprint"] != self.fingerprint:
            logger.info("%s belongs to other data, settings, code or device: starting anew", self.path)
            return None
        self._after, self.earlier, self.epoch_seconds = state["after"], state["spent"], state["epoch_seconds"]
        logger.info("resumed after %s from %s", self._after, self.path)
        return state

    def save(self, after: str, state: Mapping[str, Any]) -> None:
        """Replace the saved state; `after` is the place that the training has reached, in words."""
        header = {
            "fingerprint": self.fingerprint,
            "after": after,
            "spent": (self.earlier[0] + time.monotonic() - self._started, self.earlier[1] + time.process_time()),
            "epoch_seconds": self.epoch_seconds,
        }
        content = io.BytesIO()
        torch.save({**header, **state}, content)
        write_whole(self.path, content.getbuffer())
        self._after = after


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that at any moment its content is either the old or the new one.

    Raises OSError where there is no room, for instance; the old file stays, and no fragment of the new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for fragment in path.parent.glob(f".{path.name}.*.part"):  # of an interrupted write
        fragment.unlink(missing_ok=True)
    # A random name: a process that has lost contact with its scheduler may still be writing the same file.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


@contextlib.contextmanager
def seeded_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators of the CPU and of a device, from which dropout and initialisation draw; restore them after.

    `torch.manual_seed` would seed those of all GPUs.
    """
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus, device_type="cuda"):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield
