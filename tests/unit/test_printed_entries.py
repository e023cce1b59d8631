"""Entries of docs/extending.md work as they are printed there; tests/workflow runs the others and follows the recipes."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import yaml

from replication.datasets.miniature.make import make
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain, prepare
from support.repository import CONFIG, REPOSITORY, SOURCES

TEXT = (REPOSITORY / "docs" / "extending.md").read_text()
SCHEMA = yaml.safe_load((CONFIG / "schema.yaml").read_text())


def entries() -> dict[str, Any]:
    """The config entries of the page by dataset."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)]
    parts = [block["datasets"] for block in blocks if "datasets" in block]
    return {key: entry for part in parts for key, entry in part.items()}


def prepared(name: str, path: Path, folder: Path) -> Prepared:
    """The data of an entry of the page, read from a path."""
    settings = entries()[name] | {"path": str(path)}
    prepare(obtain(name, settings, SOURCES, folder / "raw", False), folder / "out", settings, 0)
    return load(folder / "out")


def test_the_entry_of_a_table_prepares_it(tmp_path: Path) -> None:
    import duckdb

    rows = "SELECT i // 9 AS patient, random() AS pulse, random() AS weight, i % 3 AS outcome FROM range(180) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 'wards.parquet'}' (FORMAT parquet)")
    data = prepared("wards", tmp_path / "wards.parquet", tmp_path)
    assert (data.info["variables"], data.info["classes"]) == (["pulse", "weight"], ["0", "1", "2"])
    assert [data.info["splits"][split]["groups"] for split in ("train", "val", "test")] == [13, 3, 4]


def test_the_entry_of_arrays_prepares_them(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(150, 1, 500))
    np.savez(tmp_path / "windows.npz", x=x, y=np.arange(150) % 5, groups=np.repeat(np.arange(10), 15))
    data = prepared("windows", tmp_path / "windows.npz", tmp_path)
    assert (data.info["kind"], data.info["classes"]) == ("signals", ["W", "N1", "N2", "N3", "REM"])
    assert [data.info["splits"][split]["subjects"] for split in ("train", "val", "test")] == [6, 2, 2]


def test_the_entry_of_medmnist_prepares_a_file_of_two_classes(tmp_path: Path) -> None:
    y, x = np.arange(20) % 2, np.random.default_rng(0).integers(0, 255, (20, 28, 28), np.uint8)
    arrays = {f"{split}_images": x for split in ("train", "val", "test")}
    labels = {f"{split}_labels": y[:, None] for split in ("train", "val", "test")}
    np.savez(tmp_path / "pneumoniamnist.npz", **arrays, **labels)
    data = prepared("pneumoniamnist", tmp_path / "pneumoniamnist.npz", tmp_path)
    assert (data.info["channels"], data.info["classes"]) == (["grey"], ["normal", "pneumonia"])
    assert np.array_equal(data["y_test"], y)


def test_the_entry_of_recordings_prepares_them(tmp_path: Path) -> None:
    make("sleepedf", tmp_path / "nights", 1)
    broken = sorted((tmp_path / "nights").glob("*-PSG.edf"))[0]
    broken.write_bytes(broken.read_bytes()[:3000])
    data = prepared("nights", tmp_path / "nights", tmp_path)
    assert (data.info["kind"], data.info["channels"]) == ("signals", ["EEG Fpz-Cz", "EEG Pz-Oz"])
    assert [data.info["splits"][split]["subjects"] for split in ("train", "val", "test")] == [3, 1, 1]
    assert broken.name in str(data.info["exclusions"])


def test_every_source_has_an_entry_of_the_page_that_is_valid() -> None:
    assert entries().keys() == {"pneumoniamnist", "digits", "nights", "pets", "wards", "windows"}
    whole = {"$defs": SCHEMA["$defs"], **SCHEMA["properties"]["datasets"]}
    jsonschema.Draft202012Validator(whole).validate(entries())
