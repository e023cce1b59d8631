"""Replicates, spreads and intervals of 95 %.

The unit of replication is the test fold where there are folds, and the seed otherwise. Values of several seeds are averaged
within a fold first. All spreads are sample standard deviations (ddof = 1). Intervals over seeds or folds are Student's.

Folds share training data, so their values resemble each other, and the usual interval of their mean is too narrow. Intervals
over folds are those of the corrected resampled t-test: they take (1 / n + n_test / n_train) s^2 for the variance of the mean of
n values, in place of s^2 / n (Nadeau & Bengio 2003, "Inference for the generalization error", Machine Learning 52:239-281).

The index of a series of values names its unit, which decides the variance, so that no caller has to state it.

A page or table of many intervals shows some that exclude 0 by chance. `holm` adjusts the p-values of such a family.

Where predictions are kept, metrics of a model and differences between models have intervals over seeds and test samples, from a
bootstrap. Epochs of a sleeper resemble each other. So the bootstrap draws groups of samples (Efron & Tibshirani 1993). All seeds
share the test samples and the draws, so that more seeds do not pass for more samples.

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
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtr, stdtrit

from clailearn.errors import InputError
from replication.metrics.classification import ECE_BINS, Floats, class_probabilities, ranked_classes, top_label
from replication.runs.run import COLUMNS

LEVEL = 0.95
"""Coverage of all intervals."""
UNITS = ("seed", "fold", "repetition")
"""What a value may be of."""
FEWEST = 3
"""Replicates of an interval: that of two spans twelve times their distance, and says nothing."""
TRAINING_SHARE = 0.85
"""Share of the patients outside a fold that train; `validation_share_recordings` keeps the others for thresholds."""
SAMPLE_METRICS = ("accuracy", "macro_f1", "log_loss", "log_loss_scaled", "ece", "ece_scaled", "roc_auc")
DRAWS = 1000
"""Draws of test samples behind an interval, the number that Efron & Tibshirani (1993) advise for its limits."""
DRAWS_AT_ONCE = 50
"""It bounds memory and decides no result."""


def replicates(frame: pd.DataFrame) -> pd.Series:
    """Return values indexed by replicate: by fold, averaged over seeds, where there are folds; else by seed or repetition.

    The index has the name of the unit.

    frame: columns of units and `value`, one model and one metric.
    """
    units = [unit for unit in ("fold", "seed", "repetition") if unit in frame]
    unit = next((unit for unit in units if frame[unit].notna().any()), units[-1])
    return frame.dropna(subset=["value"]).groupby(unit)["value"].mean()


def values(metrics: pd.DataFrame, model: str, metric: str) -> pd.Series:
    """Return a metric of a model by seed or fold."""
    return replicates(metrics[(metrics["cell"] == model) & (metrics["metric"] == metric)])


def minus(own: pd.DataFrame, other: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the metrics `own` with their `value` less that of `other`, in rows with the same `keys`."""
    pairs = own.merge(other[[*keys, "value"]], on=keys, suffixes=("", "_other"))
    return pairs.assign(value=pairs["value"] - pairs["value_other"])


@dataclass(frozen=True)
class Interval:
    """A mean over n replicates with its 95 % Student-t interval; `interval` leaves low and high nan for n < `FEWEST`.

    `samples` is the number of test samples, or of groups of them, that the interval takes for random as well; 0 if it does not.
    """

    mean: float
    low: float
    high: float
    n: int
    samples: int = 0

    @property
    def known(self) -> bool:
        return not np.isnan(self.low)


def interval(values: pd.Series) -> Interval:
    """Return the 95 % t-interval of the mean of `values`.

    The variance of a mean over folds is corrected for shared training data: see the head of this module. Of k folds, each is
    1 / (k - 1) of the size of the others, of which `TRAINING_SHARE` trains. Where some folds have no value, n stands for k,
    which widens the interval.

    Args:
        values: an index with the name of a unit of `UNITS`, as `replicates` gives.

    Raises:
        ValueError: the index of values names no unit.
    """
    mean, n = float(values.mean(skipna=False)), len(values)
    unit = str(values.index.name)
    if n and unit not in UNITS:
        raise ValueError(f"the index of {n} values has the name {unit}, expected one of {UNITS}: name it")
    if n < FEWEST:
        return Interval(mean, float("nan"), float("nan"), n)
    half = float(half_widths(np.array(values.std()), n, unit))
    return Interval(mean, mean - half, mean + half, n)


