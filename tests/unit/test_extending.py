"""The recipes of docs/extending.md work as they are printed there."""

import re
import sys
import textwrap
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from clai import kernels
from clai.batches import NO_AUGMENTATION
from clai.checkpoints import Checkpoint
from clai.errors import InputError
from replication.datasets.prepare import prepare
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain
from replication.experiments.evaluation import evaluate
from replication.models.base import create, embedded_splits
from replication.models.embedding import embed_splits
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import use_threads
from replication.runs.models import MODELS, Entry
from replication.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs" / "extending.md").read_text()
SCHEMA = yaml.safe_load((REPOSITORY / "workflow" / "config" / "schema.yaml").read_text())


def block(language: str, mark: str) -> str:
    """The one block of the page that holds the mark; in a list it is indented."""
    blocks = re.findall(rf"^ *```{language}\n(.*?)```", TEXT, flags=re.DOTALL | re.MULTILINE)
    (text,) = [text for text in blocks if mark in text]
    return textwrap.dedent(text)


def entries() -> dict[str, Any]:
    """The config entries of the page by dataset."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)]
    parts = [block["datasets"] for block in blocks if "datasets" in block]
    return {key: entry for part in parts for key, entry in part.items()}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> str:
    """The page's module, where the library looks for sources."""
    name = f"replication.datasets.{entries()['digits']['source']}"
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(block("python", "Pictures as rows"), "docs/extending.md", "exec"), module.__dict__)
    return name


def write_pictures(path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 255, (30, 64)), columns=[f"p{i}" for i in range(64)])
    table.insert(0, "label", np.arange(30) % 3)
    table.insert(0, "split", np.repeat(["train", "val", "test"], 10))
    table.to_csv(path, index=False)
    return table


@pytest.mark.usefixtures("source")
def test_the_module_prepares_what_the_entry_names(tmp_path: Path) -> None:
    table = write_pictures(tmp_path / "digits.csv")
    settings = entries()["digits"] | {"path": str(tmp_path / "digits.csv")}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    raw = obtain("digits", settings, sources, tmp_path / "raw", False)
    prepare(raw, tmp_path / "prepared", settings, 0)
    data = load(tmp_path / "prepared")
    assert data["x_test"].shape == (10, 8, 8, 1)
    np.testing.assert_array_equal(data["x_val"].reshape(10, 64), table[table["split"] == "val"].iloc[:, 2:])
    assert data.info["title"] == "Digits"
    assert data.info["classes"] == ["0", "1", "2"]
    assert (data.info["version"], data.info["licence"]) == ("as provided", "not stated")


@pytest.mark.usefixtures("source")
def test_the_module_refuses_what_it_does_not_expect(tmp_path: Path) -> None:
    write_pictures(tmp_path / "digits.csv").drop(columns="p7").to_csv(tmp_path / "digits.csv", index=False)
    settings = entries()["digits"] | {"path": str(tmp_path / "digits.csv")}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    raw = obtain("digits", settings, sources, tmp_path / "raw", False)
    with pytest.raises(InputError, match=r"digits\.csv: found no column p7"):
        prepare(raw, tmp_path / "prepared", settings, 0)
    assert not (tmp_path / "prepared").exists()


def test_the_entry_of_a_table_prepares_it(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "wards.parquet"
    rows = "SELECT i // 9 AS patient, random() AS pulse, random() AS weight, i % 3 AS outcome FROM range(180) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    settings = entries()["wards"] | {"path": str(path)}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    prepare(obtain("wards", settings, sources, tmp_path / "raw", False), tmp_path / "out", settings, 0)
    data = load(tmp_path / "out")
    assert (data.info["variables"], data.info["classes"]) == (["pulse", "weight"], ["0", "1", "2"])
    assert [data.info["splits"][split]["groups"] for split in ("train", "val", "test")] == [13, 3, 4]


def test_the_entry_of_arrays_prepares_them(tmp_path: Path) -> None:
    path, subjects = tmp_path / "windows.npz", np.repeat(np.arange(10), 15)
    x = np.random.default_rng(0).normal(size=(150, 1, 500))
    np.savez(path, x=x, y=np.arange(150) % 5, groups=subjects)
    settings = entries()["windows"] | {"path": str(path)}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    prepare(obtain("windows", settings, sources, tmp_path / "raw", False), tmp_path / "out", settings, 0)
    data = load(tmp_path / "out")
    assert (data.info["kind"], data.info["classes"]) == ("signals", ["W", "N1", "N2", "N3", "REM"])
    assert [data.info["splits"][split]["subjects"] for split in ("train", "val", "test")] == [6, 2, 2]


def test_the_entries_of_the_page_are_valid_settings() -> None:
    assert entries().keys() == {"bloodmnist", "digits", "pets", "wards", "windows"}
    whole = {"$defs": SCHEMA["$defs"], **SCHEMA["properties"]["datasets"]}
    jsonschema.Draft202012Validator(whole).validate(entries())


# Models


@pytest.fixture
def laplacian(monkeypatch: pytest.MonkeyPatch) -> type[kernels.Kernel]:
    """The page's kernel, as if it stood in clai.kernels, and its model in the registry."""
    monkeypatch.setattr(kernels, "KERNELS", dict(kernels.KERNELS))
    names = dict(vars(kernels))
    exec(compile(block("python", "class Laplacian"), "docs/extending.md", "exec"), names)
    register(block("yaml", "clai-l:"), monkeypatch)
    return names["Laplacian"]  # type: ignore[no-any-return]


@pytest.fixture
def nearest_centroid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's baseline, where the library looks for baselines, and its model in the registry."""
    module = ModuleType("replication.models.nearest_centroid")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block("python", "class NearestCentroid"), "docs/extending.md", "exec"), module.__dict__)
    register(block("yaml", "nearest-centroid:"), monkeypatch)


