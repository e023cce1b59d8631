"""The prepared form is written whole, and preparing the miniature of each source gives the same arrays as ever.

A commit that moves a checksum says why. The arrays of real sources have theirs in `results/published/*/evidence/dataset.json`.
"""

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from clailearn.errors import InputError
from replication.datasets.miniature import make
from replication.datasets.prepared import load, normalisation, writing
from replication.datasets.sources import obtain, prepare
from replication.runs.settings import preparation_settings, raw_dataset, source_settings
from support.repository import MINI

CHECKSUMS = {
    "breastmnist": "7c2dfab29c1f393e",
    "cifar10": "dae4e8bebe21b855",
    "sleepedf": "3913469d2e9a7382",
    "sleepedf-bands": "87949be0d9d13455",
    "mimic-iv": "47ffd11fc3efd348",
    "challenge2019": "9ca645253b3b5ce1",
}


@pytest.mark.parametrize("dataset", CHECKSUMS)
def test_prepared_arrays_of_the_miniature_sources_keep_their_checksum(dataset: str, tmp_path: Path) -> None:
    owner = raw_dataset(MINI, dataset)
    table = make(owner, tmp_path / "raw")
    raw = obtain(dataset, source_settings(MINI, owner), table, tmp_path / "raw", True)
    entry = preparation_settings(MINI, dataset) | {"memory_gb": 2}
    prepare(raw, tmp_path / "prepared", entry, 1)
    found = hashlib.sha256()
    for path in sorted((tmp_path / "prepared").glob("*.npy"), key=lambda path: path.stem):
        array = np.ascontiguousarray(np.load(path))
        found.update(f"{path.stem} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    assert found.hexdigest()[:16] == CHECKSUMS[dataset]


def write_toy(folder: Path, offset: int = 0, spread: int = 9) -> None:
    rng = np.random.default_rng(0)
    with writing(folder, {"dataset": "toy"}) as writer:
        for split, n in (("train", 6), ("val", 2), ("test", 4)):
            level = {"train": 50, "val": 200, "test": 100}[split] + offset
            writer.array(f"x_{split}", (level + rng.integers(0, spread, (n, 2, 2, 1))).astype(np.uint8))
            writer.array(f"y_{split}", np.arange(n) % 2)
        writer.describe(kind="images", classes=["a", "b"], channels=["red"])


def test_what_is_written_is_what_is_loaded_and_each_normalisation_comes_from_its_own_split(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    data = load(tmp_path / "prepared")
    assert data["x_train"].shape == (6, 2, 2, 1)
    assert isinstance(data["x_train"], np.memmap)
    assert data.info["splits"]["train"] == {"n": 6, "counts": [3, 3]}
    for split in ("train", "test"):
        x = np.asarray(data[f"x_{split}"], dtype=float)
        assert data.info["normalisation"][split]["mean"] == pytest.approx([x.mean()])
        assert data.info["normalisation"][split]["sd"] == pytest.approx([x.std()])


def test_a_preparation_replaces_the_earlier_one_whole_or_not_at_all(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    before = np.asarray(load(tmp_path / "prepared")["x_train"]).copy()
    (tmp_path / "prepared" / "stale.npy").touch()
    with pytest.raises(InputError, match=r"x_train: 'red' has the same value"):
        write_toy(tmp_path / "prepared", offset=20, spread=1)
    np.testing.assert_array_equal(load(tmp_path / "prepared")["x_train"], before)
    write_toy(tmp_path / "prepared", offset=10)
    assert not (tmp_path / "prepared" / "stale.npy").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["prepared"]


def test_an_array_that_is_not_as_described_is_refused_and_no_pickle_is_loaded(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    path, description = tmp_path / "prepared" / "x_test.npy", tmp_path / "prepared" / "dataset.json"
    content = path.read_bytes()
    spoilt = {"another sha256 than .*--forcerun": content[:-1] + bytes([content[-1] ^ 0x80]), "": b""}
    for message, array in (
        ("found .*, expected", np.zeros(3, dtype=np.int64)),
        ("Python objects", np.array([{}], dtype=object)),
    ):
        np.save(stream := io.BytesIO(), array, allow_pickle=True)
        spoilt[message] = stream.getvalue()
    for message, written in spoilt.items():
        path.write_bytes(written)
        with pytest.raises(InputError, match=rf"x_test\.npy: cannot be used .*{message}"):
            load(tmp_path / "prepared")
    for cut in (description.read_text(encoding="utf-8")[:-9], "", "[]", '{"arrays": {"x_test": {}}}'):
        description.write_text(cut, encoding="utf-8")
        with pytest.raises(InputError, match=r"prepared/(dataset\.json|x_test\.npy): cannot be (used|read)"):
            load(tmp_path / "prepared")


def test_streamed_statistics_equal_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.datasets.prepared._CHUNK_VALUES", 7)
    rng = np.random.default_rng(0)
    x = rng.normal(1000, 3, (50, 4))
    x[rng.random(x.shape) < 0.3] = np.nan
    found = normalisation(x, "recordings", "abcd", "x")
    np.testing.assert_allclose(found["mean"], np.nanmean(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(found["sd"], np.nanstd(x, axis=0), rtol=1e-9)