def half_widths(sd: Floats, n: int, unit: str) -> Floats:
    """Return half the widths of the intervals of means of n values with these standard deviations, as `interval` has them."""
    return np.asarray(stdtrit(n - 1, (1 + LEVEL) / 2) * sd * np.sqrt(1 / n + shared_variance(n, unit)))


def shared_variance(n: int, unit: str) -> float:
    """Return the variance that n values have in common, as a share of theirs: that of folds, which share training data."""
    return 1 / (n - 1) / TRAINING_SHARE if unit == "fold" else 0.0


def log_interval(ratios: pd.Series) -> Interval:
    """Return the geometric mean of ratios with its interval on the log scale, for an index as in `interval`."""
    found = interval(np.log(ratios))
    return replace(found, mean=np.exp(found.mean), low=np.exp(found.low), high=np.exp(found.high))


def both_ways(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `comparisons.csv`, where a pair stands once, and its differences again with the pair turned."""
    pairs = comparisons[comparisons["cell"].notna() & comparisons["other"].notna()]
    turned = pairs.rename(columns={"cell": "other", "other": "cell", "low": "high", "high": "low"})
    limits = ["value", "low", "high"]
    return pd.concat([comparisons, turned.assign(**{limit: -turned[limit] for limit in limits})], ignore_index=True)


def over_samples(comparisons: pd.DataFrame, metric: str, cell: str, other: str = "") -> Interval | None:
    """Return the interval over seeds and test samples together of `cell` minus `other`, or of `cell` alone.

    With one seed it counts the test samples alone. It is None where `comparisons.csv` has none.
    """
    known = both_ways(comparisons.dropna(subset="low"))
    chosen = (known["cell"] == cell) & (known["other"].fillna("") == other) & (known["metric"] == metric)
    if not chosen.any():
        return None
    row = known[chosen].iloc[0]
    value, low, high = row[["value", "low", "high"]].astype(float)
    return Interval(value, low, high, int(row["seeds"]), int(row["samples"]))


def minus_printed(ours: Interval, printed: float, samples: int) -> Interval:
    """Return our interval minus a printed value, widened by the sampling error of a share of so many test samples."""
    sampling = ndtri((1 + LEVEL) / 2) * np.sqrt(printed * (1 - printed) / samples)
    half, mean = np.hypot((ours.high - ours.low) / 2, sampling), ours.mean - printed
    return replace(ours, mean=mean, low=mean - half, high=mean + half)


def independent_gap(one: Interval, other: Interval) -> Interval:
    """Return the difference of two independent means, whose errors add as squares."""
    mean, half = one.mean - other.mean, np.hypot(one.high - one.low, other.high - other.low) / 2
    return Interval(mean, mean - half, mean + half, min(one.n, other.n), one.samples)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-values (N,) of a family of N tests, adjusted for their number (Holm 1979, Scand. J. Statist. 6:65-70).

    Rejecting what is below a level keeps the probability of any false rejection below that level, whatever the dependence
    between the tests. NaN stays NaN and does not count.
    """
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]  # NaN is sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


class Difference(NamedTuple):
    """A difference with its 95 % interval and two-sided p-value; the last three are NaN where nothing varies."""

    value: float
    low: float
    high: float
    p: float


