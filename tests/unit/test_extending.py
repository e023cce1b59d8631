"""The entries and the kernel of docs/extending.md work as they are printed there; tests/workflow follows the recipes."""

import re
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
import yaml

from clai import kernels
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


def test_the_entries_of_the_page_are_valid_settings() -> None:
    assert entries().keys() == {"bloodmnist", "digits", "pets", "wards", "windows"}
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
