"""Replicates, spreads and intervals.

The unit of replication is the test fold where there are folds, and the seed otherwise. Values of several seeds are averaged
within a fold first. All spreads are sample standard deviations (ddof = 1); all intervals are two-sided 95 % Student-t intervals.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

LEVEL = 0.95


def replicates(frame: pd.DataFrame, value: str = "value") -> pd.Series:
    """Values indexed by replicate: by fold, averaged over seeds, where there are folds; by seed otherwise.

    frame: columns seed, fold and `value`, one model and one metric.
    """
    unit = "fold" if frame["fold"].notna().any() else "seed"
    return frame.dropna(subset=[value]).groupby(unit)[value].mean()


def spread(values: Iterable[float]) -> tuple[float, float, int]:
    """Mean, sample standard deviation (nan for fewer than two) and number of `values`."""
    array = np.asarray(list(values), dtype=float)
    mean = float(array.mean()) if len(array) else float("nan")
    return mean, float(array.std(ddof=1)) if len(array) > 1 else float("nan"), len(array)


@dataclass(frozen=True)
class Interval:
    """A mean over n replicates with its 95 % Student-t interval; low and high are nan for n < 2."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def below_zero(self) -> bool:
        return self.high < 0

    @property
    def above_zero(self) -> bool:
        return self.low > 0

    @property
    def known(self) -> bool:
        return self.n > 1


def interval(values: Iterable[float], prediction: bool = False) -> Interval:
    """95 % t-interval of the mean of `values`; of one further value, instead, with `prediction`."""
    mean, sd, n = spread(values)
    if n < 2:
        return Interval(mean, float("nan"), float("nan"), n)
    scale = np.sqrt(1 / n + prediction)
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2) * sd * scale)
    return Interval(mean, mean - half, mean + half, n)


def paired_difference(metrics: pd.DataFrame, metric: str, model: str, other: str) -> Interval:
    """Mean of `model` minus `other` over the replicates (seeds or folds) that both have, with its interval."""
    chosen = metrics[metrics["metric"] == metric]
    a = replicates(chosen[chosen["model"] == model])
    b = replicates(chosen[chosen["model"] == other])
    return interval((a - b).dropna())
