"""Figures of merit of a baseline."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from clai.experiments.evaluation import Evaluation, Utilities, evaluate_binary, evaluate_multiclass
from clai.experiments.training import Embedded

Floats = NDArray[np.float64]


class Baseline(Protocol):
    """What a `fit_<method>` of this package returns."""

    def scores(self, z: Floats) -> Floats:
        """Larger means more likely, (N, D) -> (N, C)."""

    def predict_proba(self, z: Floats) -> Floats:
        """Class probabilities, (N, D) -> (N, C)."""


def as_vectors(embedded: Embedded) -> tuple[Floats, NDArray[np.int64]]:
    """Embeddings of all conditions side by side, (N, K L), and labels (N,)."""
    return embedded.z.permute(1, 0, 2).flatten(1).double().numpy(), embedded.y.numpy()


def evaluate_log_odds(
    log_odds: Floats,
    y: NDArray[np.int64],
    log_odds_val: Floats,
    y_val: NDArray[np.int64],
    settings: Mapping[str, Any],
    utilities: Utilities | None,
) -> Evaluation:
    """Log-odds of the positive class of test (N,) and validation samples (M,)."""
    return evaluate_binary(log_odds, expit(log_odds), y, log_odds_val, y_val, settings, utilities)


def evaluate_baseline(
    baseline: Baseline, embedded: Mapping[str, Embedded], settings: Mapping[str, Any], utilities: Utilities | None
) -> Evaluation:
    """Scores and probabilities of a baseline on the test samples."""
    (z, y), (z_val, y_val) = as_vectors(embedded["test"]), as_vectors(embedded["val"])
    scores, scores_val = baseline.scores(z), baseline.scores(z_val)
    if scores.shape[1] > 2:
        return evaluate_multiclass(scores, y, scores_val, y_val, settings)
    odds, odds_val = (s[:, 1] - s[:, 0] for s in (scores, scores_val))
    return evaluate_binary(odds, baseline.predict_proba(z)[:, 1], y, odds_val, y_val, settings, utilities)
