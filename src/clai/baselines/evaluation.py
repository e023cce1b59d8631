"""Figures of merit of a baseline that was fitted on embeddings."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clai.experiment import Embedded, evaluate_binary, evaluate_multiclass

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


def evaluate_baseline(
    baseline: Baseline, embedded: Mapping[str, Embedded], settings: Mapping[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Metrics and reliability table as `clai.experiment.evaluate_clai` gives them, with an empty rule."""
    (z, y), (z_val, y_val) = as_vectors(embedded["test"]), as_vectors(embedded["val"])
    scores, scores_val = baseline.scores(z), baseline.scores(z_val)
    if scores.shape[1] > 2:
        return evaluate_multiclass(scores, y, scores_val, y_val, settings)
    odds, odds_val = (s[:, 1] - s[:, 0] for s in (scores, scores_val))
    return evaluate_binary(odds, baseline.predict_proba(z)[:, 1], y, odds_val, y_val, settings)
