"""The embeddings of `replication.runs.registry`: their spaces, without training and along trainings by other objectives.

Trainings by other losses, on the same trunk, settings and passes, are the control of claim 9: whether the alignment of an
embedding rises because Collaborative Learning maximises it, or with any training that separates classes. A model of `MODELS` has
here the parameters, to the bit, that it has in its own run.
"""

import copy
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from clailearn.alignment import alignment_scores, one_vs_rest, target_matrix
from clailearn.checkpoints import Checkpoint
from clailearn.encoders import move
from clailearn.kernels import Cosine
from clailearn.trainer import Epoch
from replication.models.base import Network, Space, create
from replication.models.embedding import draw_items, labels_of, outputs
from replication.models.run import Run
from replication.runs.registry import EMBEDDINGS, INPUTS

VALIDATION_SAMPLES = 1000
"""Validation samples behind an alignment."""
# Items of a pass that settles the statistics of an untrained network.
_BLOCK = 512


class Inputs(nn.Module):
    """The samples as the encoder receives them, as embeddings of one condition, (1, N, values)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).unsqueeze(0)


def create_embedding(name: str) -> Network:
    """Return the model, not trained yet, whose network has an embedding of `replication.runs.registry`."""
    embedding = EMBEDDINGS[name]
    model = create(embedding.model, embedding.fit)
    assert isinstance(model, Network)
    return model


def open_space(run: Run, name: str, model: str | Path | None) -> Space:
    """Return the space of an embedding of a run's samples, on its device; `model` is the file of a trained model, or None."""
    if name == INPUTS:
        return Space(Inputs(), Cosine())
    made = create_embedding(name)
    space = (made.build(run) if model is None else made.load(run, model)).spaces()[0]
    move(space.module, run.device)
    if model is None:
        settle(run, space.module)
    return space


def settle(run: Run, module: nn.Module) -> None:
    """Give a network's BatchNorm layers the statistics of the training items, without which an untrained one is degenerate.

    Items come in a drawn order: in that of the data, a batch may be of one class or one night, and the variance within it far
    below that of all items. Features after a ReLU are positive: not standardised, all embeddings would be nearly parallel.
    """
    train = run.splits.train
    blocks = draw_items(train, len(train), run.id.seed).split(_BLOCK)
    update_bn((train.batch(block, None) for block in blocks if len(block) > 1), module)  # the mean over all batches
    module.eval()


def train_traced(run: Run, objective: str, checkpoint: Checkpoint) -> tuple[Network, pd.DataFrame]:
    """Train by an objective, and return the model on the CPU and its alignment on validation samples.

    Columns of the latter: epoch, kernel, centred_alignment. Epoch 0 is the untrained network, its BatchNorm layers settled on the
    training items.
    """
    model = create_embedding(objective).build(run)
    move(model.module, run.device)
    positions = draw_items(run.splits.val, VALIDATION_SAMPLES, run.id.seed)
    untrained = copy.deepcopy(model)
    settle(run, untrained.network)
    first = {"epoch": 0, **measure_alignment(run, untrained, positions)}
    history = model.learn(run, lambda: measure_alignment(run, model, positions), checkpoint)
    model.module.cpu()
    traced = pd.DataFrame([first, *history], columns=list(first))
    return model, traced.melt("epoch", var_name="kernel", value_name="centred_alignment")


def measure_alignment(run: Run, model: Network, positions: Tensor) -> Epoch:
    """Return by kernel the centred alignment, a mean over conditions, of an embedding on some validation samples."""
    signs = one_vs_rest(labels_of(run.splits.val, positions), run.conditions)
    target = target_matrix(signs, signs, run.training.target)
    figures: Epoch = {}
    for space in model.spaces():
        z = outputs(run, space.module, run.splits.val, positions, dim=1)
        with torch.no_grad():
            similarity = copy.deepcopy(space.kernel).cpu()(z, z)
            centred = alignment_scores(similarity.expand(len(signs), -1, -1), target)[1]
        figures[space.kernel.name] = float(centred.mean())
    return figures
