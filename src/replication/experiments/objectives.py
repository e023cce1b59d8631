"""What kernels see without training, and along trainings by several objectives.

Trainings by other losses, on the same trunk, settings and steps, are the control of claim 9: whether the alignment of an
embedding rises because Collaborative Learning maximises it, or with any training that separates classes.
"""

import copy

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from clailearn.alignment import alignment_scores, one_vs_rest, target_matrix
from clailearn.checkpoints import Checkpoint
from clailearn.kernels import Cosine
from clailearn.trainer import Epoch
from replication.models.base import Network, Space, create
from replication.models.embedding import draw_items, labels_of, outputs
from replication.models.run import Run
from replication.runs.registry import INPUTS, UNTRAINED_MODEL

ALIGNMENTS = ("alignment", "centred_alignment")
VALIDATION_SAMPLES = 1000
"""Validation samples behind an alignment."""
# Items of a pass that settles the statistics of an untrained network.
_BLOCK = 512


class Inputs(nn.Module):
    """The samples as the encoder receives them, as embeddings of one condition, (1, N, values)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).unsqueeze(0)


def open_space(run: Run, name: str) -> Space:
    """Return the space of the inputs of a run's samples, or of an untrained network, on the run's device."""
    if name == INPUTS:
        return Space(Inputs(), Cosine())
    space = create(UNTRAINED_MODEL).start(run).spaces()[0]
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


def train_traced(run: Run, checkpoint: Checkpoint) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train a model, and return the alignments of its embedding on validation samples, and the history of the training.

    Columns of the former: epoch, kernel, alignment, centred_alignment. Epoch 0 is the untrained network, its BatchNorm layers
    settled on the training items.
    """
    model: Network = create(run.model).start(run)
    positions = draw_items(run.splits.val, VALIDATION_SAMPLES, run.id.seed)
    untrained = copy.deepcopy(model)
    settle(run, untrained.network)
    first = measure_alignments(run, untrained, positions)
    validate = model.validation(run)
    history = model.learn(run, lambda: validate() | measure_alignments(run, model, positions), checkpoint)
    rows = [
        {"epoch": epoch, "kernel": kernel, **{name: row[f"{name}, {kernel}"] for name in ALIGNMENTS}}
        for epoch, row in [(0, first), *((int(row["epoch"]), row) for row in history)]
        for kernel in dict.fromkeys(space.kernel.name for space in model.spaces())
    ]
    return pd.DataFrame(rows), pd.DataFrame(history)


def measure_alignments(run: Run, model: Network, positions: Tensor) -> Epoch:
    """Return by kernel both alignments, means over conditions, of an embedding on some validation samples."""
    signs = one_vs_rest(labels_of(run.splits.val, positions), run.conditions)
    target = target_matrix(signs, signs, run.training.target)
    figures: Epoch = {}
    for space in model.spaces():
        z = outputs(run, space.module, run.splits.val, positions, dim=1)
        with torch.no_grad():
            similarity = copy.deepcopy(space.kernel).cpu()(z, z)
            scores = alignment_scores(similarity.expand(len(signs), -1, -1), target)
        for name, score in zip(ALIGNMENTS, scores, strict=True):
            figures[f"{name}, {space.kernel.name}"] = float(score.mean())
    return figures
