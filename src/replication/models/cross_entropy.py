"""The trunk of CLaI's encoder with logits, trained on cross-entropy."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.encoders import Classifier
from clai.learning import class_draw
from clai.trainer import Epoch, TrainingSettings, precision_context
from replication.models.batchwise import batchwise_learning, draw_shift


def train_cross_entropy(
    classifier: Classifier,
    items: Items,
    training: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train a classifier in place on its device.

    Where CLaI learns from draws of at most `samples_per_class` of a class, so does the classifier. Its logits are then shifted
    to the class shares of all samples.

    Returns:
        The history. Other arguments and errors are those of `replication.models.batchwise.batchwise_learning`.
    """
    device = classifier.logits.weight.device

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(device, training.precision):
            logits = classifier(x)
        drawn = class_draw(labels, training.samples_per_class, torch.default_generator)
        return nn.functional.cross_entropy(logits[drawn], labels[drawn])

    history = batchwise_learning(classifier, objective, items, training, validate, checkpoint)
    if training.samples_per_class is not None:
        with torch.no_grad():
            classifier.logits.bias.add_(draw_shift(items, training).to(classifier.logits.bias))
    return history
