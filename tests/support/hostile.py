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
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

from clailearn.errors import InputError
from support.repository import contents

SCALE = float(os.environ.get("CLAI_HOSTILE_SCALE", "0.3"))
"""Multiplies the number of cases of each parser; 1 for a longer search than that of continuous integration."""
MEMORY = 2**30
"""Bytes of address space that a parser may add. The valid inputs need a hundredth of it."""
OUT = "out"
"""Name of the folder that a parser may leave after a valid result."""

# Hypothesis draws constants of the modules that are loaded, too. The inputs would depend on the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants


@contextmanager
def within_memory() -> Iterator[None]:
    """Let allocations fail that would add more than MEMORY to the address space of the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
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
        place.mkdir()
        for name, content in case.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
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