def register(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an entry of the page to the registry."""
    for key, model in yaml.safe_load(entry).items():
        monkeypatch.setitem(MODELS, key, Entry(**model))


def run_of(model: str) -> Run:
    """A run on images of three classes, which the bright channel tells apart."""
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", 96), ("val", 30), ("test", 60)):
        y = np.arange(n) % 3
        x = generator.integers(0, 100, (n, 8, 8, 3))
        x[np.arange(n), :, :, y] += 100
        arrays |= {f"x_{split}": x.astype(np.uint8), f"y_{split}": y}
    statistics = {"mean": [80.0] * 3, "sd": [50.0] * 3}
    normalisation = {"train": statistics, "test": statistics}
    data = Prepared({"kind": "images", "classes": ["a", "b", "c"], "normalisation": normalisation}, arrays)
    config = load_settings(REPOSITORY)
    training = {
        "epochs": 12,
        "batch_size": 8,
        "precision": "float32",
        "augmentation": NO_AUGMENTATION,
    }
    settings = config | {
        "embedding_size": 4,
        "encoder": {"trunk": "resnet2d", "width": 4, "blocks": [1], "pool": True},
        "training": config["training"] | training,
        "inference": config["inference"] | {"validation_references": 20},
    }
    return Run(data, settings, RunId("pictures", model, 0), torch.device("cpu"))


def accuracy(metrics: pd.DataFrame) -> float:
    return float(metrics.loc[metrics["metric"] == "accuracy", "value"].max())


def test_the_kernel_fits_the_library(laplacian: Any) -> None:
    kernel = kernels.build("laplacian", 4, "full")
    assert isinstance(kernel, laplacian)
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    similarity = kernel(z, z)
    torch.testing.assert_close(similarity.diagonal(), torch.ones(6), atol=1e-2, rtol=0)
    assert similarity.min() > -1
    torch.testing.assert_close(kernel.log_parzen(z, z).exp(), (1 + similarity) / 2)
    similarity.sum().backward()
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]
    assert kernel.loss_floor("zero", 0.1, 4) is None


@pytest.mark.usefixtures("laplacian")
def test_the_kernels_model_trains_and_votes(tmp_path: Path) -> None:
    use_threads(1)
    run, model = run_of("clai-l"), create("clai-l")
    history = model.fit(run, run.splits, Checkpoint(tmp_path / "checkpoint.pt", "a"))
    assert "floor" not in history[-1]
    assert accuracy(evaluate(run, model, run.splits).metrics) > 0.6


@pytest.mark.usefixtures("nearest_centroid")
def test_the_baseline_is_fitted_on_embeddings(tmp_path: Path) -> None:
    use_threads(1)
    run, clai = run_of("clai-c"), create("clai-c")
    clai.fit(run, run.splits, Checkpoint(tmp_path / "checkpoint.pt", "a"))
    splits, model = embedded_splits(run, embed_splits(run, clai.network)), create("nearest-centroid")  # type: ignore[attr-defined]
    model.fit(run, splits, None)
    assert accuracy(evaluate(run, model, splits).metrics) > 0.6


@pytest.mark.parametrize("title", ["A kernel", "A baseline"])
def test_a_recipe_of_a_model_touches_two_files(title: str) -> None:
    section = TEXT.split(f"## {title}\n")[1].split("\n## ")[0]
    steps = re.findall(r"^\d\. ", section, flags=re.MULTILINE)
    assert len(steps) == 2
