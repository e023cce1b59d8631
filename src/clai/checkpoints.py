"""Checkpoints: what a long fit keeps on disk so that it may be interrupted at any moment and end as if it had not been.

A fit hands its state to `Checkpoint.offer` after each step. It is written when `seconds` have passed since the last time, and at
once when the process was asked to stop (SIGTERM, as schedulers send before they kill; SIGINT, as Ctrl-C does), which then leaves
with `STOPPED`. A file is replaced whole: a kill while writing leaves the one before.
"""

import contextlib
import io
import logging
import os
import pickle
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor

logger = logging.getLogger("clai")

STOPPED = 75
"""Exit status of a process that saved its state because it was asked to stop: EX_TEMPFAIL of sysexits.h, try again later."""

PATIENCE = 5.0
"""Seconds after which a step that has not ended is abandoned. Slurm kills 30 s after SIGTERM (KillWait), Kubernetes too."""

Step = TypeVar("Step")


class Checkpoint:
    """The file that holds the state of one fit. As a context, it also listens for requests to stop.

    Args:
        path: of the file.
        fingerprint: identifies data, settings, code and device; a state with another one is not resumed from.
        seconds: between two writes.
    """

    def __init__(self, path: Path, fingerprint: str, seconds: float) -> None:
        self.path, self.fingerprint, self.seconds = path, fingerprint, seconds
        self.last = ""  # what the file on disk holds, in words
        self.earlier = 0.0  # seconds that interrupted processes spent on what it holds
        self.earlier_cpu = 0.0  # their processor time, in seconds
        self._started = time.monotonic()
        self._due = self._started + seconds
        self._stop: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._asked)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._abandon)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _: FrameType | None) -> None:
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
        """What has been saved, and where, to follow the words "the last state"."""
        if self.last:
            return f"is that after {self.last}, in {self.path}"
        return f"is in {self.path}" if self.path.exists() else "is the start: nothing was saved yet"

    def load(self) -> dict[str, Any] | None:
        """The saved state, on the devices that it was saved from; None where there is none that fits."""
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            logger.warning("%s cannot be read here (%s): starting anew", self.path, error)
            return None
        if state["fingerprint"] != self.fingerprint:
            logger.info("%s belongs to other data, settings, code or device: starting anew", self.path)
            return None
        self.last, self.earlier, self.earlier_cpu = state["after"], state["spent"], state["spent_cpu"]
        logger.info("resumed after %s from %s", self.last, self.path)
        return state

    def offer(self, after: str, state: Callable[[], Mapping[str, Any]]) -> None:
        """Save the state that `state` gives, if it is time to.

        Args:
            after: the place that the fit has reached, in words.

        Raises:
            SystemExit: with `STOPPED`, after saving, if the process was asked to stop.
        """
        if self._stop is None and time.monotonic() < self._due:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        content = io.BytesIO()
        spent = self.earlier + time.monotonic() - self._started
        spent_cpu = self.earlier_cpu + time.process_time()
        header = {"fingerprint": self.fingerprint, "after": after, "spent": spent, "spent_cpu": spent_cpu}
        torch.save({**header, **state()}, content)
        write_whole(self.path, content.getbuffer())
        self.last = after
        self._due = time.monotonic() + self.seconds
        if self._stop is not None:
            self._leave()


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that at any moment it is either what it was or what it shall be.

    Raises OSError, with nothing left behind, where there is no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_parts(path)
    # A name of its own: a process that has lost contact with its scheduler may still be writing.
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
    """Delete what is left of writing a file where that was interrupted."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)


class Draws(Generic[Step], Iterator[Step]):
    """The steps of an epoch, such that a later process can go on in their middle.

    Making the steps draws orders of the data, at their start or between them; performing them draws augmentation from the same
    generator. So the state is the place, that of the generator, and that of the generator before the order in force was drawn.

    Args:
        steps: makes the steps, drawing from the generator.
        state: of an earlier `Draws` of the same steps.
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
        """What `Draws` takes to continue after the step given last, once that has been performed."""
        generator = self.generator.get_state()
        return {"position": self.position, "ordered": self.ordered, "order": self.order, "generator": generator}


def global_generators(device: torch.device) -> dict[str, Tensor]:
    """States of torch's own generators, from which dropout and initialisation draw."""
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def set_global_generators(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore what `global_generators` gave."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
