"""Settings of a small training, for tests to change, kernels as printed, and embeddings as trained ones may be."""

import torch

from clailearn import algorithms_as_printed as printed
from clailearn.alignment import one_vs_rest
from clailearn.kernels import Kernel
from clailearn.trainer import TrainingSettings
from replication.models.embedding import Embedded

SETTINGS = TrainingSettings(
    epochs=4, batch_size=8, optimiser="adamw", learning_rate=1e-2, momentum=0.0, weight_decay=0.0,
    learning_rate_schedule="one_cycle", warmup=0.25, precision="float32", schedule="joint", references=1,
    reference_reduction="mean", pair_weighting="none", samples_per_class=None, target="zero", seed=0,
)  # fmt: skip


def clouds(n: int, seed: int, classes: int, separation: float = 1.5) -> Embedded:
    """Return embeddings under the condition of each class, the class moved away from the others by the separation."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    z = torch.randn(classes, n, 4, generator=generator)
    z[..., 0] += separation * (one_vs_rest(y, classes) > 0)
    return Embedded(z, y)


def printed_similarity(kernel: Kernel) -> printed.Similarity:
    """Return the printed form of a kernel, on its parameters as they are now."""
    if kernel.name == "cosine":
        return printed.cosine
    return printed.mahalanobis(kernel.root.tril().T @ kernel.root.tril())
