"""Small fits of every kind, each run in a process of its own that a test may interrupt."""

import multiprocessing
import multiprocessing.forkserver
import os
import resource
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import torch
import torch._dynamo  # noqa: F401  # the first step of an optimiser would import it, in each process anew
from safetensors.torch import save

# The registry would import the class of a model when it is first used, in each process anew.
import replication.models.clai  # noqa: F401
import replication.models.gaussian_processes  # noqa: F401
import replication.models.network_classifiers  # noqa: F401
from clailearn.checkpoints import Checkpoint, write_whole
from replication.models.base import create
from replication.models.items import NO_AUGMENTATION
from replication.models.run import Run
from replication.runs.run import RunId, use_threads
from support.repository import REAL
from support.training import pictures, recordings

CPU = torch.device("cpu")
TRAINING = REAL["training"] | {
    "epochs": 4, "batch_size": 8, "learning_rate": 0.01, "precision": "float32",
    "augmentation": NO_AUGMENTATION | {"crop": 2, "flip": True},
}  # fmt: skip
SETTINGS = REAL | {
    "embedding_size": 4,
    "inference": REAL["inference"] | {"validation_references": 20},
    "baselines": REAL["baselines"] | {"gp": {"inducing_points": 8}},
}  # fmt: skip
TRUNKS = {
    "pictures": REAL["encoder"] | {"trunk": "resnet2d", "width": 4, "blocks": [1, 1]},
    "small pictures": REAL["encoder"] | {"trunk": "convnet", "width": 2},
    "stays": REAL["encoder"] | {"trunk": "gru", "width": 6, "layers": 1, "dropout": 0.2},
}


def trained(model: str, kind: str, training: Mapping[str, Any], checkpoint: Checkpoint) -> tuple[Any, pd.DataFrame]:
    data, fold = (recordings(90), 0) if kind == "stays" else (pictures(60, 12, 12), None)
    settings = SETTINGS | {"encoder": TRUNKS[kind], "training": TRAINING | training}
    run = Run(data, settings, RunId(kind, model, 0, fold), CPU)
    fitted = create(model)
    history = fitted.fit(run, checkpoint)
    return fitted.module.state_dict(), pd.DataFrame(history)


FITS: dict[str, Callable[[Checkpoint], tuple[Any, pd.DataFrame]]] = {
    "clai-m": partial(trained, "clai-m", "pictures", {}),
    "clai-c, class by class": partial(trained, "clai-c", "pictures", {"schedule": "sequential", "references": "all"}),
    "clai-m, convnet": partial(trained, "clai-m", "small pictures", {"optimiser": "muon", "momentum": 0.9}),
    "clai-m, stays": partial(trained, "clai-m", "stays", {}),
    "cross-entropy": partial(trained, "cross-entropy", "pictures", {}),
    "parzen-vote": partial(trained, "parzen-vote", "pictures", {}),
    "deep-kernel-gp, stays": partial(trained, "deep-kernel-gp", "stays", {}),
}


def fit(name: str, folder: Path, room: int | None = None) -> None:
    """Fit, and leave `parameters` and `table` in the folder.

    Args:
        room: largest size of a file in bytes, as on a disk that is full.
    """
    use_threads(1)
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    with Checkpoint(folder / "checkpoint.pt", name) as checkpoint:
        state, table = FITS[name](checkpoint)
    parameters = save({key: value.contiguous() for key, value in state.items()})
    write_whole(folder / "table", table.to_csv().encode())
    write_whole(folder / "parameters", parameters)
    for left in folder.glob("*checkpoint.pt*"):  # as the workflow does at its end
        left.unlink()


def start(name: str, folder: Path, room: int | None = None) -> BaseProcess:
    """`fit` in a process of its own, forked from one that has imported everything and computed nothing."""
    running = _forks().Process(target=fit, args=(name, folder, room))
    running.start()
    return running


@cache
def _forks() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    # The server looks for modules where the environment says, and nowhere else.
    folders = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    with mock.patch.dict(os.environ, PYTHONPATH=folders, OMP_NUM_THREADS="1"):
        multiprocessing.forkserver.ensure_running()
    return context
