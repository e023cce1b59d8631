"""The real sources, where they are at hand: they are official, read whole, and prepared as they were for what is published."""

import json
import os
from pathlib import Path

import mne
import numpy as np
import pytest

from replication.datasets.files import matching
from replication.datasets.prepare import prepare
from replication.datasets.prepared import load
from replication.datasets.sleep_edf import MOVEMENT, UNSCORED, scored_epochs, stage_of
from replication.datasets.sources import obtain, read_sources, verify
from replication.runs.settings import load_settings, preparation_settings, source_settings
from support.copies import REPOSITORY

SETTINGS = load_settings(REPOSITORY)
TABLE = REPOSITORY / "workflow" / "config" / "data_sources.csv"


def place(variable: str) -> str:
    """The path that the environment names; skips the test without one."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"set {variable} to the official files")
    return path


@pytest.mark.parametrize("dataset", ["pathmnist", "cifar10", "challenge2019"])
def test_prepared_arrays_are_the_published_ones(tmp_path: Path, dataset: str) -> None:
    own = source_settings(SETTINGS, dataset) | {"path": place(f"CLAI_{dataset.upper()}")}
    raw = obtain(dataset, own, TABLE, tmp_path / "data", False)
    if dataset != "challenge2019":  # of whose records no checksum is published
        assert raw.version == read_sources(TABLE, dataset)[0].version
    prepare(raw, tmp_path / "prepared", preparation_settings(SETTINGS, dataset), SETTINGS["split_seed"])
    info = load(tmp_path / "prepared").info
    published = json.loads((REPOSITORY / f"results/published/{dataset}/evidence/dataset.json").read_text())
    if dataset == "cifar10":  # a copy as JPEG is published
        assert info["splits"] == published["splits"]
        np.testing.assert_allclose(
            info["normalisation"]["test"]["mean"], 255 * np.array([0.4942, 0.4851, 0.4504]), atol=0.02
        )
    else:
        assert info["arrays"] == published["arrays"]


def test_hypnograms_are_the_official_ones_and_are_read_whole() -> None:
    rows = {row.file: row for row in read_sources(TABLE, "sleepedf")}
    for path in matching(Path(place("CLAI_SLEEP_EDF")), ("**/SC4*-Hypnogram.edf",)):
        verify(path, rows[path.name].checksum, "sleepedf")
        marks = mne.read_annotations(path)
        seconds = int(max(marks.onset + marks.duration))
        signal = mne.io.RawArray(np.zeros((1, seconds)), mne.create_info(["EEG"], 1), verbose="error")
        _, stages, outside = scored_epochs(signal, marks, 30)
        assert outside == 0
        expected = dict.fromkeys([*range(5), MOVEMENT, UNSCORED], 0)
        for text, lasting in zip(marks.description, marks.duration, strict=True):
            expected[stage_of(text)] += round(lasting / 30)
        assert {stage: int((stages == stage).sum()) for stage in expected} == expected
