"""Checkpoints: states on disk with which an interrupted fit continues, to the same end as an uninterrupted one.

A fit offers its state to `Checkpoint.offer` after each step. The checkpoint writes it once `seconds` have passed since the last
time. On a request to stop (SIGTERM, which schedulers send before they kill; SIGINT, which Ctrl-C sends) it writes at once, and
the process exits with `STOPPED`. A new file replaces the old one whole, so a kill during writing leaves the old one.
"""

import contextlib
import io
import logging
import os
import secrets
import signal
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor

logger = logging.getLogger("clai")

STOPPED = 75
"""Exit status of a process that saved its state on a request to stop: EX_TEMPFAIL of sysexits.h, try again later."""

PATIENCE = 5.0
"""Seconds from a request to stop until the running step is abandoned. Slurm and Kubernetes kill 30 s after SIGTERM."""

Step = TypeVar("Step")


class Checkpoint:
    """File with the state of one fit. As a context manager, it also listens for requests to stop.

    Args:
        path: path of the file.
        fingerprint: identifies data, settings, code and device; a fit resumes from a state with the same one only.
        seconds: time between two writes.
    """

    def __init__(self, path: Path, fingerprint: str, seconds: float) -> None:
        self.path, self.fingerprint, self.seconds = path, fingerprint, seconds
        self.last = ""  # place of the state on disk, in words
        self.earlier = 0.0  # seconds that interrupted processes spent on that state
        self.earlier_cpu = 0.0  # their processor time, in seconds
        self.epochs: list[dict[str, float]] = []  # `training` and `validation` seconds, where the fit has epochs
        self.resumed: list[str] = []  # the places from which this process and earlier ones went on
        self._started = time.monotonic()
        self._due = self._started + seconds
        self._stop: str | None = None
        self._handlers: dict[int, Any] = {}  # of signals, before this context

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers[number] = signal.signal(number, self._request_stop)
        self._handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._abandon)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _request_stop(self, number: int, _: FrameType | None) -> None:
        if self._stop is None:
            self._stop = signal.Signals(number).name
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def _abandon(self, _number: int, _: FrameType | None) -> None:
        logger.info("%s: a step takes longer than %g s and is abandoned", self._stop, PATIENCE)
        self._leave()

    def _leave(self) -> None:
        logger.info("%s: stopped; the last state %s; the same command goes on from there", self._stop, self.where())
        raise SystemExit(STOPPED)

    def where(self) -> str:
        """Return which state is saved and where, as words to follow "the last state"."""
        if self.last:
            return f"is that after {self.last}, in {self.path}"
        return f"is in {self.path}" if self.path.exists() else "is the start: nothing was saved yet"

    def load(self) -> dict[str, Any] | None:
        """Return the saved state, on the devices that it came from; None where no state fits.

        Raises:
            OSError: the file cannot be read, which says nothing about the state in it.
        """
        if not self.path.exists():
            return None
        content = self.path.read_bytes()
        try:
            state = _unpacked(content)
            if state["fingerprint"] != self.fingerprint:
                logger.info("%s belongs to other data, settings, code or device: starting anew", self.path)
                return None
            last, spent, spent_cpu = state["after"], state["spent"], state["spent_cpu"]
            epochs, resumed = state["epochs"], [*state["resumed"], last]
        except MemoryError:
            raise
        except Exception as error:  # A damaged file can raise almost any error.
            logger.warning("%s cannot be read here (%s: %s): starting anew", self.path, type(error).__name__, error)
            return None
        self.last, self.earlier, self.earlier_cpu, self.epochs, self.resumed = last, spent, spent_cpu, epochs, resumed
        logger.info("resumed after %s from %s", self.last, self.path)
        return state

    def times(self) -> dict[str, list[float] | list[str]]:
        """Return what the record of a fit by epochs says of its time.

        `epoch_seconds` and `validation_seconds` hold the wall time (s) of each epoch's steps and of its validation. They count
        what became part of the result; steps that an interruption undid are not in them. `resumed_after` holds the place of each
        resumption, in words; it is empty for a fit that ran through.
        """
        kinds = {"epoch_seconds": "training", "validation_seconds": "validation"}
        seconds = {name: [round(epoch[kind], 4) for epoch in self.epochs] for name, kind in kinds.items()}
        return {**seconds, "resumed_after": self.resumed}

    def offer(self, after: str, state: Callable[[], Mapping[str, Any]]) -> None:
        """Save the state that `state` returns, if it is time to.

        Args:
            after: place that the fit has reached, in words.

        Raises:
            SystemExit: with `STOPPED`, after saving, if the process has received a request to stop.
        """
        if self._stop is None and time.monotonic() < self._due:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        content = io.BytesIO()
        spent = self.earlier + time.monotonic() - self._started
        spent_cpu = self.earlier_cpu + time.process_time()
        header = {"fingerprint": self.fingerprint, "after": after, "spent": spent, "spent_cpu": spent_cpu}
        torch.save({**header, "epochs": self.epochs, "resumed": self.resumed, **state()}, content)
        write_whole(self.path, content.getbuffer())
        self.last = after
        self._due = time.monotonic() + self.seconds
        if self._stop is not None:
            self._leave()


