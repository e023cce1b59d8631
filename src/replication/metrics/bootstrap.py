"""Intervals from a bootstrap of predictions: of each model, and of the differences between models.

Epochs of a sleeper resemble each other. So the bootstrap draws groups of samples (Efron & Tibshirani 1993). All seeds share the
test samples and the draws, so that more seeds do not pass for more samples.

Runs of all models are scored on the same test samples, so differences are paired by sample and by seed. McNemar's test would take
the runs at hand for all that training can give, and a t-interval over seeds the test samples for all that there are. The model
here has both as random: a difference is the mean over S seeds that are crossed with the same samples, as readers and cases are in
the analysis of multi-reader studies (Obuchowski & Rockette 1995, Commun. Stat. Simul. Comput. 24:285-308; Hillis 2007, Stat. Med.
26:596-619, for the degrees of freedom). The samples' part of the variance comes from the draws, the seeds' part from their
spread: two to five seeds are too few to be drawn, since percentiles of such draws never leave the range of the seeds. The
interval is a Student t with the degrees of freedom of both parts. In simulations with normal parts it covers about as often as it
says; where the spread of seeds is several times that of the samples it covers .88 of the time with two seeds, .91 with three and
.94 with five.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from replication.metrics.classification import ECE_BINS, class_probabilities, ranked_classes, top_label
from replication.metrics.intervals import Floats, paired_difference
from replication.runs.run import COLUMNS

SAMPLE_METRICS = ("accuracy", "macro_f1", "log_loss", "log_loss_scaled", "ece", "ece_scaled", "roc_auc")
DRAWS = 1000
"""Draws of test samples behind an interval, the number that Efron & Tibshirani (1993) advise for its limits."""
DRAWS_AT_ONCE = 50
"""It bounds memory and decides no result."""


@dataclass(frozen=True)
class Fitted:
    """What a run fitted on validation samples: of many classes a temperature, of two the logistic map of its scores.

    vote: whether the scores of two classes are votes in [-1, 1]; otherwise they are log-odds. What does not apply is NaN.
    """

    temperature: float = np.nan
    slope: float = np.nan
    intercept: float = np.nan
    vote: bool = False


@dataclass(frozen=True)
class Predictions:
    """What a run predicts for its test samples: (N,) for two classes, (N, C) for more."""

    score: NDArray[np.floating]
    probability: NDArray[np.floating]
    calibrated: NDArray[np.floating]
    calibration: Fitted = Fitted()


class Ranked:
    """Samples in falling order of their scores, for areas under the ROC curve of weighted samples.

    Only sums of weights between the places of positives are needed. They are products of sparse counts with the weights, so that
    many draws at once cost little.

    y: (N,) in {0, 1}. score: (N,). unit: the index of each sample's weight (N,), such as that of its group. units: number of
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
        """Return the area (draws,), NaN where a class has no weight, by weights (draws, units)."""
        called = np.zeros((self.between.shape[0] + 1, len(weights)))
        np.cumsum(self.between @ weights.T, axis=0, out=called[1:])
        # At each score that a positive has: its positives, and positives and samples with at least that score.
        gained = self.gained @ weights.T
        true, at_end, begin = np.cumsum(gained, axis=0), called[self.end], called[self.begin]
        positives = gained.sum(axis=0)
        negatives = called[-1] - positives
        outranked = negatives - (at_end - true) + (at_end - begin - gained) / 2  # half of the negatives that tie
        pairs = positives * negatives
        return np.divide((gained * outranked).sum(axis=0), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


def _counts(row: NDArray[np.intp], column: NDArray[np.intp], rows: int, columns: int) -> csr_array:
    """Return how often each pair of row and column occurs, as a sparse matrix (rows, columns)."""
    return csr_array((np.ones(len(row)), (row, column)), shape=(rows, columns))  # adds up what occurs twice


def in_parts(measure: Callable[[Floats], Floats], weights: Floats) -> Floats:
    """Return what weights (draws, units) measure, of DRAWS_AT_ONCE at a time."""
    return np.concatenate([measure(weights[i : i + DRAWS_AT_ONCE]) for i in range(0, len(weights), DRAWS_AT_ONCE)])


def compare_models(
    y: NDArray[np.int64], groups: NDArray[np.int64], runs: Mapping[str, Mapping[int, Predictions]], draws: int = DRAWS
) -> pd.DataFrame:
    """Return differences in `SAMPLE_METRICS` between each model and each one behind it, then those of each model alone.

    Models are compared over the seeds that both have. A model with one run is compared with every run of the other; the
    interval then lacks the spread of its own seeds, and lacks that of all seeds if the other has one run as well.

    y: class indices of the test samples (N,). groups: of samples that resemble each other (N,), which the bootstrap draws
    together. runs: by model, in the order of tables, and by seed. Returns the columns of `comparisons.csv`: other and p are
    empty for a model alone, samples is the number of groups.
    """
    names, group = np.unique(groups, return_inverse=True)
    share = np.full(len(names), 1 / len(names))
    drawn = np.random.default_rng(0).multinomial(len(names), share, size=draws)
    weights = np.concatenate([np.ones((1, len(names))), drawn])  # first the sample itself
    measured = {
        model: {seed: in_parts(_sample_measure(y, group, len(names), one), weights) for seed, one in seeds.items()}
        for model, seeds in runs.items()
    }
    rows = []
    for model, other in [*combinations(runs, 2), *((model, "") for model in runs)]:
        alone = list(measured[model].values())
        values = [a - b for a, b in _pairs(measured[model], measured[other])] if other else alone
        on_draws = np.stack(values, axis=1)  # (draws + 1, seeds, metrics)
        for k, metric in enumerate(SAMPLE_METRICS):
            found = paired_difference(on_draws[0, :, k], on_draws[1:, :, k], len(names))
            tested = found if other else found._replace(p=float("nan"))
            rows.append((model, other, metric, *tested, len(names), len(values), draws))
    return pd.DataFrame(rows, columns=COLUMNS["comparisons.csv"])


def _pairs(first: Mapping[int, Floats], second: Mapping[int, Floats]) -> list[tuple[Floats, Floats]]:
    """Return the measurements of two models that are compared with each other, by seed; ValueError without a common one."""
    if len(first) == 1 or len(second) == 1:
        return [(one, other) for one in first.values() for other in second.values()]
    common = [seed for seed in first if seed in second]
    if not common:
        raise ValueError(f"found the seeds {sorted(first)} and {sorted(second)}, expected some in common: train these")
    return [(first[seed], second[seed]) for seed in common]


def _sample_measure(
    y: NDArray[np.int64], group: NDArray[np.intp], count: int, predicted: Predictions
) -> Callable[[Floats], Floats]:
    """Return the function from weights of groups (draws, count) to `SAMPLE_METRICS` (draws, metrics).

    All but the areas under ROC curves follow from sums over samples, so that a matrix of sums by group serves every draw.
    """
    probability, calibrated = (class_probabilities(part) for part in (predicted.probability, predicted.calibrated))
    classes = probability.shape[1]
    labels, called = (np.eye(classes)[indices] for indices in (y, probability.argmax(1)))
    _, correct = top_label(y, probability)
    of_labels = np.stack([part[np.arange(len(y)), y] / part.sum(1) for part in (probability, calibrated)], axis=1)
    losses = -np.log(of_labels.astype(np.float64).clip(np.finfo(np.float64).eps))
    columns = [np.ones((len(y), 1)), correct[:, None], labels, called, labels * called, losses]
    for part in (probability, calibrated):
        confidence, hit = top_label(y, part)
        index = np.digitize(confidence, np.linspace(0, 1, ECE_BINS + 1)[1:-1])
        columns.append(np.eye(ECE_BINS)[index] * (confidence - hit)[:, None])
    per_sample = np.concatenate(columns, axis=1)
    sums = np.stack([np.bincount(group, weights=column, minlength=count) for column in per_sample.T], axis=1)
    ends = np.cumsum([column.shape[1] for column in columns])[:-1]
    ranked = [Ranked(y == k, probability[:, k], group, count) for k in ranked_classes(classes)]

    def measure(weight: Floats) -> Floats:
        total, right, true, said, agreed, lost, raw, scaled = np.split(weight @ sums, ends, axis=1)
        occurs = true + said > 0
        f1 = np.divide(2 * agreed, true + said, out=np.zeros_like(true), where=occurs).sum(1) / occurs.sum(1)
        errors = (np.abs(part).sum(1) / total[:, 0] for part in (raw, scaled))
        areas = np.mean([label.areas(weight) for label in ranked], axis=0)
        return np.stack([right[:, 0] / total[:, 0], f1, *(lost / total).T, *errors, areas], axis=1)

    return measure
