"""The Bayes rule: does a narrower Parzen window calibrate it, and what does ROC-AUC make of coarser scores.

The Parzen form G = (1 + S) / 2 to the power gamma is a window of another width. The Gaussian kernel has exp(-gamma d), as wide as
G over the root of gamma. Validation samples choose gamma, and the temperature beside it, by log loss.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from clailearn.calibration import fit_temperature
from clailearn.inference import ParzenMeans, decide, log_posteriors
from clailearn.kernels import Kernel
from clailearn.votes import References
from replication.metrics.classification import multiclass_metrics, roc_auc
from replication.models.embedding import Embedded, means_of_views

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
BANDWIDTH_COLUMNS = ["reading", "metric", "value"]
VALIDATION_SAMPLES = 4000
"""Validation samples that choose power and temperatures; all where there are fewer."""
POWERS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
"""Of the Parzen form, ascending, 1 among them; the best is refined between its neighbours."""
DECIMALS = 1
"""To which f is rounded before one of the areas under the ROC curve."""
# Of log gamma; the log loss is flat around its minimum.
_TOLERANCE = 0.01


class Power(Kernel):
    """A kernel whose Parzen form is that of another kernel to the power gamma."""

    def __init__(self, kernel: Kernel, gamma: float) -> None:
        super().__init__()
        self.kernel, self.gamma = kernel, gamma

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return 2 * self.log_parzen(anchor, reference).exp() - 1

    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return self.gamma * self.kernel.log_parzen(anchor, reference)

    def coordinates(self, z: Tensor) -> Tensor:
        return self.kernel.coordinates(z)


def measure_bandwidth(kernel: Kernel, references: References, val: Embedded, test: Embedded) -> pd.DataFrame:
    """Return figures of merit on test samples of the posterior by windows of two widths, and of f, as it stands and scaled.

    `val` chooses power and temperatures; `test` is scored once. Returns `BANDWIDTH_COLUMNS`, all fractions but log loss (nats),
    power and temperature. The readings are parzen and parzen-power, the Parzen posteriors of the conditions, normalised, with
    the power 1 and the chosen one; softmax, of f of the printed rule; each also after a temperature; and those of
    `coarser_roc_auc`.
    """
    kernel = kernel.cpu().eval()
    y, y_val = test.y.numpy(), val.y.numpy()

    def posteriors(part: Embedded, power: float) -> Floats:
        return _scores(log_posteriors(_means(Power(kernel, power), references, part)))

    gamma = choose_power(lambda power: log_loss(y_val, posteriors(val, power)), POWERS)
    f, f_val = (_scores(decide(_means(kernel, references, part), "printed")) for part in (test, val))
    measured: dict[str, Mapping[str, float]] = {}
    for reading, power in (("parzen", 1.0), ("parzen-power", gamma)):
        temperature = fit_temperature(posteriors(val, power), y_val)
        measured |= _scaled(reading, power, posteriors(test, power), y, temperature)
    measured |= _scaled("softmax", 1.0, f, y, fit_temperature(f_val, y_val))
    measured |= {reading: {"roc_auc": value} for reading, value in coarser_roc_auc(y, f).items()}
    rows = [(reading, metric, value) for reading, values in measured.items() for metric, value in values.items()]
    return pd.DataFrame(rows, columns=BANDWIDTH_COLUMNS)


def choose_power(loss: Callable[[float], float], powers: Sequence[float]) -> float:
    """Return the power of least loss: the best of those given, since the loss may have several minima, refined beside it."""
    losses = [loss(power) for power in powers]
    best = int(np.argmin(losses))
    low, high = (math.log(powers[place]) for place in (max(best - 1, 0), min(best + 1, len(powers) - 1)))
    refined = minimize_scalar(
        lambda log_power: loss(math.exp(log_power)), bounds=(low, high), method="bounded", options={"xatol": _TOLERANCE}
    )
    return float(math.exp(refined.x)) if refined.fun < losses[best] else float(powers[best])


def log_loss(y: Labels, scores: Floats) -> float:
    """Return the mean negative log-likelihood (nats) of classes (N,) under softmax of scores (N, C)."""
    return float(-log_softmax(scores, axis=1)[np.arange(len(y)), y].mean())


def merits(y: Labels, scores: Floats) -> dict[str, float]:
    """Return accuracy, ece, log_loss and roc_auc of softmax of scores (N, C)."""
    metrics = multiclass_metrics(y, np.exp(log_softmax(scores, axis=1)))
    chosen = {name: metrics[name] for name in ("accuracy", "ece", "roc_auc")}
    return {**chosen, "log_loss": log_loss(y, scores)}


def coarser_roc_auc(y: Labels, f: Floats) -> Mapping[str, float]:
    """Return the mean one-versus-rest ROC-AUC of f (N, C), of f rounded, of decisions f > 0 and of the class of the largest f."""
    one_hot = np.eye(f.shape[1])[f.argmax(axis=1)]
    readings = {"f": f, "f-rounded": f.round(DECIMALS), "decisions": (f > 0).astype(float), "label": one_hot}
    return {
        reading: float(np.mean([roc_auc(y == k, scores[:, k], f"class {k}") for k in range(f.shape[1])]))
        for reading, scores in readings.items()
    }


def _scaled(
    reading: str, power: float, scores: Floats, y: Labels, temperature: float
) -> dict[str, Mapping[str, float]]:
    """Return the merits of scores (N, C) as they are and over the temperature, by reading."""
    readings = {reading: 1.0, f"{reading}-temperature": temperature}
    return {name: {"power": power, "temperature": by, **merits(y, scores / by)} for name, by in readings.items()}


def _scores(values: Tensor) -> Floats:
    """Return values (K, N) as scores (N, K)."""
    return values.double().T.numpy()


@torch.no_grad()
def _means(kernel: Kernel, references: References, part: Embedded) -> ParzenMeans:
    """Return the mean similarities of samples to the references."""
    means = means_of_views(kernel, part, references.z, references.y, references.population)
    if len(means.share) > 1:
        return means
    # Two classes get a condition each, f of the first being minus that of the second.
    positive, negative, share, error_positive, error_negative = means
    return ParzenMeans(
        torch.cat([negative, positive]), torch.cat([positive, negative]), torch.cat([1 - share, share]),
        torch.cat([error_negative, error_positive]), torch.cat([error_positive, error_negative]),
    )  # fmt: skip