def _unpacked(content: bytes) -> dict[str, Any]:
    """Return the state that a file holds; a damaged file can raise almost any error."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # torch.load does not look at the checksums, and would go on with other numbers.
        if damaged := archive.testzip():
            raise ValueError(f"{damaged} has another checksum than when it was written")
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return state


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that at any moment its content is either the old or the new one.

    Raises:
        OSError: there is no room, for instance; the old file stays, and no fragment of the new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_parts(path)
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


def _remove_parts(path: Path) -> None:
    """Delete the fragments that interrupted writes of a file have left."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)


class Draws(Generic[Step], Iterator[Step]):
    """The steps of an epoch, from which a later process can continue in the middle.

    Making steps draws orders of the data, before the first step or between steps. Performing steps draws augmentation from the
    same generator. The state therefore holds the place, the generator's state, and the generator's state before the last order
    was drawn.

    Args:
        steps: makes the steps, drawing from the generator.
        generator: of orders and augmentation.
        state: `state()` of an earlier `Draws` of the same steps; None for a new epoch.
    """

    def __init__(self, steps: Iterator[Step], generator: torch.Generator, state: Mapping[str, Any] | None) -> None:
        self.steps, self.generator = steps, generator
        self.position, self.ordered, self.order = 0, 0, generator.get_state()
        if state is not None:
            self.position, self.ordered, self.order = state["position"], state["ordered"], state["order"]
            for _ in range(self.ordered):
                next(steps)
            generator.set_state(self.order)
            for _ in range(self.position - self.ordered):
                next(steps)
            generator.set_state(state["generator"])

    def __next__(self) -> Step:
        before = self.generator.get_state()
        step = next(self.steps)
        if not torch.equal(before, self.generator.get_state()):
            self.ordered, self.order = self.position, before
        self.position += 1
        return step

    def state(self) -> dict[str, Any]:
        """Return the state from which `Draws` continues after the last step, once that step has been performed."""
        generator = self.generator.get_state()
        return {"position": self.position, "ordered": self.ordered, "order": self.order, "generator": generator}


def global_generators(device: torch.device) -> dict[str, Tensor]:
    """Return the states of torch's global generators, from which dropout and initialisation draw."""
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


@contextmanager
def seeded_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators of the CPU and of a device, and restore them at the end.

    `torch.manual_seed` would seed those of all GPUs, and `torch.random.fork_rng` start each GPU to save its state.
    """
    before = global_generators(device)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    try:
        yield
    finally:
        set_global_generators(before, device)


def set_global_generators(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Set torch's global generators to states of `global_generators`."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
