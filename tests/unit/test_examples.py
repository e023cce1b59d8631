"""The examples of the gallery run, and classify well."""

import runpy
from pathlib import Path

import pytest

from support.repository import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("plot_*.py"))
HARDER = {
    "plot_table_with_groups": 0.65,
    "plot_image_folder": 0.75,
    "plot_signal_windows": 0.8,
}
"""Least accuracy of these; 0.88 of the others."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "from mapie" in example.read_text(encoding="utf-8"):
        pytest.importorskip("mapie", reason="only the requirements of the documentation have it")
    monkeypatch.setattr("sys.argv", [str(example)])
    accuracy = runpy.run_path(str(example))["accuracy"]
    assert accuracy > HARDER.get(example.stem, 0.88)
