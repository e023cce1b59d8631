"""Trainings with different losses on the same trunk, settings and passes; after each epoch their alignment is measured.

That is the control of claim 9: whether the alignment of an embedding rises because Collaborative Learning maximises it, or with
any training that separates classes. A model of `MODELS` has here the parameters, to the bit, that it has in its own run.
"""

import copy

import pandas as pd
import torch

from clai.alignment import alignment_scores, one_vs_rest, target_matrix
from clai.checkpoints import Checkpoint
from clai.encoders import ConvNet, place
from clai.errors import InputError
from clai.trainer import Epoch
from replication.experiments.embeddings import create_embedding, settle
from replication.models.base import Network
from replication.models.embedding import draw_items, labels_of, outputs
from replication.models.run import Run

VALIDATION_SAMPLES = 1000
"""Validation samples behind an alignment."""
TRACE_COLUMNS = ["epoch", "kernel", "centred_alignment"]


def train_traced(run: Run, objective: str, checkpoint: Checkpoint) -> tuple[Network, pd.DataFrame]:
    """Train by an objective of `replication.runs.controls`.

    Returns the model on the CPU, and the alignment of its embedding on validation samples (`TRACE_COLUMNS`). Epoch 0 is the
    untrained network, its BatchNorm layers settled on the training items. Raises InputError for the trunk that is whitened.
    """
    model = create_embedding(objective).build(run)
    if isinstance(model.network.trunk, ConvNet):
        raise InputError(
            f"{run.id}: found the trunk convnet, expected one that is not whitened. Give the dataset "
            "another encoder.trunk"
        )
    place(model.module, run.device)
    positions = draw_items(run.splits.val, VALIDATION_SAMPLES, run.id.seed)
    untrained = copy.deepcopy(model)
    settle(run, untrained.network)
    first = {"epoch": 0, **measure_alignment(run, untrained, positions)}
    history = model.learn(run, lambda: measure_alignment(run, model, positions), checkpoint)
    model.module.cpu()
    rows = [
        (row["epoch"], key.removeprefix("kernel "), row[key])
        for key in first
        if key != "epoch"
        for row in [first, *history]
    ]
    return model, pd.DataFrame(rows, columns=TRACE_COLUMNS)


def measure_alignment(run: Run, model: Network, positions: torch.Tensor) -> Epoch:
    """Return by kernel the centred alignment of an embedding on the validation samples at these positions.

    It is the mean over conditions; an embedding without conditions serves all of them.
    """
    signs = one_vs_rest(labels_of(run.splits.val, positions), run.conditions)
    target = target_matrix(signs, signs, run.training.target)
    figures: Epoch = {}
    for view in model.views():
        z = outputs(view.module, run.splits.val, run.training.precision, positions, dim=1)
        with torch.no_grad():
            similarity = copy.deepcopy(view.kernel).cpu()(z, z)
            centred = alignment_scores(similarity.expand(len(signs), -1, -1), target)[1]
        figures[f"kernel {view.kernel.name}"] = float(centred.mean())
    return figures
