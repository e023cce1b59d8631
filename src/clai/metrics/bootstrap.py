"""Bootstrap intervals and net benefit from the predictions of all models on the test folds.

Hours of a patient resemble each other, so the bootstrap draws patients (Efron & Tibshirani 1993). All models and seeds of a
fold share their test patients and the draws. So intervals of differences are paired, and more seeds do not pass for more
patients.
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
    """The test rows of a fold, and the predictions of the models of one seed on them.

    number: of the fold; its seeds share it. y, patient: (rows,). scores, calibrated (probabilities), alarms: (rows,) by
    model; alarms only where there is a utility.
    """

    number: int | None
    y: NDArray[np.int64]
    patient: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float32]]
    alarms: Mapping[str, NDArray[np.bool_]]
    calibrated: Mapping[str, NDArray[np.float32]]
    utility: HourlyUtility | None


class Ranked:
    """Samples in falling order of their scores, for areas under curves of weighted samples."""

    def __init__(self, y: ArrayLike, score: ArrayLike) -> None:
        score = np.asarray(score)
        self.order = np.argsort(-score, kind="stable")
        self.positive = np.asarray(y, dtype=np.float64)[self.order]
        self.ends = np.flatnonzero(np.r_[np.diff(score[self.order]) != 0, True])

    def areas(self, weight: Floats) -> tuple[float, float]:
        """Return the area under the ROC curve and the average precision.

        weight: of the samples (N,). Both are NaN where a class has no weight.
        """
        weight = weight[self.order]
        true = np.cumsum(weight * self.positive)[self.ends]
        called = np.cumsum(weight)[self.ends]
        false = called - true
        if not true[-1] or not false[-1]:
            return float("nan"), float("nan")
        gained = np.diff(true, prepend=0.0)
        auroc = float((np.diff(false, prepend=0.0) * (true - gained / 2)).sum() / (true[-1] * false[-1]))
        precision = np.divide(true, called, out=np.zeros_like(true), where=called > 0)
        return auroc, float((gained * precision).sum() / true[-1])


def patient_intervals(
    folds: Sequence[Fold], models: Sequence[str], against: Sequence[str], draws: int, seed: int
) -> pd.DataFrame:
    """Return 95 % percentile intervals of each metric, and of its differences to the models in `against`.

    The metric is a mean over the folds, of all seeds, that have the model and where the metric is defined.

    Args:
        folds: those of the same number have the same test patients; raises ValueError otherwise.
        draws: number of bootstrap samples; without any, the limits are NaN.

    Returns:
        Columns model, other (empty for the metric itself), metric, value, low, high, patients, draws.
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
        utilities = {(f, m): _by_patient(folds[f], model, rows, len(patients)) for f, m, model in runs}
        for draw in range(draws + 1):
            # Draw 0 is the sample itself.
            counts = np.ones(len(patients))
            if draw:
                drawn = generator.integers(len(patients), size=len(patients))
                counts = np.bincount(drawn, minlength=len(patients)).astype(np.float64)
            weight = counts[rows]
            for f, m, _ in runs:
                measured[draw, f, m, :2] = ranked[f, m].areas(weight)
                earned, silence, best = (float(counts @ part) for part in utilities[f, m])
                measured[draw, f, m, 2] = (earned - silence) / (best - silence) if best > silence else np.nan
    known = (~np.isnan(measured)).sum(1)
    # (draws + 1, models, metrics). nanmean would warn of a metric that no fold has.
    means = np.divide(np.nansum(measured, axis=1), known, out=np.full(known.shape, np.nan), where=known > 0)
    frames = []
    for m, model in enumerate(models):
        for other in ["", *(o for o in against if o in models and o != model)]:
            estimates = means[:, m] - (means[:, models.index(other)] if other else 0)
            low, high = (
                np.nanpercentile(estimates[1:], [2.5, 97.5], axis=0) if draws else np.full((2, len(METRICS)), np.nan)
            )
            frames.append(
                pd.DataFrame({"metric": METRICS, "value": estimates[0], "low": low, "high": high})
                .dropna(subset=["value"])
                .assign(model=model, other=other, patients=patients_in_all, draws=draws)
            )
    return pd.concat(frames)[["model", "other", "metric", "value", "low", "high", "patients", "draws"]]


def _by_patient(fold: Fold, model: str, rows: NDArray[np.intp], count: int) -> tuple[Floats, Floats, Floats]:
    """Return the utility of the alarms of a model, of no alarms and of the best alarms, each summed by patient (count,).

    rows: the index of the patient of each row. All are 0 without a utility or alarms.
    """
    if fold.utility is None or model not in fold.alarms:
        return (np.zeros(count),) * 3
    alarm, silence = fold.utility
    parts = (np.where(fold.alarms[model], alarm, silence), silence, np.maximum(alarm, silence))
    earned, silent, most = (np.bincount(rows, weights=part, minlength=count).astype(np.float64) for part in parts)
    return earned, silent, most


def net_benefit(y: ArrayLike, probability: ArrayLike, thresholds: Sequence[float]) -> pd.DataFrame:
    """Return the decision curve of alarms above each probability threshold (Vickers & Elkin 2006).

    Net benefit is the share of true alarms minus the share of false alarms times the odds of the threshold. An alarm in
    every hour has the net benefit `always`, and no alarm 0.

    y: (N,) in {0, 1}. probability: (N,). Returns the columns threshold, net_benefit, always.
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
