"""Attacks on parsers: hostile inputs drawn by Hypothesis, and what a parser may do with each of them.

A parser may return a valid result, or raise InputError with a message that names the file or the setting. Any other error fails
the test. So does a result that is not valid, memory without bound, and anything left in the folder after a refusal.
"""

import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

from clailearn.errors import InputError
from support.repository import contents, lay

SCALE = float(os.environ.get("CLAI_HOSTILE_SCALE", "0.3"))
"""Multiplies the number of cases of each parser; 1 for a longer search than that of continuous integration."""
MEMORY = 2**30
"""Bytes of address space that a parser may add. The valid inputs need a hundredth of it."""
OUT = "out"
"""Name of the folder that a parser may leave after a valid result."""

NUMBERS = (
    "", "0", "-1", "1", "7", "256", "65536", "99999999", "-9999999", "1e308", "-1e308", "1e999", "1e-320", "nan", "inf",
    "-inf", "NaN", "0x10", "1_0", "1,5", "--1", "+", ".", "1.5", "9" * 30, "\u0663", "True", "None",
)  # fmt: skip
"""Texts in the place of a number."""
TEXTS = (
    *NUMBERS, "a", "\0", "\n", "\r\n", '"', "'", "|", ";", ",", "\t", "\ufeff", "\u202e", "\x1b[2J", "\udc80", "\xff",
    "=cmd()", "%s%n", "{0}", "../..", "/etc/passwd", "' OR 1=1 --", "x" * 5000,
)  # fmt: skip
"""Texts in the place of a text."""
INTEGERS = tuple(number.to_bytes(8, "little") for number in (1, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1))
"""Bytes in the place of a length or an address."""

# Hypothesis draws constants of the modules that are loaded, too. The inputs would depend on the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, head: int = 256) -> bytes:
    """Return the bytes after one to four accidents, two thirds of them in the first `head` or the last 128 bytes."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        end = len(data)
        # Not `one_of`: it joins equal strategies where a cache still has the first, so that draws would depend on earlier tests.
        low, high = draw(st.sampled_from(((0, min(head, end)), (max(0, end - 128), end), (0, end))))
        at, length = draw(st.integers(low, high)), draw(st.sampled_from((0, 1, 2, 4, 16, 128, 1024, len(whole))))
        kind = draw(st.sampled_from(("nothing", "zeros", "twice", "text", "integer", "bytes")))
        instead = {"nothing": b"", "zeros": bytes(min(length, 1024)), "twice": 2 * data[at : at + length]}
        if kind == "text":
            instead[kind] = draw(st.sampled_from(TEXTS)).encode("utf-8", "surrogateescape")
        elif kind == "integer":
            instead[kind] = draw(st.sampled_from(INTEGERS))
        elif kind == "bytes":
            instead[kind] = draw(st.binary(min_size=1, max_size=8))
        data[at : at + length] = instead[kind]
    return bytes(data)


def some_damaged(files: Mapping[str, bytes]) -> SearchStrategy[dict[str, bytes]]:
    return st.sampled_from(sorted(files)).flatmap(lambda n: damaged(files[n]).map(lambda d: {**files, n: d}))


@contextmanager
def within_memory() -> Iterator[None]:
    """Let allocations fail that would add more than MEMORY to the address space of the process."""
    statm = Path("/proc/self/statm")
    if not statm.exists():  # macOS has neither it nor the limit
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def attack(
    folder: Path,
    strategy: SearchStrategy[Mapping[str, bytes]],
    parse: Callable[[Path], object],
    *,
    valid: Mapping[str, bytes],
    named: Sequence[str],
    cases: int,
) -> None:
    """Let a parser read `cases` inputs, each in an empty folder.

    Args:
        folder: where inputs are laid.
        strategy: of the inputs, the files by name.
        parse: reads what lies in the folder. It may leave its result in the folder `out` there, and raises AssertionError for
            a result that is not valid.
        valid: an input that must be accepted, so that the attack is not on a closed door.
        named: texts of which a refusal must name one: the file, or the key of the setting.
    """
    place, number, refused = folder / "case", 0, 0

    def refuses(case: Mapping[str, bytes]) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        lay(place, case)
        before = contents(place)
        try:
            parse(place)
        except InputError as error:
            if not any(name in str(error) for name in named):
                raise AssertionError(f"the message names none of {', '.join(named)}") from error
            if contents(place) != before:
                raise AssertionError("a refusal has changed the folder") from error
            return True
        left = {name: content for name, content in contents(place).items() if not name.startswith(f"{OUT}/")}
        assert left == before, "more than the result has changed"
        return False

    @settings(
        max_examples=round(cases * SCALE), derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(strategy)
    def each(case: Mapping[str, bytes]) -> None:
        nonlocal number, refused
        number += 1
        refused += refuses(case)

    assert not refuses(valid), "the valid input was refused"
    with within_memory():
        each()
    assert 0 < refused < number, f"refused {refused} of {number} inputs, which are all alike to it"
