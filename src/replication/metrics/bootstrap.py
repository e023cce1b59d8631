"""Bootstrap intervals from the predictions of all models on the test folds.

Hours of a patient resemble each other, so the bootstrap draws patients (Efron & Tibshirani 1993). All seeds of a fold share their
test patients and the draws, so that more seeds do not pass for more patients.

The average precision of rare events is skewed and its draws are biased, so intervals are bias-corrected and accelerated (BCa,
Efron 1987, "Better bootstrap confidence intervals", J. Amer. Statist. Assoc. 82:171-185).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from replication.metrics.challenge_utility import HourlyUtility, utility_parts
from replication.runs.run import COLUMNS

Floats = NDArray[np.float64]
METRICS = ("auroc", "auprc", "utility")
DRAWS = 1000
"""Draws of patients or test samples behind an interval, the number that Efron & Tibshirani (1993) advise for its limits."""
LEVEL = 0.95
"""Coverage of all intervals."""
JACKKNIFE_GROUPS = 200
"""Largest number of groups of a fold's patients that the jackknife leaves out in turn, for the acceleration."""
DRAWS_AT_ONCE = 50
"""It bounds memory and decides no result."""


@dataclass(frozen=True)
class Calibration:
    """What a run fitted on validation samples: of many classes a temperature, of two the logistic map of its scores.

    vote: whether the scores of two classes are votes in [-1, 1]; otherwise they are log-odds. What does not apply is NaN.
    """

    temperature: float = np.nan
    slope: float = np.nan
    intercept: float = np.nan
    vote: bool = False


@dataclass(frozen=True)
class Predictions:
    """What a run predicts for its test samples: (N,) for two classes, (N, C) for more; alarms (N,) where they have a utility."""

    score: NDArray[np.floating]
    probability: NDArray[np.floating]
    calibrated: NDArray[np.floating]
    alarm: NDArray[np.bool_] | None = None
    calibration: Calibration = Calibration()


@dataclass(frozen=True)
class Fold:
    """The test rows of a fold, and the predictions of the models of one seed on them.

    number: of the fold; its seeds share it. y, patient: (rows,). utility: None where alarms have none. predictions: by model.
    """

    number: int | None
    y: NDArray[np.int64]
    patient: NDArray[np.int64]
    utility: HourlyUtility | None
    predictions: Mapping[str, Predictions] = field(default_factory=dict)


class Ranked:
    """Samples in falling order of their scores, for areas under curves of weighted samples.

    Only sums of weights between the places of positives are needed. They are products of sparse counts with the weights, so that
    many draws at once cost little.

    y: (N,) in {0, 1}. score: (N,). unit: the index of each sample's weight (N,), such as that of its patient. units: number of
    weights.
    """

    def __init__(self, y: ArrayLike, score: ArrayLike, unit: NDArray[np.intp], units: int) -> None:
        score = np.asarray(score)
        order = np.argsort(-score, kind="stable")
        unit = unit[order]
        last_of_ties = np.flatnonzero(np.r_[np.diff(score[order]) != 0, True])
        positive = np.flatnonzero(np.asarray(y)[order])
        ties = np.searchsorted(last_of_ties, positive)
        first = np.flatnonzero(np.diff(ties, prepend=-1))  # among positives, of each score that a positive has
        begin, end = np.r_[0, last_of_ties + 1][ties[first]], last_of_ties[ties[first]] + 1
        bounds = np.unique(np.r_[0, begin, end, len(unit)])
        self.begin, self.end = np.searchsorted(bounds, begin), np.searchsorted(bounds, end)
        self.between = _counts(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), unit, len(bounds) - 1, units)
        group = np.searchsorted(first, np.arange(len(positive)), side="right") - 1
        self.gained = _counts(group, unit[positive], len(first), units)

    def areas(self, weights: Floats) -> Floats:
        """Return ROC-AUC and average precision (draws, 2), NaN where a class has no weight, by weights (draws, units)."""
        called = np.zeros((self.between.shape[0] + 1, len(weights)))
        np.cumsum(self.between @ weights.T, axis=0, out=called[1:])
        # At each score that a positive has: its positives, and positives and samples with at least that score.
        gained = self.gained @ weights.T
        true, at_end, begin = np.cumsum(gained, axis=0), called[self.end], called[self.begin]
        positives = gained.sum(axis=0)
        negatives = called[-1] - positives
        outranked = negatives - (at_end - true) + (at_end - begin - gained) / 2  # half of the negatives that tie
        precisions = np.divide(true, at_end, out=np.zeros(at_end.shape), where=at_end > 0)
        roc_auc = _ratio((gained * outranked).sum(axis=0), positives * negatives)
        precision = _ratio((gained * precisions).sum(axis=0), np.where(negatives > 0, positives, 0))
        return np.stack([roc_auc, precision], axis=1)


def _ratio(part: Floats, whole: NDArray[Any]) -> Floats:
    """Return part / whole; NaN where whole is 0."""
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def _counts(row: NDArray[np.intp], column: NDArray[np.intp], rows: int, columns: int) -> csr_array:
    """Return how often each pair of row and column occurs, as a sparse matrix (rows, columns)."""
    return csr_array((np.ones(len(row)), (row, column)), shape=(rows, columns))  # adds up what occurs twice


