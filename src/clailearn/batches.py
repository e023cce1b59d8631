"""Sources of batches for training and embedding, indexed by item.

An item is the unit that training shuffles: a vector, an image, or a whole recording (a collection of samples with labels, line
651). A batch of items gives encoder input and the labels of all samples in it.
"""

from typing import Any, Protocol

import torch
from torch import Tensor


class Items(Protocol):
    """A split of a dataset from which batches are drawn."""

    labels: Tensor
    """Class indices of all samples, shape (samples,), on the CPU, in the order of items."""
    inputs: int
    """Number of channels or variables that the encoder takes."""

    def __len__(self) -> int:
        """Return the number of items."""

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        """Return encoder input and labels (samples,) of the items; a generator draws augmentation, None leaves it out."""

    def begin_epoch(self, epoch: int) -> None:
        """Learn which epoch of a training the next batches are for, from 1 on; nothing, unless it is overridden."""
        return

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        """Return the number of samples in each block of items, one an item unless it is overridden."""
        return [len(block) for block in blocks]


class Vectors(Items):
    """Vectors (N, inputs), or tensors (N, ...) for a trunk that takes them, drawn as they are.

    Args:
        labels: class indices (N,), on the CPU.
    """

    def __init__(self, x: Any, labels: Tensor) -> None:
        self.x, self.labels, self.inputs = x, labels, x.shape[1]

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        return self.x[items.to(self.x.device)], self.labels[items].to(self.x.device)
