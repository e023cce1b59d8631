"""The entries and the kernel of docs/extending.md work as they are printed there; tests/workflow follows the recipes."""

import itertools
import re
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from clai import kernels
from replication.datasets.miniature.make import make
from replication.datasets.prepare import prepare
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs" / "extending.md").read_text()
SCHEMA = yaml.safe_load((REPOSITORY / "workflow" / "config" / "schema.yaml").read_text())


def entries() -> dict[str, Any]:
    """The config entries of the page by dataset."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)]
    parts = [block["datasets"] for block in blocks if "datasets" in block]
    return {key: entry for part in parts for key, entry in part.items()}


def prepared(name: str, path: Path, folder: Path) -> Prepared:
    """The data of an entry of the page, read from a path."""
    settings = entries()[name] | {"path": str(path)}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    prepare(obtain(name, settings, sources, folder / "raw", False), folder / "out", settings, 0)
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


def test_the_entry_of_images_prepares_them(tmp_path: Path) -> None:
    for split, name, n in itertools.product(("train", "test"), ("cat", "dog"), range(20)):
        path = tmp_path / "pets" / split / name / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((32, 32, 3), n, dtype=np.uint8)).save(path)
    data = prepared("pets", tmp_path / "pets", tmp_path)
    assert (data.info["kind"], data.info["classes"]) == ("images", ["cat", "dog"])
    assert [data.info["splits"][split]["counts"] for split in ("train", "val", "test")] == [[18] * 2, [2] * 2, [20] * 2]


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


def test_the_kernel_fits_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "KERNELS", dict(kernels.KERNELS))
    (code,) = re.findall(r"^ *```python\n([^`]*class Laplacian[^`]*)```", TEXT, flags=re.MULTILINE)
    names = dict(vars(kernels))
    exec(compile(textwrap.dedent(code), "docs/extending.md", "exec"), names)
    kernel = kernels.build("laplacian", 4, "full")
    assert isinstance(kernel, names["Laplacian"])
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    similarity = kernel(z, z)
    torch.testing.assert_close(similarity.diagonal(), torch.ones(6), atol=1e-2, rtol=0)
    assert similarity.min() > -1
    torch.testing.assert_close(kernel.log_parzen(z, z).exp(), (1 + similarity) / 2)
    similarity.sum().backward()
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]
    assert kernel.loss_floor("zero", 0.1, 4) is None
