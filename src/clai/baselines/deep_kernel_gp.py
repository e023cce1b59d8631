"""A Gaussian process on embeddings that are learned with it: the encoder of CLaI, trained by the evidence lower bound.

Deep kernel learning with a sparse variational process (Wilson et al. 2016), in minibatches of the same recordings that CLaI
is trained on, with the same draw of hours of either class: the positive ones are too few to be learned from otherwise. Its
probabilities are put back to the prevalence as those of `clai.baselines.hourly_classifiers` are.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gpytorch
import torch
from torch import Tensor, nn

from clai.baselines.gaussian_process import SparseProcess
from clai.batches import Items, Splits
from clai.checkpoints import Checkpoint
from clai.encoders import ConditionedHead, Encoder, build_trunk
from clai.experiments.baseline_evaluation import evaluate_log_odds
from clai.experiments.evaluation import Evaluation, Utilities
from clai.learning import batchwise_learning, class_draw, draw_shift
from clai.metrics.roc_auc import roc_auc
from clai.stability import finite
from clai.trainer import Epoch, TrainingSettings


class Latent(NamedTuple):
    """Of each sample (N,): posterior mean and deviation of f, and the probability of the positive class among hours as drawn."""

    mean: Tensor
    sd: Tensor
    probability: Tensor


class DeepKernelGP(nn.Module):
    """Encoder, process and likelihood, trained together."""

    def __init__(self, encoder: Encoder, inducing: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.process = SparseProcess(inducing, 1)
        self.likelihood = gpytorch.likelihoods.BernoulliLikelihood()

    @torch.no_grad()
    def latent(self, items: Items) -> Latent:
        """f at all samples of the items, on the CPU."""
        self.eval()
        parts = []
        for block in torch.arange(len(items)).split(512):
            z = self.encoder(items.batch(block, None)[0])[0]
            for some in z.split(8192):
                f = self.process(some)
                parts.append((f.mean[0].cpu(), f.stddev[0].cpu(), self.likelihood(f).mean[0].cpu()))
        return Latent(*(torch.cat(part) for part in zip(*parts, strict=True)))


def train_deep_kernel_gp(
    split: Splits,
    settings: Mapping[str, Any],
    seed: int,
    device: torch.device,
    checkpoint: Checkpoint | None,
) -> tuple[DeepKernelGP, list[Epoch]]:
    """Train with config.yaml's `training` and the `inducing_points` of `baselines.gp`; two classes only.

    Returns the model on the device and its history: loss (minus the bound, a sample) and, if both classes are held out,
    validation_auroc. Errors as `clai.learning.batchwise_learning`.
    """
    torch.manual_seed(seed)
    trunk = build_trunk(settings["encoder"], split.train.inputs)
    encoder = Encoder(trunk, ConditionedHead(int(trunk.features), 1, settings["embedding_size"])).to(device)  # type: ignore[arg-type]
    count = settings["baselines"]["gp"]["inducing_points"]
    with torch.no_grad():  # inducing points start where an untrained encoder puts some of the samples
        z = encoder(split.train.batch(torch.randperm(len(split.train))[: min(count, len(split.train))], None)[0])[0]
        inducing = z[torch.randperm(len(z))[:count]].cpu()
    model = DeepKernelGP(encoder, inducing).to(device)
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model.process, num_data=len(split.train.labels))

    learning = TrainingSettings.of(settings, 1, seed)

    def objective(x: Any, labels: Tensor) -> Tensor:
        chosen = class_draw(labels, learning.samples_per_class, torch.default_generator)
        return -bound(model.process(model.encoder(x)[0][chosen]), labels[chosen].float().unsqueeze(0)).sum()

    def validate() -> Epoch:
        mean = finite(model.latent(split.val).mean)
        # One class has no AUROC, which is no divergence.
        known = len(split.val.labels.unique()) > 1
        return {"validation_auroc": roc_auc(split.val.labels.numpy(), mean.numpy())} if known else {}

    return model, batchwise_learning(model, objective, split.train, learning, validate, checkpoint)


def evaluate_deep_kernel_gp(
    model: DeepKernelGP, split: Splits, settings: Mapping[str, Any], seed: int, utilities: Utilities | None
) -> tuple[Evaluation, Latent]:
    """Figures of merit of the probabilities, and the latent process at the test samples."""
    test, val = model.latent(split.test), model.latent(split.val)
    negative, positive = draw_shift(split.train, TrainingSettings.of(settings, 1, seed)).tolist()
    shift = positive - negative
    odds, odds_val = (part.probability.double().logit(eps=1e-12).numpy() + shift for part in (test, val))
    y, y_val = split.test.labels.numpy(), split.val.labels.numpy()
    return evaluate_log_odds(odds, y, odds_val, y_val, settings, utilities), test
