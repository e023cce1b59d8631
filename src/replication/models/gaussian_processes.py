"""Gaussian process classification: sparse, variational, trained in minibatches (figure 4, section IV-D1).

The process is f ~ GP(m, s^2 exp(-|z - z'|^2 / 2 l^2)) with a learned constant mean m, scale s and one lengthscale l for each
dimension. Its likelihood is Bernoulli with a probit link, its variational posterior a Gaussian at learned inducing points
(Hensman et al. 2015), by GPyTorch. It tells two classes apart.

One process sees the inputs of single hours. The other sees embeddings that are learned with it: deep kernel learning (Wilson et
al. 2016).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import gpytorch
import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.special import logit
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from clailearn.checkpoints import seeded_generators
from clailearn.encoders import Encoder, build_encoder, move
from clailearn.learning import class_draw
from clailearn.trainer import Items, Steps
from replication.models.base import Floats, Labels, Network, RowClassifier, Rows, draw_shift
from replication.models.row_classifiers import class_sample
from replication.models.run import Run

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
    """A process, a batch of one, whose inducing points start at these points (n, L)."""

    def __init__(self, inducing: Tensor) -> None:
        shape = torch.Size([1])
        posterior = gpytorch.variational.CholeskyVariationalDistribution(len(inducing), batch_shape=shape)
        strategy = gpytorch.variational.VariationalStrategy(
            self, inducing.unsqueeze(0), posterior, learn_inducing_locations=True
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


def posterior(process: SparseProcess, likelihood: nn.Module, blocks: Iterable[Tensor]) -> list[Tensor]:
    """Return mean and standard deviation of f and the probability at inputs in blocks (n, L), (N,) each on the CPU."""
    found = [(f.mean[0].cpu(), f.stddev[0].cpu(), likelihood(f).mean[0].cpu()) for f in map(process, blocks)]
    return [torch.cat(part) for part in zip(*found, strict=True)]


class GaussianProcess(RowClassifier):
    """A process of rows, standardised with their own statistics; fitted by maximising the evidence lower bound with Adam."""

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, *, seed: int, **settings: Any) -> Self:
        """Fit to a sample of rows (`class_sample`), from k-means centres as inducing points; raise DivergenceError."""
        rows, self.shift = class_sample(y, settings["samples_per_class"], seed)
        sample = x[rows].astype(np.float64)
        self.scaler = StandardScaler().fit(sample)
        standard = self.scaler.transform(sample)
        points = min(settings["inducing_points"], len(rows))
        centres = MiniBatchKMeans(points, n_init=1, random_state=seed).fit(standard)
        inputs = torch.as_tensor(standard, dtype=torch.float32)
        target = torch.from_numpy(y[rows]).float().unsqueeze(0)

        process = SparseProcess(torch.as_tensor(centres.cluster_centers_, dtype=torch.float32))
        likelihood = gpytorch.likelihoods.BernoulliLikelihood()
        bound = gpytorch.mlls.VariationalELBO(likelihood, process, num_data=len(inputs))
        rate, size = settings["learning_rate"], settings["batch_size"]
        optimiser = torch.optim.Adam(process.parameters(), lr=rate)
        generator = torch.Generator().manual_seed(seed)
        advice = "lower baselines.gp.learning_rate. Nothing is kept of this fit, which has no checkpoint"
        process.train()
        # GPyTorch starts the variational mean with a little noise from the global generator.
        with seeded_generators(seed, torch.device("cpu")):
            for epoch in range(1, settings["epochs"] + 1):
                steps = Steps(-(-len(inputs) // size), inputs.device)
                with steps.refusing_divergence(process, epoch, advice):
                    for items in torch.randperm(len(inputs), generator=generator).split(size):
                        optimiser.zero_grad()
                        steps.rates.append(rate)
                        with numerical_failures():
                            loss = -bound(process(inputs[items]), target[:, items]).sum()
                        loss.backward()
                        steps.add({"loss": loss.detach()})
                        optimiser.step()
        self.process, self.likelihood = process, likelihood
        return self

    def score_rows(self, x: Rows) -> Floats:
        """Return log-odds (N,), with the uncertainty of f integrated out."""
        return np.asarray(logit(self.predict(x)[2].clip(1e-12, 1 - 1e-12))) + self.shift

    def latent(self, run: Run, items: Items) -> tuple[Floats, Floats]:
        """Return posterior mean and standard deviation of f at the samples, (N,) each."""
        return self.predict(items.x.numpy())[:2]  # type: ignore[attr-defined]

    @torch.no_grad()
    def predict(self, x: Rows) -> tuple[Floats, Floats, Floats]:
        """Return mean and standard deviation of f and the probability at rows (N, F), (N,) each."""
        self.process.eval()
        standard = torch.as_tensor(self.scaler.transform(x.astype(np.float64)), dtype=torch.float32)
        parts = posterior(self.process, self.likelihood, standard.split(_BLOCK))
        mean, sd, probability = (part.double().numpy() for part in parts)
        return mean, sd, probability


class DeepKernelGP(Network):
    """A Gaussian process on embeddings that are learned with it: CLaI's encoder, trained on the evidence lower bound.

    It draws as many recordings as CLaI's two batches have, and of their hours at most `samples_per_class` of each class, because
    a process cannot learn from so few positive hours otherwise. Log-odds are then shifted to the prevalence. Two classes only.
    """

    network: Encoder

    def build(self, run: Run) -> Self:
        """Set the untrained module. The inducing points start where the untrained encoder puts some of the samples."""
        items, number = run.splits.train, run.settings["baselines"]["gp"]["inducing_points"]
        torch.manual_seed(run.id.seed)
        self.network = build_encoder(run.settings, run.inputs, 1, run.id.seed).to(run.device)
        with torch.no_grad():
            z = self.network(items.batch(torch.randperm(len(items))[: min(number, len(items))], None)[0])[0]
            inducing = z[torch.randperm(len(z))[:number]].cpu()
        self.process = SparseProcess(inducing)
        self.likelihood = gpytorch.likelihoods.BernoulliLikelihood()
        self.module = nn.ModuleDict({"encoder": self.network, "process": self.process, "likelihood": self.likelihood})
        return self

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.process, num_data=len(run.splits.train.labels))
        drawn = class_draw(labels, run.training.samples_per_class, torch.default_generator)
        with numerical_failures():
            z = self.forward(run, x)[0][drawn].float()
            return -bound(self.process(z), labels[drawn].float().unsqueeze(0)).sum()

    def validation_scores(self, run: Run) -> tuple[Floats, Tensor]:
        items = run.splits.val
        with numerical_failures():
            return self._posterior(run, items)[0].double().numpy(), items.labels

    def scores(self, run: Run, items: Items) -> Floats:
        """Return log-odds at the prevalence of the training samples, (N,)."""
        move(self.module, run.device)
        negative, positive = draw_shift(run.splits.train, run.training).tolist()
        return np.asarray(self._posterior(run, items)[2].double().logit(eps=1e-12).numpy() + float(positive - negative))

    def latent(self, run: Run, items: Items) -> tuple[Floats, Floats]:
        move(self.module, run.device)
        mean, sd, _ = self._posterior(run, items)
        return mean.numpy(), sd.numpy()

    @torch.no_grad()
    def _posterior(self, run: Run, items: Items) -> list[Tensor]:
        """Return mean and standard deviation of f and the probability among samples as drawn in training, (N,), on the CPU."""
        self.module.eval()
        batches = (items.batch(block, None)[0] for block in torch.arange(len(items)).split(512))
        blocks = (samples for x in batches for samples in self.forward(run, x)[0].float().split(8192))
        return posterior(self.process, self.likelihood, blocks)
