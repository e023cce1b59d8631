"""The embeddings of `replication.runs.controls`: the module that embeds, the kernel that compares, and both without training."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from clai.batches import Splits
from clai.encoders import place
from clai.kernels import Cosine
from replication.models.base import Network, View, create
from replication.models.embedding import Embedded, draw_items, embed
from replication.models.run import Run
from replication.runs.controls import EMBEDDINGS, INPUTS

# Items of a pass that settles the statistics of an untrained network.
_BLOCK = 512


class Inputs(nn.Module):
    """The samples as the encoder receives them, as embeddings of one condition, (1, N, values)."""

    def __init__(self) -> None:
        super().__init__()
        self.device = nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).unsqueeze(0)


def create_embedding(name: str) -> Network:
    """Return the model, not trained yet, whose network has an embedding of `replication.runs.controls`."""
    embedding = EMBEDDINGS[name]
    model = create(embedding.model, embedding.fit)
    assert isinstance(model, Network)
    return model


def open_view(run: Run, name: str, model: str | Path | None) -> View:
    """Return how an embedding of `replication.runs.controls` sees the samples of a run, on the run's device.

    What comes without a kernel of its own has the cosine one; an untrained network has CLaI-M's, at its start. model: the trained
    model's file; None for what no training made.
    """
    if name == INPUTS:
        view = View(Inputs(), Cosine())
    elif model is None:
        view = create_embedding(name).build(run).views()[0]
        place(view.module, run.device)
        settle(run, view.module)
    else:
        view = create_embedding(name).load(run, model).views()[0]
    place(view.module, run.device)
    return view


@torch.no_grad()
def settle(run: Run, module: nn.Module) -> None:
    """Give a network's BatchNorm layers the statistics of the training items, without which an untrained one is degenerate.

    Items come in a drawn order: in that of the data, a batch may be of one class or one night, and the variance within it far
    below that of all items. Features after a ReLU are positive: not standardised, all embeddings would be nearly parallel.
    """
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None  # the mean over all batches
    module.train()
    for block in draw_items(run.splits.train, len(run.splits.train), run.id.seed).split(_BLOCK):
        if len(block) > 1:
            module(run.splits.train.batch(block, None)[0])
    module.eval()


def embed_parts(
    run: Run, view: View, positions: Mapping[str, Tensor | None], splits: Splits | None = None
) -> dict[str, Embedded]:
    """Embed the items of the named splits of a run, or of `splits`, at these positions, or all, without augmentation."""
    parts = {}
    for name, drawn in positions.items():
        part = embed(view.module, getattr(splits or run.splits, name), run.training.precision, drawn)
        parts[name] = part._replace(z=part.z.float())
    return parts
