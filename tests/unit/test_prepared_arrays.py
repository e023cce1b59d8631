"""Preparing the miniature of each source gives the same arrays as ever.

A commit that moves a checksum says why. The arrays of real sources have theirs in `results/published/*/evidence/dataset.json`.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from replication.datasets.miniature.make import make
from replication.datasets.sources import obtain, prepare
from replication.runs.settings import preparation_settings, raw_dataset, source_settings
from support.repository import MINI

CHECKSUMS = {
    "pathmnist": "fb754f8d34c27f2b",
    "cifar10": "84e1511c2dfccd52",
    "sleepedf": "21fe0a2f67d47728",
    "sleepedf-bands": "ab012164de21329f",
    "mimic-iv": "56c530ed56306e33",
    "challenge2019": "f63379e7c737f81f",
}


@pytest.mark.parametrize("dataset", CHECKSUMS)
def test_prepared_arrays_of_the_miniature_sources_keep_their_checksum(dataset: str, tmp_path: Path) -> None:
    owner = raw_dataset(MINI, dataset)
    table = make(owner, tmp_path / "raw", MINI["miniature_seed"])
    raw = obtain(dataset, source_settings(MINI, owner), table, tmp_path / "raw", True)
    entry = preparation_settings(MINI, dataset) | {"memory_gb": 2}
    prepare(raw, tmp_path / "prepared", entry, MINI["split_seed"])
    found = hashlib.sha256()
    for path in sorted((tmp_path / "prepared").glob("*.npy"), key=lambda path: path.stem):
        array = np.ascontiguousarray(np.load(path))
        found.update(f"{path.stem} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    assert found.hexdigest()[:16] == CHECKSUMS[dataset]
