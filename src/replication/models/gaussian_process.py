"""Gaussian process classification of embeddings: sparse, variational, trained in minibatches (figure 4, line 754).

The process is f ~ GP(m, s^2 exp(-|z - z'|^2 / 2 l^2)) with a learned constant mean m, scale s and one lengthscale l for each
dimension. Its likelihood is Bernoulli with a probit link, its variational posterior a Gaussian at learned inducing points
(Hensman et al. 2015), by GPyTorch. More than two classes have C independent processes, one versus rest, whose probabilities
are scaled to sum to 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from clai.alignment import one_vs_rest
from clai.checkpoints import seeded_generators
from clai.errors import InputError
from clai.stability import FAILURES, refuse_divergence

Floats = NDArray[np.float64]

# Samples predicted at once.
_BLOCK = 4096


@contextmanager
def numerical_failures() -> Iterator[None]:
    """Raise FloatingPointError where GPyTorch raises errors of its own for numbers that are not finite."""
    try:
        yield
    except (NanError, NotPSDError) as error:
        raise FloatingPointError(str(error)) from error


class SparseProcess(gpytorch.models.ApproximateGP):
    """Independent processes, `outputs` of them, whose inducing points start at the same points (n, L)."""

    def __init__(self, inducing: Tensor, outputs: int) -> None:
        shape = torch.Size([outputs])
        posterior = gpytorch.variational.CholeskyVariationalDistribution(len(inducing), batch_shape=shape)
        strategy = gpytorch.variational.VariationalStrategy(
            self, inducing.repeat(outputs, 1, 1), posterior, learn_inducing_locations=True
        )
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(ard_num_dims=inducing.shape[1], batch_shape=shape), batch_shape=shape
        )
        # Standardised embeddings lie about sqrt(2 L) apart. A lengthscale of that order relates them at the start.
        self.covar_module.base_kernel.lengthscale = inducing.shape[1] ** 0.5

    def forward(self, z: Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))


@dataclass(frozen=True)
class GaussianProcess:
    """A fitted classifier of embeddings."""

    scaler: StandardScaler
    process: SparseProcess
    likelihood: gpytorch.likelihoods.BernoulliLikelihood

    def latent(self, z: ArrayLike) -> tuple[Floats, Floats]:
        """Return posterior mean and standard deviation of f at embeddings (N, L): (N,) each, (N, C) each for C > 2."""
        mean, sd, _ = self._predict(z)
        return (mean[:, 0], sd[:, 0]) if mean.shape[1] == 1 else (mean, sd)

    def scores(self, z: ArrayLike) -> Floats:
        """Return the posterior mean of f (N, C) at embeddings (N, L); [-f, f] for two classes."""
        mean = self._predict(z)[0]
        return np.concatenate([-mean, mean], axis=1) if mean.shape[1] == 1 else mean

    def predict_proba(self, z: ArrayLike) -> Floats:
        """Return class probabilities (N, C) at embeddings (N, L), with the uncertainty of f integrated out."""
        probability = self._predict(z)[2]
        if probability.shape[1] == 1:
            return np.concatenate([1 - probability, probability], axis=1)
        return np.asarray(probability / probability.sum(axis=1, keepdims=True))

    @torch.no_grad()
    def _predict(self, z: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return mean and standard deviation of f and the probability, each (N, processes)."""
        self.process.eval()
        parameter = next(self.process.parameters())
        x = torch.as_tensor(self.scaler.transform(np.asarray(z, dtype=np.float64))).to(parameter)
        parts: list[list[Tensor]] = []
        for block in x.split(_BLOCK):
            f = self.process(block)
            parts.append([f.mean.T, f.stddev.T, self.likelihood(f).mean.T])
        mean, sd, probability = (torch.cat(part).double().cpu().numpy() for part in zip(*parts, strict=True))
        return mean, sd, probability


def fit_gaussian_process(
    z: ArrayLike,
    y: ArrayLike,
    *,
    inducing_points: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    device: str,
) -> GaussianProcess:
    """Fit processes by maximising the evidence lower bound with Adam.

    Args:
        z: embeddings (N, L), standardised here with their own statistics.
        y: class indices (N,), every class 0 .. C - 1 present.
        inducing_points: number of inducing points, at most N. They start at k-means centres.
        epochs, batch_size, learning_rate: of Adam.
        seed: of the centres and of the shuffling.
        device: where to compute.

    Raises:
        DivergenceError: a loss or a weight is not finite, or a loss above `EXPLODED`; names epoch, step and learning rate.
        InputError: a class is missing, or embeddings are not finite.
    """
    z, y = np.asarray(z, dtype=np.float64), np.asarray(y)
    counts = np.bincount(y)
    if len(counts) < 2 or not counts.all():
        raise InputError(f"every class needs embeddings to train on, found {counts.tolist()} samples a class")
    if not np.isfinite(z).all():
        raise InputError("embeddings are not finite: check the trained encoder")
    outputs = 1 if len(counts) == 2 else len(counts)
    scaler = StandardScaler().fit(z)
    standard = scaler.transform(z)
    centres = MiniBatchKMeans(min(inducing_points, len(z)), n_init=1, random_state=seed).fit(standard).cluster_centers_
    x = torch.as_tensor(standard, dtype=torch.float32, device=device)
    target = (one_vs_rest(torch.from_numpy(y.astype(np.int64)), outputs).to(device) + 1) / 2

    process = SparseProcess(torch.as_tensor(centres, dtype=torch.float32), outputs).to(device)
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, process, num_data=len(x))
    optimiser = torch.optim.Adam(process.parameters(), lr=learning_rate)
    generator = torch.Generator().manual_seed(seed)
    steps = -(-len(x) // batch_size)
    advice = "lower baselines.gp.learning_rate. Nothing is kept of this fit, which has no checkpoint"
    process.train()
    # GPyTorch starts the variational mean with a little noise from the global generator.
    with seeded_generators(seed, torch.device(device)):
        for epoch in range(1, epochs + 1):
            losses: list[Tensor] = []
            try:
                for items in torch.randperm(len(x), generator=generator).to(device).split(batch_size):
                    optimiser.zero_grad()
                    with numerical_failures():
                        loss = -bound(process(x[items]), target[:, items]).sum()
                    loss.backward()
                    losses.append(loss.detach())
                    optimiser.step()
            except FAILURES as error:
                rates = [learning_rate] * (len(losses) + 1)
                refuse_divergence(process, losses, rates, epoch, steps, advice, error)
                raise
            refuse_divergence(process, losses, [learning_rate] * steps, epoch, steps, advice)
    return GaussianProcess(scaler, process, likelihood)
