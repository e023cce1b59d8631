"""Training on single batches, for losses that CLaI is compared with, in the loop that CLaI is trained in."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.trainer import Epoch, Figures, TrainingSettings, train

Objective = Callable[[Any, Tensor], Tensor]
"""The loss of the encoder input and the labels (samples,) of a batch."""


def batchwise_learning(
    model: nn.Module,
    objective: Objective,
    data: Items,
    settings: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
    views: int = 1,
) -> list[Epoch]:
    """Train on a loss of single batches, drawing as many items a step as a CLaI group of anchor and references.

    The model is trained in place. views: how often an item is in its batch, each time with an augmentation of its own. Other
    arguments, the history and errors are those of `clai.trainer.train`.
    """
    size = group_size(settings, len(data))
    batches = [slice(first, first + size) for first in range(0, len(data) - size + 1, size)]

    def step(rows: Tensor, condition: int | None, generator: torch.Generator) -> Figures:
        loss = objective(*data.batch(rows.repeat(views), generator))
        loss.backward()
        return {"loss": loss.detach()}

    return train(model, step, settings, validate, checkpoint, items=len(data), batches=batches)


def draw_shift(data: Items, settings: TrainingSettings) -> Tensor:
    """Return the correction of log-odds that were learned from draws of at most `samples_per_class` of each class.

    A classifier of such draws is one of all samples but for a constant a class (King & Zeng 2001): the logarithm of the class's
    share of all samples over its share of the draws. These are the draws of an epoch in an order drawn with the seed. The order
    of the data would not do: a batch of one class loses more samples to its draw than a mixed one. Shape (classes,), on the CPU.
    """
    classes = int(data.labels.max()) + 1
    if settings.samples_per_class is None:
        return torch.zeros(classes, dtype=torch.float64)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(settings.seed))
    blocks = order.split(group_size(settings, len(data)))
    counts = torch.stack(
        [torch.bincount(data.batch(block, None)[1].cpu(), minlength=classes) for block in blocks]
    ).double()
    drawn = counts.clamp_max(settings.samples_per_class)
    return counts.sum(0).log().log_softmax(0) - drawn.sum(0).log().log_softmax(0)


def group_size(settings: TrainingSettings, items: int) -> int:
    """Return the items of an anchor batch and its references, at most all items; `references: all` counts as one."""
    references = settings.references if isinstance(settings.references, int) else 1
    return min(settings.batch_size * (1 + references), items)
