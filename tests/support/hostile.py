"""Attacks on parsers: hostile inputs drawn by Hypothesis, and what a parser may do with each of them.

A parser may return a valid result, or raise InputError with a message that names the file or the setting. Any other error is an
escape. So is a result that is not valid, memory or processor time without bound, anything left in the folder after a refusal, a
file written elsewhere, and a command or connection of any kind.
"""

import os
import resource
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

from clai.errors import LONGEST_MESSAGE, InputError

Case = TypeVar("Case")

SCALE = float(os.environ.get("CLAI_HOSTILE_SCALE", "1"))
"""Multiplies the number of cases of each parser; 1 in continuous integration."""
SEED = os.environ.get("CLAI_HOSTILE_SEED")
"""Seed of other inputs than those of continuous integration."""
MEMORY = 2**30
"""Bytes of address space that a case may add. The valid inputs need a hundredth of it."""
SECONDS = 20.0
"""Processor time that a case may take. The valid inputs need less than one."""
OUT = "out"
"""Name of the folder that a parser may leave after a valid result."""
FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.kill", "os.link", "os.symlink", "os.startfile",
    "pty.spawn", "subprocess.Popen", "socket.connect", "socket.bind", "socket.getaddrinfo", "ftplib.connect", "urllib.Request",
)  # fmt: skip
"""Audit events (docs.python.org/3/library/audit_events.html) of commands, connections and links."""


# Hypothesis draws constants of the modules that are loaded, too. The inputs would depend on the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants


class Escape(AssertionError):
    """The parser did what no input may make it do."""


@dataclass
class Watch:
    """What the process did, by audit events, while `folder` was not None."""

    folder: Path | None = None
    seen: list[str] = field(default_factory=list)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a forbidden event, or a file opened for writing outside the folder. It must not raise."""
        if self.folder is None:
            return
        if event in FORBIDDEN:
            self.seen.append(f"{event} {arguments!r:.200}")
        elif (
            event == "open" and isinstance(arguments[0], str) and arguments[2] & (os.O_WRONLY | os.O_CREAT | os.O_RDWR)
        ):
            path = os.path.realpath(arguments[0])
            if not path.startswith(str(self.folder)):
                self.seen.append(f"open {path} for writing")


WATCH = Watch()
sys.addaudithook(WATCH.hook)


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Raise Escape after the block for a command, a connection, or a file written outside `folder`."""
    WATCH.seen.clear()
    WATCH.folder = folder
    try:
        yield
    finally:
        WATCH.folder = None
        if WATCH.seen:
            raise Escape(f"the input made the process do this: {'; '.join(WATCH.seen[:3])}")


@contextmanager
def within_time() -> Iterator[None]:
    """Raise Escape when the block takes more processor time than SECONDS; waiting for other processes does not count."""

    def late(_: int, __: FrameType | None) -> None:
        WATCH.seen.append(f"take more than {SECONDS} s of processor time")  # The parser may catch what is raised here.
        raise Escape(WATCH.seen[-1])

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def within_memory() -> Iterator[None]:
    """Let allocations fail that would add more than MEMORY to the address space of the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of everything below a folder, by name; both are 0 for a folder."""
    states = {path.relative_to(folder).as_posix(): path.lstat() for path in folder.rglob("*")}
    return {name: (0, 0) if stat.S_ISDIR(s.st_mode) else (s.st_size, s.st_mtime_ns) for name, s in states.items()}


def check_refusal(error: InputError, named: Sequence[str]) -> None:
    """Raise Escape unless the message names one of `named`, can be printed, and no lack of memory is behind it."""
    message, behind = str(error), error.__cause__ or error.__context__
    if not any(name in message for name in named):
        raise Escape(f"the message names none of {', '.join(named)}: {message}") from error
    if len(message) > LONGEST_MESSAGE or not message.replace("\n", "").isprintable():
        raise Escape(f"the message is too long or cannot be printed: {message!r:.500}") from error
    while behind is not None:
        if isinstance(behind, MemoryError):
            raise Escape("the input asked for more memory than there may be, and was refused only for want of it")
        behind = behind.__cause__ or behind.__context__


@dataclass
class Attack:
    """Attacks on parsers from one test, in `folder`."""

    folder: Path

    def __call__(
        self,
        parser: str,
        strategy: SearchStrategy[Case],
        lay: Callable[[Path, Case], None],
        parse: Callable[[Path], object],
        *,
        valid: Case,
        named: Sequence[str],
        cases: int,
    ) -> None:
        """Let a parser read `cases` inputs, each in an empty folder.

        Args:
            parser: its name in messages.
            strategy: of the inputs.
            lay: writes an input into the folder.
            parse: reads what lies in the folder. It may leave its result in the folder `out` there, and raises AssertionError for
                a result that is not valid.
            valid: an input that must be accepted, so that the attack is not on a closed door.
            named: texts of which a refusal must name one: the file, or the key of the setting.

        Raises:
            Escape: as the module says; Hypothesis shows the smallest input that it finds.
        """
        number = refused = 0
        self.warm_up(lay, parse, valid)
        if self.attempt(lay, parse, valid, named):
            raise AssertionError(f"{parser}: the valid input was refused")

        @settings(
            max_examples=round(cases * SCALE), derandomize=SEED is None, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate, Phase.shrink],
        )  # fmt: skip
        @given(strategy)
        def each(case: Case) -> None:
            nonlocal number, refused
            number += 1
            refused += self.attempt(lay, parse, case, named)

        if SEED is not None:
            each = seed(int(SEED))(each)
        with within_memory():
            each()
        assert number >= round(cases * SCALE), f"{parser}: {number} cases, expected {cases}: the strategy has too few"
        assert 0 < refused < number, f"{parser}: refused {refused} of {number} inputs, which are all alike to it"

    def place(self) -> Path:
        """Return an empty folder for an input."""
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def warm_up(self, lay: Callable[[Path, Case], None], parse: Callable[[Path], object], valid: Case) -> None:
        """Parse the valid input unwatched: libraries that are imported on first use start processes and write files."""
        place = self.place()
        lay(place, valid)
        parse(place)

    def attempt(
        self, lay: Callable[[Path, Case], None], parse: Callable[[Path], object], case: Case, named: Sequence[str]
    ) -> bool:
        """Return whether the parser refuses an input; raises Escape, or the parser's own error."""
        place = self.place()
        lay(place, case)
        before = contents(place)
        refused = False
        with within_time(), watched(place):
            try:
                parse(place)
            except InputError as error:
                check_refusal(error, named)
                refused = True
        left = {name for name, state in contents(place).items() if before.get(name) != state}
        if not refused:
            left = {name for name in left if name.partition("/")[0] != OUT}
        if left or before.keys() - contents(place).keys():
            raise Escape(f"the folder has changed: {', '.join(sorted(left)) or 'input is gone'}")
        return refused
