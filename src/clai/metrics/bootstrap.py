"""Intervals by patient, and net benefit, from the predictions of all models on the test folds.

Hours of one patient resemble each other, so patients are what is drawn again (Efron & Tibshirani 1993). Models of one fold, and
its seeds, whose test patients are the same, are measured on the same draws: an interval of a difference is one of paired
differences, and more seeds do not pass for more patients.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from clai.metrics.challenge_utility import HourlyUtility

Floats = NDArray[np.float64]
METRICS = ("auroc", "auprc", "utility")


class Fold(NamedTuple):
    """Test rows of one fold, (rows,) each, and for each model its scores, calibrated probabilities and, where there is a utility,
    its alarms; of one seed, whose models they are. `number` is that of the fold: seeds share it.
    """

    number: int | None
    y: NDArray[np.int64]
    patient: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float32]]
    alarms: Mapping[str, NDArray[np.bool_]]
    calibrated: Mapping[str, NDArray[np.float32]]
    utility: HourlyUtility | None


class Ranked:
    """Scores in falling order, for areas under curves of weighted samples."""

    def __init__(self, y: ArrayLike, score: ArrayLike) -> None:
        score = np.asarray(score)
        self.order = np.argsort(-score, kind="stable")
        self.positive = np.asarray(y, dtype=np.float64)[self.order]
        self.ends = np.flatnonzero(np.r_[np.diff(score[self.order]) != 0, True])

    def areas(self, weight: Floats) -> tuple[float, float]:
        """Area under the ROC curve and average precision with sample weights (N,); NaN if a class has no weight."""
        own = weight[self.order]
        found = np.cumsum(own * self.positive)[self.ends]
        called = np.cumsum(own)[self.ends]
        wrong = called - found
        if not found[-1] or not wrong[-1]:
            return float("nan"), float("nan")
        gained = np.diff(found, prepend=0.0)
        auroc = float((np.diff(wrong, prepend=0.0) * (found - gained / 2)).sum() / (found[-1] * wrong[-1]))
        precision = np.divide(found, called, out=np.zeros_like(found), where=called > 0)
        return auroc, float((gained * precision).sum() / found[-1])


def patient_intervals(
    folds: Sequence[Fold], models: Sequence[str], against: Sequence[str], draws: int, seed: int
) -> pd.DataFrame:
    """95 % percentile intervals of the mean over folds of each metric, and of the differences to the models in `against`.

    Returns (model, other, metric, value, low, high, patients, draws); `other` is empty for the metric itself. The mean of a
    model is over those of the folds, of all seeds, that have the model and where its metric is defined. Raises ValueError for
    folds of the same number and other patients.
    """
    units: dict[int | None, list[int]] = {}
    for f, fold in enumerate(folds):
        units.setdefault(fold.number, []).append(f)
    measured = np.full((draws + 1, len(folds), len(models), len(METRICS)), np.nan)
    generator = np.random.default_rng(seed)
    patients_in_all = 0
    for number, of_fold in units.items():
        patients, rows = np.unique(folds[of_fold[0]].patient, return_inverse=True)
        patients_in_all += len(patients)
        if any(not np.array_equal(folds[f].patient, folds[of_fold[0]].patient) for f in of_fold):
            raise ValueError(f"fold {number}: the test patients of its seeds differ")
        runs = [(f, m, model) for f in of_fold for m, model in enumerate(models) if model in folds[f].scores]
        ranked = {(f, m): Ranked(folds[f].y, folds[f].scores[model]) for f, m, model in runs}
        worth = {(f, m): _by_patient(folds[f], model, rows, len(patients)) for f, m, model in runs}
        for draw in range(draws + 1):
            # The first is the sample itself.
            counts = np.ones(len(patients))
            if draw:
                drawn = generator.integers(len(patients), size=len(patients))
                counts = np.bincount(drawn, minlength=len(patients)).astype(np.float64)
            weight = counts[rows]
            for f, m, _ in runs:
                measured[draw, f, m, :2] = ranked[f, m].areas(weight)
                own, silence, best = (float(counts @ part) for part in worth[f, m])
                measured[draw, f, m, 2] = (own - silence) / (best - silence) if best > silence else np.nan
    known = (~np.isnan(measured)).sum(1)
    # (draws + 1, models, metrics); not nanmean, which warns of a metric that no fold has.
    means = np.divide(np.nansum(measured, axis=1), known, out=np.full(known.shape, np.nan), where=known > 0)
    frames = []
    for m, model in enumerate(models):
        for other in ["", *(o for o in against if o in models and o != model)]:
            found = means[:, m] - (means[:, models.index(other)] if other else 0)
            low, high = (
                np.nanpercentile(found[1:], [2.5, 97.5], axis=0) if draws else np.full((2, len(METRICS)), np.nan)
            )
            frames.append(
                pd.DataFrame({"metric": METRICS, "value": found[0], "low": low, "high": high})
                .dropna(subset=["value"])
                .assign(model=model, other=other, patients=patients_in_all, draws=draws)
            )
    return pd.concat(frames)[["model", "other", "metric", "value", "low", "high", "patients", "draws"]]


def _by_patient(fold: Fold, model: str, rows: NDArray[np.intp], count: int) -> tuple[Floats, Floats, Floats]:
    """Utility of the model's alarms, of silence and of the best alarms, summed over each patient's hours."""
    if fold.utility is None or model not in fold.alarms:
        return (np.zeros(count),) * 3
    alarm, silence = fold.utility
    parts = (np.where(fold.alarms[model], alarm, silence), silence, np.maximum(alarm, silence))
    own, quiet, best = (np.bincount(rows, weights=part, minlength=count).astype(np.float64) for part in parts)
    return own, quiet, best


def net_benefit(y: ArrayLike, probability: ArrayLike, thresholds: Sequence[float]) -> pd.DataFrame:
    """Decision curve (Vickers & Elkin 2006): (threshold, net_benefit, always) of alarms above each probability threshold.

    Net benefit is the share of true alarms minus that of false ones weighted by the odds of the threshold; `always` is that
    of an alarm in every hour, and never to sound one has 0.
    """
    y, probability = np.asarray(y).astype(bool), np.asarray(probability)
    rows = []
    for threshold in thresholds:
        odds, called = threshold / (1 - threshold), probability > threshold
        rows.append(
            {
                "threshold": threshold,
                "net_benefit": float((called & y).mean() - odds * (called & ~y).mean()),
                "always": float(y.mean() - odds * (~y).mean()),
            }
        )
    return pd.DataFrame(rows)
