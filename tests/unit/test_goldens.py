"""Moves and deletions change no number: prepared arrays, trainings and renderings have the checksums kept in tests/goldens.

A commit that moves one says why. Trainings have a checksum for each kind of processor met; others skip. The arrays of real
sources have theirs in `results/published/*/evidence/dataset.json`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clai.checkpoints import Checkpoint
from replication.datasets.miniature.make import make
from replication.datasets.prepare import prepare
from replication.datasets.sources import obtain
from replication.experiments.evaluation import evaluate
from replication.models.base import Network, create, embedded_splits
from replication.models.embedding import embed_splits
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.models import EMBEDDING, MODELS
from replication.runs.settings import (
    load_settings,
    merge,
    model_settings,
    preparation_settings,
    raw_dataset,
    source_settings,
)

REPOSITORY = Path(__file__).parents[2]
GOLDENS = json.loads((REPOSITORY / "tests/goldens/goldens.json").read_text())
CAPABILITY = torch.backends.cpu.get_cpu_capability()
SETTINGS = load_settings(REPOSITORY, mini=True)
DATASETS = ("pathmnist", "cifar10", "sleepedf", "sleepedf-bands", "mimic-iv", "challenge2019")
NETWORKS = ("clai-m", "clai-c", "cross-entropy", "supervised-contrastive")
FITS = [
    *((dataset, model) for dataset in ("pathmnist", "sleepedf", "sleepedf-bands") for model in NETWORKS),
    *(("challenge2019", model) for model in ("clai-m", "clai-c", "cross-entropy", "deep-kernel-gp", "gp")),
    ("challenge2019", "student-t-mixture"),
    ("sleepedf-bands", "gradient-boosting"), ("challenge2019", "gradient-boosting"),
    ("sleepedf-bands", "logistic-regression"), ("challenge2019", "constant"),
]  # fmt: skip


def digest(arrays: dict[str, Any]) -> str:
    """Checksum of named arrays: names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def prepared(dataset: str, folder: Path) -> Path:
    """Prepare the miniature of a dataset from its raw files; return the folder."""
    owner = raw_dataset(SETTINGS, dataset)
    table = make(owner, folder / "raw", SETTINGS["miniature_seed"])
    raw = obtain(dataset, source_settings(SETTINGS, owner), table, folder / "raw", True)
    entry = preparation_settings(SETTINGS, dataset) | {"memory_gb": 2}
    prepare(raw, folder / "prepared", entry, SETTINGS["split_seed"])
    return folder / "prepared"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {}


@pytest.fixture
def folder_of(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    def find(dataset: str) -> Path:
        if dataset not in folders:
            folders[dataset] = prepared(dataset, tmp_path_factory.mktemp(dataset))
        return folders[dataset]

    return find


@pytest.mark.parametrize("dataset", DATASETS)
def test_prepared_arrays_of_the_miniature_sources_keep_their_checksum(dataset: str, folder_of: Any) -> None:
    arrays = {path.stem: np.load(path) for path in folder_of(dataset).glob("*.npy")}
    assert digest(arrays) == GOLDENS["prepared"][dataset]


def fitted(dataset: str, model: str, folder: Path, scratch: Path) -> dict[str, Any]:
    """State dict and scores of a model after two epochs, in float32 on one thread."""
    settings = merge(
        model_settings(SETTINGS, dataset, model), {"training": {"epochs": 2}, "threads": 1, "device": "cpu"}
    )
    fold = 0 if dataset in ("mimic-iv", "challenge2019") else None
    run = Run.open(folder / "dataset.json", settings, RunId(dataset, model, 0, fold))
    splits, fitted = run.splits, create(model)
    with Checkpoint(scratch / "checkpoint.pt", "golden") as checkpoint:
        if MODELS[model].of == "embeddings":
            of_clai = Run.open(folder / "dataset.json", settings, RunId(dataset, EMBEDDING, 0, fold))
            clai = create(EMBEDDING)
            clai.fit(of_clai, of_clai.splits, checkpoint)
            splits = embedded_splits(run, embed_splits(of_clai, clai.network))
        fitted.fit(run, splits, checkpoint)
        evaluation = evaluate(run, fitted, splits)
    state = fitted.module.state_dict() if isinstance(fitted, Network) else {}
    return {name: tensor.detach().numpy() for name, tensor in state.items()} | dict(evaluation.predictions)


@pytest.mark.parametrize(("dataset", "model"), FITS)
def test_two_epochs_give_the_weights_and_scores_they_gave(
    dataset: str, model: str, folder_of: Any, tmp_path: Path
) -> None:
    kept = GOLDENS["fits"].get(CAPABILITY)
    if kept is None:
        pytest.skip(f"no checksum was kept on a processor with {CAPABILITY}")
    assert digest(fitted(dataset, model, folder_of(dataset), tmp_path)) == kept[f"{dataset}/{model}"]


@pytest.mark.parametrize("name", GOLDENS["renderings"])
def test_renderings_of_the_published_evidence_keep_their_bytes(name: str) -> None:
    content = (REPOSITORY / "paper_figures" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest()[:16] == GOLDENS["renderings"][name]
