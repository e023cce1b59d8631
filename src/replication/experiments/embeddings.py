"""The embeddings of `replication.runs.controls`: the module that embeds, the kernel that compares, and both without training."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clai.encoders import Classifier, Encoder, place
from clai.kernels import Cosine, Kernel, MahalanobisGaussian
from replication.models.embedding import Embedded, draw_items, labels_of, outputs
from replication.models.run import Run
from replication.models.training import Trained, build_clai, load_clai, load_classifier, load_contrastive

# Items of a pass that settles the statistics of an untrained network.
_BLOCK = 512


class Features(nn.Module):
    """The standardised features of a trunk as embeddings of one condition, (1, N, F)."""

    def __init__(self, model: Classifier | Encoder) -> None:
        super().__init__()
        self.trunk, self.standardise = model.trunk, model.standardise

    def forward(self, x: Any) -> Tensor:
        features = self.trunk(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.standardise(features.float()).unsqueeze(0)


class Inputs(nn.Module):
    """The samples as the encoder receives them, as embeddings of one condition, (1, N, values)."""

    def __init__(self) -> None:
        super().__init__()
        self.device = nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).unsqueeze(0)


class View(NamedTuple):
    """The module that embeds samples as (K, N, L), and the kernel that compares them."""

    module: nn.Module
    kernel: Kernel


def open_view(run: Run, name: str, model: str | Path | None) -> View:
    """Return how an embedding of `replication.runs.controls` sees the samples of a run, on the run's device.

    Features, inputs and the projection of prototypical networks come without a kernel of their own: they have the cosine one.
    An untrained network has CLaI-M's, at its start.

    Args:
        run: its settings name the `model` whose network the embedding has.
        name: key of the embedding, or `inputs`.
        model: the trained model's file; None for what no training made.
    """
    if name == "inputs":
        view = View(Inputs(), Cosine())
    elif name == "untrained" or model is None:
        trained = build_clai(run.settings, run.model, run.inputs, run.conditions, run.id.seed)
        view = View(trained.encoder, trained.kernel)
        place(view.module, run.device)
        settle(run, view.module)
    elif name == "cross-entropy":
        view = View(Features(load_classifier(run, model)), Cosine())
    elif name == "supervised-contrastive":
        view = View(Features(load_contrastive(run, model)), Cosine())
    elif name == "prototypical":
        view = View(load_contrastive(run, model), Cosine())
    else:
        view = View(*load_clai(run, model))
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


def views_of(model: Trained | Classifier | Encoder, name: str) -> Iterator[tuple[str, View]]:
    """Yield the kernels by which an embedding in training is looked at, by name, each with the module that embeds.

    CLaI's embeddings have their own kernel. Others have both forms of the paper: cosine, and Gaussian with M = I / L.
    """
    if isinstance(model, Trained):
        yield model.kernel.name, View(model.encoder, model.kernel)
        return
    module: nn.Module
    if name == "prototypical" and isinstance(model, Encoder):
        module, size = model, model.head.weight.shape[2]
    else:
        module, size = Features(model), model.standardise.num_features
    for kernel in (Cosine(), MahalanobisGaussian(size, "identity")):
        yield kernel.name, View(module, kernel)


def embed_parts(run: Run, view: View, positions: Mapping[str, Tensor | None]) -> dict[str, Embedded]:
    """Embed the items of the named splits at these positions, or all where there are none, without augmentation."""
    parts = {}
    for name, drawn in positions.items():
        items = getattr(run.splits, name)
        rows = torch.arange(len(items)) if drawn is None else drawn
        z = outputs(view.module, items, run.training.precision, rows, dim=1)
        parts[name] = Embedded(z.float(), labels_of(items, rows))
    return parts
