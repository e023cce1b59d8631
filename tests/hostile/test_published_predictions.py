"""Published predictions are read without trust."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from replication.experiments.predictions import load_predictions, load_samples
from support.damage import NAMES, damaged
from support.hostile import Attack
from support.predictions import stored_small

ODD: tuple[Any, ...] = (
    np.zeros(3), np.zeros((2, 2), np.uint8), np.float64("nan"), np.float64(-1), np.float64(0), np.zeros(0, np.uint8),
    np.full(480, 255, np.uint8), np.zeros(10, np.float32), np.array(["x"]), np.array([1j]), np.asfortranarray(np.ones((2, 3))),
)  # fmt: skip
HEADERS = (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
    b"{'descr': '|O', 'fortran_order': False, 'shape': ()}",
    b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
    b"{'descr': '|u1', 'fortran_order': False, 'shape': (True,)}",
    b"{'descr': '|u1', 'fortran_order': False, 'shape': ('a',)}",
    b"{}",
    b"[" * 2000,
    b"__import__('os').system('true')",
    b"{'descr': ('<f8', (2**40,)), 'fortran_order': False, 'shape': (1,)}",
)


def packed(values: Any) -> bytes:
    """Return an array as `.npy`."""
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def stating(header: bytes) -> bytes:
    """Return an `.npy` with this header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


def zip_of(parts: dict[str, bytes]) -> bytes:
    """Return a zip of files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part)
    return content.getvalue()


REPLACEMENTS = [packed(odd) for odd in ODD] + [stating(header) for header in HEADERS]


@st.composite
def attacked(draw: st.DrawFn, parts: dict[str, bytes]) -> bytes:
    """Return an archive damaged as a whole or in a member, or with members left out, renamed or replaced."""
    kind = draw(st.sampled_from(("bytes", "replaced", "inside", "left out", "renamed")))
    name = draw(st.sampled_from(sorted(parts)))
    others = {other: part for other, part in parts.items() if other != name}
    if kind == "bytes":
        return draw(damaged(zip_of(parts)))
    if kind == "left out":
        return zip_of(others)
    if kind == "renamed":
        return zip_of(others | {draw(st.sampled_from((*NAMES, name.upper()))): parts[name]})
    content = draw(st.sampled_from(REPLACEMENTS)) if kind == "replaced" else draw(damaged(parts[name], head=140))
    return zip_of({**parts, name: content})


@pytest.mark.parametrize("classes", [2, 4])
def test_predictions(attack: Attack, classes: int) -> None:
    files = stored_small(attack.folder, classes)
    whole = {name: zip_of(parts) for name, parts in files.items()}

    def lay(folder: Path, contents: dict[str, bytes]) -> None:
        (folder / "samples.npz").write_bytes(contents["samples"])
        (folder / "predictions_gp.npz").write_bytes(contents["runs"])

    def parse(folder: Path) -> None:
        samples = load_samples(folder / "samples.npz", classes)
        for replicate, run in load_predictions(folder / "predictions_gp.npz", samples, classes):
            assert replicate.startswith("seed")
            for part in (run.score, run.probability, run.calibrated):
                assert np.isfinite(part).all()
            assert ((run.probability >= 0) & (run.probability <= 1)).all()

    attack(
        "predictions (npz)",
        st.sampled_from(("samples", "runs")).flatmap(
            lambda name: attacked(files[name]).map(lambda content: {**whole, name: content})
        ),
        lay,
        parse,
        valid=whole,
        named=("samples.npz", "predictions_gp.npz"),
        cases=1000,
    )
