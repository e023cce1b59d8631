"""A Gaussian process on embeddings that are learned with it: CLaI's encoder, trained on the evidence lower bound.

This is deep kernel learning with a sparse variational process (Wilson et al. 2016). It draws minibatches of the recordings that
CLaI is trained on, and of their hours the same draw of each class, because a process cannot learn from so few positive hours
otherwise. Log-odds are then shifted to the prevalence, as those of `replication.models.row_classifiers` are.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gpytorch
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from clai.batches import Items, Splits
from clai.checkpoints import Checkpoint
from clai.encoders import ConditionedHead, Encoder, build_trunk
from clai.learning import class_draw
from clai.stability import finite
from clai.trainer import Epoch, TrainingSettings
from replication.models.batchwise import batchwise_learning, draw_shift
from replication.models.gaussian_process import SparseProcess, numerical_failures


class Latent(NamedTuple):
    """The process at samples, (N,) each: posterior mean and deviation of f, and the probability of the positive class.

    The probability is that among hours as drawn in training.
    """

    mean: Tensor
    sd: Tensor
    probability: Tensor

    def log_odds(self, shift: float) -> NDArray[np.float64]:
        """Return the log-odds of the positive class, (N,), moved by `shift` (`prevalence_shift`)."""
        return np.asarray(self.probability.double().logit(eps=1e-12).numpy() + shift)


class DeepKernelGP(nn.Module):
    """Encoder, process and likelihood, trained together."""

    def __init__(self, encoder: Encoder, inducing: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.process = SparseProcess(inducing, 1)
        self.likelihood = gpytorch.likelihoods.BernoulliLikelihood()

    @torch.no_grad()
    def latent(self, items: Items) -> Latent:
        """Return the process at all samples of the items, on the CPU."""
        self.eval()
        parts = []
        for block in torch.arange(len(items)).split(512):
            z = self.encoder(items.batch(block, None)[0])[0]
            for samples in z.split(8192):
                f = self.process(samples)
                parts.append((f.mean[0].cpu(), f.stddev[0].cpu(), self.likelihood(f).mean[0].cpu()))
        return Latent(*(torch.cat(part) for part in zip(*parts, strict=True)))


def train_deep_kernel_gp(
    splits: Splits,
    training: TrainingSettings,
    *,
    encoder: Mapping[str, Any],
    embedding_size: int,
    inducing_points: int,
    device: torch.device,
    checkpoint: Checkpoint | None,
) -> tuple[DeepKernelGP, list[Epoch]]:
    """Train encoder and process; two classes only.

    Args:
        splits: training items, and validation items for the area under the ROC curve.
        training: its seed initialises everything.
        encoder: settings of the trunk, for `clai.encoders.build_trunk`.
        embedding_size: dimensions L of the process's inputs.
        inducing_points: number of inducing points; at most the number of samples.

    Returns:
        The model on the device and its history: loss (minus the bound, per sample) and, if both classes occur among the
        validation samples, validation_auroc. Errors are those of `replication.models.batchwise.batchwise_learning`.
    """
    torch.manual_seed(training.seed)
    items = splits.train
    trunk = build_trunk(encoder, items.inputs)
    network = Encoder(trunk, ConditionedHead(int(trunk.features), 1, embedding_size)).to(device)  # type: ignore[arg-type]
    with torch.no_grad():  # inducing points start where an untrained encoder puts some of the samples
        z = network(items.batch(torch.randperm(len(items))[: min(inducing_points, len(items))], None)[0])[0]
        inducing = z[torch.randperm(len(z))[:inducing_points]].cpu()
    model = DeepKernelGP(network, inducing).to(device)
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model.process, num_data=len(items.labels))

    def objective(x: Any, labels: Tensor) -> Tensor:
        drawn = class_draw(labels, training.samples_per_class, torch.default_generator)
        with numerical_failures():
            return -bound(model.process(model.encoder(x)[0][drawn]), labels[drawn].float().unsqueeze(0)).sum()

    def validate() -> Epoch:
        with numerical_failures():
            mean, labels = finite(model.latent(splits.val).mean), splits.val.labels
        # One class alone has no area under the curve, which is no divergence.
        return (
            {"validation_auroc": float(roc_auc_score(labels.numpy(), mean.numpy()))} if len(labels.unique()) > 1 else {}
        )

    return model, batchwise_learning(model, objective, items, training, validate, checkpoint)


def prevalence_shift(items: Items, training: TrainingSettings) -> float:
    """Return what log-odds learned from draws of the training items lack to be log-odds at the items' prevalence."""
    negative, positive = draw_shift(items, training).tolist()
    return float(positive - negative)
