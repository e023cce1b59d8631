"""CLaI's encoder trained on the supervised contrastive loss (Khosla et al. 2020)."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.encoders import Encoder
from clai.learning import batchwise_learning
from clai.trainer import Epoch, TrainingSettings, compiled, precision_context


def train_supervised_contrastive(
    encoder: Encoder,
    items: Items,
    conditions: int,
    training: TrainingSettings,
    temperature: float,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train an encoder in place on its device, with the loss of pytorch-metric-learning.

    Args:
        encoder: with one condition, whose head is the projection. It is repeated for all conditions at the end, so that
            Collaborative Inference decides by the largest mean similarity.
        conditions: C for a multiclass task, 1 for a binary one.
        temperature: of the loss's softmax over similarities.

    Returns:
        The history. Other arguments and errors are those of `clai.learning.batchwise_learning`.
    """
    # The import is slow, and jobs that train another model import this module too.
    from pytorch_metric_learning.losses import SupConLoss

    head, loss = encoder.head, SupConLoss(temperature=temperature)
    network = compiled(encoder, training)

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(head.weight.device, training.precision):
            z = network(x)[0]
        return loss(z, labels)

    history = batchwise_learning(encoder, objective, items, training, validate, checkpoint)
    head.weight = nn.Parameter(head.weight.detach().repeat(conditions, 1, 1))
    head.bias = nn.Parameter(head.bias.detach().repeat(conditions, 1, 1))
    return history
