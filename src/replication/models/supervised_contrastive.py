"""Supervised contrastive learning (Khosla et al. 2020): train trunk and projection, drop the projection, read the trunk out.

The protocol is that of its authors (section 3): a batch holds two augmented views of each item; the loss compares projections
on the unit sphere, here by the linear layer that they name as one of two choices; after training the projection is dropped, and a
classifier is fitted on the frozen features of the trunk. The augmentation is that of the other methods, not the stronger one of
the authors.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.encoders import Encoder
from clai.learning import class_draw
from clai.trainer import Epoch, TrainingSettings, precision_context
from replication.models.batchwise import batchwise_learning

Floats = NDArray[np.float64]
Features = NDArray[np.float32]
Labels = NDArray[np.int64]


def views_of(kind: str, encoder: Mapping[str, Any]) -> int:
    """Return the views of an item in a batch: two where they differ, by augmentation (images) or dropout, else one.

    With one view the positives of an item are the others of its class, which the loss allows.

    Args:
        kind: of the prepared data.
        encoder: settings of the trunk; that of recordings has `dropout` of its inputs.

    >>> views_of("images", {}), views_of("recordings", {"dropout": 0.2}), views_of("features", {})
    (2, 2, 1)
    """
    return 2 if kind == "images" or (kind == "recordings" and encoder["dropout"] > 0) else 1


def train_supervised_contrastive(
    encoder: Encoder,
    items: Items,
    training: TrainingSettings,
    temperature: float,
    views: int,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train an encoder in place on its device, with the loss of pytorch-metric-learning.

    Where CLaI learns from draws of at most `samples_per_class` of a class, so does the loss.

    Args:
        encoder: with one condition, whose head is the projection.
        temperature: of the loss's softmax over similarities.
        views: of each item in a batch (`views_of`).

    Returns:
        The history. Other arguments and errors are those of `replication.models.batchwise.batchwise_learning`.
    """
    # The import is slow, and jobs that train another model import this module too.
    from pytorch_metric_learning.losses import SupConLoss

    head, loss = encoder.head, SupConLoss(temperature=temperature)

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(head.weight.device, training.precision):
            z = encoder(x)[0]
        drawn = class_draw(labels, training.samples_per_class, torch.default_generator)
        return loss(z[drawn], labels[drawn])

    return batchwise_learning(encoder, objective, items, training, validate, checkpoint, views)
