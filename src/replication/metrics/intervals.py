"""Replicates, spreads and intervals of 95 %.

The unit of replication is the test fold where there are folds, and the seed otherwise. Values of several seeds are averaged
within a fold first. All spreads are sample standard deviations (ddof = 1). Intervals over seeds or folds are Student's.

Folds share training data, so their values resemble each other, and the usual interval of their mean is too narrow. Intervals
over folds are those of the corrected resampled t-test: they take (1 / n + n_test / n_train) s^2 for the variance of the mean of
n values, in place of s^2 / n (Nadeau & Bengio 2003, "Inference for the generalization error", Machine Learning 52:239-281).

The index of a series of values names its unit, which decides the variance, so that no caller has to state it.

A page or table of many intervals shows some that exclude 0 by chance. `holm` adjusts the p-values of such a family.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

Floats = NDArray[np.float64]
LEVEL = 0.95
"""Coverage of all intervals."""
UNITS = ("seed", "fold", "repetition")
"""What a value may be of."""
FEWEST = 3
"""Replicates of an interval: that of two spans twelve times their distance, and says nothing."""
TRAINING_SHARE = 0.85
"""Share of the patients outside a fold that train; `validation_share_recordings` keeps the others for thresholds."""


def replicates(frame: pd.DataFrame, value: str = "value") -> pd.Series:
    """Return values indexed by replicate: by fold, averaged over seeds, where there are folds; else by seed or repetition.

    The index has the name of the unit.

    frame: columns of units and `value`, one model and one metric.
    """
    units = [unit for unit in ("fold", "seed", "repetition") if unit in frame]
    unit = next((unit for unit in units if frame[unit].notna().any()), units[-1])
    return frame.dropna(subset=[value]).groupby(unit)[value].mean()


def spread(values: Iterable[float]) -> tuple[float, float, int]:
    """Mean, sample standard deviation (nan for fewer than two) and number of `values`."""
    array = np.asarray(list(values), dtype=float)
    mean = float(array.mean()) if len(array) else float("nan")
    return mean, float(array.std(ddof=1)) if len(array) > 1 else float("nan"), len(array)


def values(metrics: pd.DataFrame, model: str, metric: str) -> pd.Series:
    """Return a metric of a model by seed or fold."""
    return replicates(metrics[(metrics["cell"] == model) & (metrics["metric"] == metric)])


def minus(own: pd.DataFrame, other: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the metrics `own` with their `value` less that of `other`, in rows with the same `keys`."""
    pairs = own.merge(other[[*keys, "value"]], on=keys, suffixes=("", "_other"))
    return pairs.assign(value=pairs["value"] - pairs["value_other"])


def gap(metrics: pd.DataFrame, metric: str, model: str, other: str) -> pd.Series:
    """Return `model` minus `other` by the seeds or folds that both have."""
    return (values(metrics, model, metric) - values(metrics, other, metric)).dropna()


@dataclass(frozen=True)
class Interval:
    """A mean over n replicates with its 95 % Student-t interval; low and high are nan for n < `FEWEST`.

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
    mean, sd, n = spread(values)
    unit = str(values.index.name)
    if n and unit not in UNITS:
        raise ValueError(f"the index of {n} values has the name {unit}, expected one of {UNITS}: name it")
    if n < FEWEST:
        return Interval(mean, float("nan"), float("nan"), n)
    half = float(half_widths(np.array(sd), n, unit))
    return Interval(mean, mean - half, mean + half, n)


def half_widths(sd: Floats, n: int, unit: str) -> Floats:
    """Return half the widths of the intervals of means of n values with these standard deviations, as `interval` has them."""
    variance = 1 / n + (1 / (n - 1) / TRAINING_SHARE if unit == "fold" else 0.0)
    return np.asarray(stdtrit(n - 1, (1 + LEVEL) / 2) * sd * np.sqrt(variance))


def log_interval(ratios: pd.Series) -> Interval:
    """Return the geometric mean of ratios with its interval on the log scale, for an index as in `interval`."""
    found = interval(np.log(ratios))
    return replace(found, mean=np.exp(found.mean), low=np.exp(found.low), high=np.exp(found.high))


def over_samples(comparisons: pd.DataFrame, metric: str, cell: str, other: str = "") -> Interval | None:
    """Return the interval over seeds and test samples together of `cell` minus `other`, or of `cell` alone.

    With one seed it counts the test samples alone. It is None where `comparisons.csv` has none.
    """
    chosen = (comparisons["cell"] == cell) & (comparisons["other"].fillna("") == other)
    rows = comparisons[chosen & (comparisons["metric"] == metric) & comparisons["low"].notna()]
    if rows.empty:
        return None
    value, low, high, seeds, samples = rows[["value", "low", "high", "seeds", "samples"]].iloc[0].astype(float)
    return Interval(value, low, high, int(seeds), int(samples))


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
