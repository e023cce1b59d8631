"""Settings, from files and from the command line: only what the schema allows gets through, whatever YAML can say."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from replication.runs.settings import (
    cells,
    dataset_settings,
    default_settings,
    load_settings,
    preparation_settings,
    read_yaml,
)
from support.damage import TEXTS, damaged, raw
from support.hostile import Attack

REPOSITORY = Path(__file__).parents[2]
DEFAULTS = default_settings(REPOSITORY)
OWN = b"""run: [cifar10]
data_dir: downloads
training: {epochs: 3, batch_size: 16}
datasets:
  cifar10:
    path: "mine.tar.gz"
    overrides: {seeds: [0, 1]}
"""
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
FRAGMENTS = (
    LAUGHS, "a: &a [*a]", "&a {a: *a}", "a: 2001-99-99", "a: 9999-99-99T99:99:99", "a: !!int x", "a: !!float x",
    "a: !!python/object/apply:os.system [touch e]",
    "a: !!binary x", "? {a: b}\n: c", "? [a]\n: b", "<<: 1", "<<: [1]", "a: !!timestamp x", "--- a\n--- b",
    "%YAML 9.9\n---\na: b", "%TAG ! tag:e\n---\na: b",
    "[" * 5000, "{a: " * 900, "- " * 3000, "a: " + "9" * 5000, "a: 0b", "a: 0x", "a: 1:99:99", "a: 1e", "a: .inf", "a: .nan",
    "a: ~", "~: a", "1: a", ".nan: a", "a:\n\tb: c",
    "a: |\n b\n c: d", "!!set {a}", "!!omap [a: b]", "!!pairs [a: b]", "a: !<x> b", "a: 'b", 'a: "\\xZZ"', "a: \"\\ud800\"",
    "a: \"\\U0010ffff\"", "@a", "`a", "a: b: c", "", "#", "null", "1", "- 1", "a", "\ufeffa: b",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([t for t in TEXTS if t != "\udc80"]),
    st.sampled_from(["all", "zero", "full", "hours", "gaussian", "cifar10", "clai-m", 0, 1, -1, 0.5, 1.0, [], {}]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(SCALARS.filter(lambda v: v.__hash__ is not None)), inner, max_size=3),
    ),
    max_leaves=5,
)


def places(settings: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every setting, blocks included."""
    inner = (
        [place for key, value in settings.items() for place in places(value, (*above, key))]
        if isinstance(settings, dict)
        else []
    )
    return [above, *inner] if above else inner


@st.composite
def overrides(draw: st.DrawFn) -> dict[Any, Any]:
    """Return settings of which one to three are replaced, or have another name."""
    result: dict[Any, Any] = {}
    for _ in range(draw(st.integers(1, 3))):
        *blocks, last = draw(st.sampled_from(PLACES))
        inner = result
        for block in blocks:
            below = inner.setdefault(block, {})
            inner = below if isinstance(below, dict) else {}  # an earlier replacement may be no block
        known: Any = DEFAULTS
        for block in (*blocks, last):
            known = known[block]
        near = (known + 1, known * 2, float(known)) if isinstance(known, int | float) else (known,)
        name = draw(st.sampled_from((last,) * 6 + (f"{last}s", last.upper(), 1, None)))
        inner[name] = draw(st.one_of(st.just(known), st.sampled_from(near), VALUES))
    return result


PLACES = places(DEFAULTS)


def use(settings: dict[str, Any]) -> None:
    """Do with settings that were accepted what the workflow does with them first."""
    for name in settings["datasets"]:
        merged = dataset_settings(settings, name)
        assert isinstance(merged["training"]["epochs"], int)
        preparation_settings(settings, name)
    for name in settings["studies"]:
        assert cells(settings, name)


def test_files_of_settings(attack: Attack) -> None:
    attack(
        "configuration (YAML)",
        st.one_of(
            damaged(OWN, head=len(OWN)),
            st.sampled_from(FRAGMENTS).map(raw),
            st.sampled_from(FRAGMENTS).flatmap(lambda text: damaged(raw(text)[:2000], head=40)),
            st.tuples(st.sampled_from(FRAGMENTS), st.integers(0, 5)).map(
                lambda t: b"\n".join([*OWN.split(b"\n")[: t[1]], raw(t[0]), *OWN.split(b"\n")[t[1] :]])
            ),
        ),
        lambda folder, content: (folder / "local.yaml").write_bytes(content),
        lambda folder: read_yaml(folder / "local.yaml"),
        valid=OWN,
        named=("local.yaml",),
        cases=2500,
    )


def test_values_of_settings(attack: Attack) -> None:
    """As `--config` gives them, or a file that was read."""
    given: list[dict[Any, Any]] = []
    attack(
        "configuration (--config values)",
        overrides(),
        lambda folder, values: given.append(values),
        lambda folder: use(load_settings(REPOSITORY, given[-1])),
        valid={"training": {"epochs": 3}},
        named=("config",),
        cases=400,
    )