def paired_difference(differences: Floats, drawn: Floats, groups: int) -> Difference:
    """Return the mean difference over seeds with its interval over seeds and samples.

    Of the variance of the mean, c is the part of the samples that seeds share, the mean covariance between seeds over draws.
    The spread of the S seeds, s^2 / S, has the rest: what training adds, and what samples add to each seed alone. It counts at
    least as much as the draws show for the latter, so that the variance is never below that of the samples.

    differences: on the test samples (S,). drawn: the same on bootstrap samples (B, S) of so many groups; draws with a
    NaN do not count.
    """
    seeds, value = len(differences), float(differences.mean())
    drawn = drawn[~np.isnan(drawn).any(1)]
    unknown = Difference(value, float("nan"), float("nan"), float("nan"))
    if len(drawn) < 2 or groups < 2:
        return unknown
    # A draw of G groups varies (G - 1) / G as much as a new sample of them.
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False)) * groups / (groups - 1)
    sampling = covariance.mean()
    variance, freedom = sampling, groups - 1.0
    if seeds > 1:
        shared = (covariance.sum() - np.trace(covariance)) / (seeds * (seeds - 1))
        training = differences.var(ddof=1) / seeds
        if training > sampling - shared:
            shared = max(shared, 0.0)  # an estimate below 0 is chance
            variance = shared + training
            freedom = variance**2 / (training**2 / (seeds - 1) + shared**2 / (groups - 1))
    if not variance > 0:
        return unknown
    error = float(np.sqrt(variance))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    return Difference(value, value - half, value + half, 2 * float(stdtr(freedom, -abs(value) / error)))


# The bootstrap


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
    """What a run predicts for its test samples: (N,) for two classes, (N, C) for more.

    witnesses: training samples with the strongest votes for the predicted class (N, n), where a run names them.
    """

    score: NDArray[np.floating]
    probability: NDArray[np.floating]
    calibrated: NDArray[np.floating]
    calibration: Fitted = Fitted()
    witnesses: NDArray[np.integer] | None = None


class Ranked:
    """Samples by their scores, for areas under the ROC curve of weighted samples.

    Only sums of weights at the scores of positives, and of negatives between them, are needed. They are products of sparse counts
    with the weights, so that many draws at once cost little.

    y: (N,) in {0, 1}. score: (N,). unit: the index of each sample's weight (N,), such as that of its group. units: number of
    weights.
    """

    def __init__(self, y: ArrayLike, score: ArrayLike, unit: NDArray[np.intp], units: int) -> None:
        positive, score = np.asarray(y).astype(bool), np.asarray(score)
        levels = np.unique(score[positive])
        # An even place lies between two levels, an odd one at a level.
        place = np.searchsorted(levels, score, "left") + np.searchsorted(levels, score, "right")
        self.positive = _counts(place[positive] // 2, unit[positive], len(levels), units)
        self.negative = _counts(place[~positive], unit[~positive], 2 * len(levels) + 1, units)

    def areas(self, weights: Floats) -> Floats:
        """Return the area (draws,), NaN where a class has no weight, by weights (draws, units)."""
        positive, negative = self.positive @ weights.T, self.negative @ weights.T
        below = np.cumsum(negative, axis=0)[:-1:2]
        outranked = below + negative[1::2] / 2  # half of the negatives that tie
        pairs = positive.sum(axis=0) * negative.sum(axis=0)
        return np.divide((positive * outranked).sum(axis=0), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


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
        measurements = [a - b for a, b in _pairs(measured[model], measured[other])] if other else alone
        on_draws = np.stack(measurements, axis=1)  # (draws + 1, seeds, metrics)
        for k, metric in enumerate(SAMPLE_METRICS):
            found = paired_difference(on_draws[0, :, k], on_draws[1:, :, k], len(names))
            tested = found if other else found._replace(p=float("nan"))
            rows.append((model, other, metric, *tested, len(names), len(measurements), draws))
    return pd.DataFrame(rows, columns=COLUMNS["comparisons.csv"])


def _pairs(first: Mapping[int, Floats], second: Mapping[int, Floats]) -> list[tuple[Floats, Floats]]:
    """Return the measurements of two models that are compared with each other, by seed; InputError without a common one."""
    if len(first) == 1 or len(second) == 1:
        return [(one, other) for one in first.values() for other in second.values()]
    common = [seed for seed in first if seed in second]
    if not common:
        raise InputError(f"found the seeds {sorted(first)} and {sorted(second)}, expected some in common: train these")
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
