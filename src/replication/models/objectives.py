"""Two losses to compare CLaI's with, on its own trunk: prototypical networks, and the alignment itself.

Both draw as many items a step as a CLaI group of an anchor and a reference batch, and compare one half of them with the other.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clai.alignment import alignment_scores, one_vs_rest, target_matrix
from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.encoders import Encoder
from clai.kernels import Kernel
from clai.trainer import Epoch, TrainingSettings, precision_context
from replication.models.batchwise import batchwise_learning


def train_prototypical(
    encoder: Encoder,
    items: Items,
    training: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train an encoder with one condition in place by the loss of prototypical networks (Snell et al. 2017, equation 2).

    Half of a batch is the support, whose class means are the prototypes; the other half asks. A step takes all classes, as a
    batch has them, and not an episode of a few.

    Returns:
        The history. Other arguments and errors are those of `replication.models.batchwise.batchwise_learning`.
    """
    device = encoder.head.weight.device

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(device, training.precision):
            z = encoder(x)[0]
        half = len(z) // 2
        return prototypical_loss(z[:half], labels[:half], z[half:], labels[half:])

    return batchwise_learning(encoder, objective, items, training, validate, checkpoint)


def prototypical_loss(support: Tensor, y_support: Tensor, query: Tensor, y_query: Tensor) -> Tensor:
    """Return the mean of -log softmax(-|z - c_y|^2) over queries, c being the class means of the support.

    Args:
        support, query: embeddings (S, L) and (Q, L).
        y_support, y_query: class indices (S,) and (Q,). A query whose class the support lacks has no prototype and is left out.
    """
    classes, place = y_support.unique(return_inverse=True)
    member = nn.functional.one_hot(place, len(classes)).to(support.dtype)
    prototypes = member.T @ support / member.sum(0).unsqueeze(1)
    known = torch.isin(y_query, classes)
    logits = -torch.cdist(query[known], prototypes, compute_mode="donot_use_mm_for_euclid_dist").square()
    return nn.functional.cross_entropy(logits, torch.searchsorted(classes, y_query[known]))


def train_by_alignment(
    encoder: Encoder,
    kernel: Kernel,
    items: Items,
    conditions: int,
    training: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train CLaI's encoder and kernel in place to maximise the centred alignment of similarities and targets.

    The loss is 1 minus the mean over conditions of the centred alignment (Cortes, Mohri & Rostamizadeh 2012). Without centring,
    constant similarities of -1 already have a high alignment with `product`.

    Returns:
        The history. Other arguments and errors are those of `clai.learning.collaborative_learning`.
    """
    device = encoder.head.weight.device

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(device, training.precision):
            z = encoder(x)
        signs, half = one_vs_rest(labels, conditions).to(z.dtype), len(labels) // 2
        target = target_matrix(signs[:, :half], signs[:, half:], training.target)
        return 1 - alignment_scores(kernel(z[:, :half], z[:, half:]), target)[1].mean()

    return batchwise_learning(nn.ModuleList([encoder, kernel]), objective, items, training, validate, checkpoint)