def bca_limits(value: float, draws: Floats, jackknife: Sequence[Floats]) -> tuple[float, float]:
    """Return the limits of the 95 % BCa interval of a statistic; NaN without draws.

    They are those of `scipy.stats.bootstrap`, which would leave out single patients: too many here. If all draws (B,) lie on one
    side of the value, the bias is that of half a draw on the other side, where SciPy's limits are NaN. jackknife: of each
    independent sample, such as a fold, the values without one of its groups (G,).
    """
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return float("nan"), float("nan")
    below = ((draws < value).mean() + (draws <= value).mean()) / 2
    bias = ndtri(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws)))
    without = [values[~np.isnan(values)] for values in jackknife]
    influence = np.concatenate([(values.mean() - values) * (1 - 1 / len(values)) for values in without if len(values)])
    scale = (influence**2).sum() ** 1.5
    acceleration = (influence**3).sum() / (6 * scale) if scale else 0.0
    z = bias + ndtri([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low, high = np.quantile(draws, ndtr(bias + z / (1 - acceleration * z)))
    return float(low), float(high)


def patient_intervals(folds: Sequence[Fold], models: Sequence[str], draws: int = DRAWS) -> pd.DataFrame:
    """Return 95 % BCa intervals of each metric, a mean over the folds, of all seeds, that have the model and the metric.

    folds: those of the same number have the same test patients. draws: of the bootstrap; without any, the limits are NaN. Returns
    the columns of `intervals.csv`; `other` is empty, and names a model in older evidence, which has differences, too.
    """
    units = {fold.number: [f for f, other in enumerate(folds) if other.number == fold.number] for fold in folds}
    measured = np.full((draws + 1, len(folds), len(models), len(METRICS)), np.nan)
    without: dict[int | None, Floats] = {}
    generator = np.random.default_rng(0)
    patients_in_all = 0
    for number, of_fold in units.items():
        patients, rows = np.unique(folds[of_fold[0]].patient, return_inverse=True)
        count = len(patients)
        patients_in_all += count
        measure = _measure_of([folds[f] for f in of_fold], models, rows, count)
        drawn = (np.bincount(generator.integers(count, size=count), minlength=count) for _ in range(draws))
        measured[:, of_fold] = in_parts(measure, np.stack([np.ones(count), *drawn]))
        # Neighbours in the order of patients, who may be alike, are in different groups.
        group = np.arange(count) % JACKKNIFE_GROUPS
        without[number] = in_parts(measure, (group != np.unique(group)[:, None]).astype(np.float64))
    jackknife = []
    for number, values in without.items():
        deleted = np.repeat(measured[:1], len(values), axis=0)
        deleted[:, units[number]] = values
        jackknife.append(_mean_over_folds(deleted))
    means = _mean_over_folds(measured)
    rows_of_table = []
    for m, model in enumerate(models):
        for k, metric in enumerate(METRICS):
            value, *of_draws = means[:, m, k]
            if not np.isnan(value):
                low, high = bca_limits(value, np.array(of_draws), [part[:, m, k] for part in jackknife])
                rows_of_table.append((model, "", metric, value, low, high, patients_in_all, draws))
    return pd.DataFrame(rows_of_table, columns=COLUMNS["intervals.csv"])


def in_parts(measure: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Return what weights (draws, units) measure, of DRAWS_AT_ONCE at a time."""
    return np.concatenate([measure(weights[i : i + DRAWS_AT_ONCE]) for i in range(0, len(weights), DRAWS_AT_ONCE)])


def _measure_of(
    folds: Sequence[Fold], models: Sequence[str], rows: NDArray[np.intp], count: int
) -> Callable[[Floats], Floats]:
    """Return the function from weights of patients (draws, count) to the metrics (draws, folds, models, METRICS) or NaN."""
    runs = {
        (f, m): fold.predictions[model]
        for f, fold in enumerate(folds)
        for m, model in enumerate(models)
        if model in fold.predictions
    }
    ranked = {(f, m): Ranked(folds[f].y, run.score, rows, count) for (f, m), run in runs.items()}
    utilities = {(f, m): _by_patient(folds[f].utility, run.alarm, rows, count) for (f, m), run in runs.items()}

    def measure(weights: Floats) -> Floats:
        measured = np.full((len(weights), len(folds), len(models), len(METRICS)), np.nan)
        for f, m in runs:
            measured[:, f, m, :2] = ranked[f, m].areas(weights)
            earned, silence, best = (weights @ part for part in utilities[f, m])
            measured[:, f, m, 2] = _ratio(earned - silence, best - silence)
        return measured

    return measure


def _mean_over_folds(measured: Floats) -> Floats:
    """Return the mean over the folds where a metric is defined, (N, folds, ...) -> (N, ...); NaN where it is in none."""
    return _ratio(np.nansum(measured, axis=1), (~np.isnan(measured)).sum(1))  # nanmean would warn


def _by_patient(
    utility: HourlyUtility | None, alarms: NDArray[np.bool_] | None, rows: NDArray[np.intp], count: int
) -> tuple[Floats, Floats, Floats]:
    """Return the utility of alarms, of none and of the best, each summed by patient (count,); 0 without any."""
    if utility is None or alarms is None:
        return (np.zeros(count),) * 3
    parts = utility_parts(utility, alarms)
    earned, silent, most = (np.bincount(rows, weights=part, minlength=count).astype(np.float64) for part in parts)
    return earned, silent, most
