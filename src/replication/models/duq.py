"""DUQ, deterministic uncertainty quantification (van Amersfoort et al. 2020): kernels between inputs and class centroids."""

from typing import Any, Self

import torch
from torch import Tensor, nn

from clailearn.batches import Items
from clailearn.encoders import Encoder, build_encoder
from replication.models.base import Floats, Network, View, both_views
from replication.models.run import Run

LENGTH_SCALE = 0.1
"""Of the kernel, as in the authors' experiments on CIFAR-10."""
PENALTY = 0.5
"""Weight of the gradient penalty, as there; it goes with the means and the norm of their code, which this follows."""
MOMENTUM = 0.99
"""Of the centroids. The authors find 0.99 to 0.999 equally good; the trainings here are short."""
_INITIAL_COUNT = 13.0
_INITIAL_DEVIATION = 0.05


class Centroids(nn.Module):
    """An encoder under one condition a class, and a moving mean of each class's embeddings under its own condition."""

    counts: Tensor
    sums: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        classes, _, size = encoder.head.weight.shape
        self.register_buffer("counts", torch.full((classes,), _INITIAL_COUNT))
        self.register_buffer("sums", _INITIAL_COUNT * _INITIAL_DEVIATION * torch.randn(classes, size))

    def forward(self, x: Any) -> Tensor:
        """Return log K (N, C) of encoder input."""
        return self.log_kernel(self.encoder(x))

    def log_kernel(self, z: Tensor) -> Tensor:
        """Return log K (N, C) of z (C, N, L): minus mean squared distances to centroids over twice the squared scale."""
        centroids = (self.sums / self.counts.unsqueeze(1)).unsqueeze(1)
        return -(z - centroids).square().mean(-1).T / (2 * LENGTH_SCALE**2)

    @torch.no_grad()
    def follow(self, z: Tensor, labels: Tensor) -> None:
        """Move the centroids towards the embeddings (C, N, L) of a batch."""
        member = nn.functional.one_hot(labels, len(self.counts)).to(z.dtype)
        self.counts.lerp_(member.sum(0), 1 - MOMENTUM)
        self.sums.lerp_(torch.einsum("knl,nk->kl", z, member), 1 - MOMENTUM)


class DUQ(Network):
    """Kernels K_k of each class's embedding and its centroid, trained as C binary classifiers; far from all centroids all are 0.

    The loss is the mean of their binary cross-entropies, and PENALTY (|d sum_k K_k / dx| - 1)^2 keeps the kernels sensitive to
    the input. The centroids follow the batch of a step before the step, without an evaluation of their own. DUQ learns from
    whole batches, whatever `samples_per_class`.
    """

    module: Centroids
    network: Encoder

    def build(self, run: Run) -> Self:
        encoder = build_encoder(run.settings, run.inputs, run.classes, run.id.seed)
        self.module, self.network = Centroids(encoder), encoder
        return self

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        x.requires_grad_(True)
        z = self.forward(run, x)
        self.module.follow(z.detach(), labels)
        log_k = self.module.log_kernel(z)
        return binary_loss(log_k, labels) + PENALTY * gradient_penalty(x, log_k)

    def familiarity(self, run: Run, items: Items) -> Floats:
        """Return the largest log K_k."""
        scores: Floats = self.scores(run, items).max(1)
        return scores

    def views(self) -> list[View]:
        return both_views(self.network, self.network.head.weight.shape[2])


def binary_loss(log_k: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over samples and classes of -y log K - (1 - y) log(1 - K), for log K (N, C)."""
    own = nn.functional.one_hot(labels, log_k.shape[1]).bool()
    # Not below a rounding of 0, where log(1 - K) has no value.
    others = -torch.log(-torch.expm1(log_k.clamp_max(-1e-6)))
    return torch.where(own, -log_k, others).mean()


def gradient_penalty(x: Tensor, log_k: Tensor) -> Tensor:
    """Return the mean over samples of (|d sum_k K_k / dx| - 1)^2."""
    (gradient,) = torch.autograd.grad(log_k.exp().sum(), x, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).square().mean()
