"""The rules of verdicts: what an interval says of a claim, and how outcomes join.

An interval is held against zero and against a margin of relevance, as tests of equivalence and of non-inferiority do (Schuirmann
1987; Piaggio et al. 2012).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.metrics.intervals import FEWEST, Interval, half_widths, shared_variance

MARGIN = 0.01
"""Least difference that matters in accuracy, ROC-AUC, AUPRC, F1, calibration error and loss: 1 percentage point, or 0.01."""
SLACK = 0.1
"""How far below its bar the interval of a share may reach whose mean reaches it."""
LARGEST_N, POWER, SIMULATIONS = 60, 0.8, 2000
"""What number of replicates is sensible; how often they must decide, in as many simulations."""
TOO_MANY = "more than is sensible"


class Outcome(StrEnum):
    """What evidence says of a claim, in the words that pages show."""

    REPRODUCED = "reproduced"
    REACHED = "reached, by another training"
    IN_PART = "reproduced in part"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    DEPENDS = "depends on the reading"
    NOT_TESTABLE = "not testable here"
    NO_SAY = "not testable under this reading"


UNTESTED = {Outcome.NOT_TESTABLE, Outcome.NO_SAY}

ANY = (float("-inf"), float("inf"))
"""The range of a number without bounds."""
Kind = Literal["better", "not worse", "nearly", "equal", "value"]


@dataclass(frozen=True)
class Hypothesis:
    """What a claim says of a number.

    Args:
        kind: `better`, `not worse` or `equal`; `nearly`: a share whose mean reaches its bar; `value`: as `equal`, but reached
            beyond the margin.
        margin: least difference that matters, positive.
        sign: 1 if larger numbers speak for the claim, -1 if smaller ones do.
        null: the number from which differences count.
        bounds: the range of the metric; of a difference between two fractions, -1 to 1.
    """

    kind: Kind
    margin: float = MARGIN
    sign: int = 1
    null: float = 0.0
    bounds: tuple[float, float] = (-1.0, 1.0)

    def outcome(self, interval: Interval) -> Outcome:
        """Return what an interval says; nothing if it has no width, too few replicates or an end beyond the metric's range."""
        within = self.bounds[0] <= interval.low < interval.high <= self.bounds[1]
        if interval.n < FEWEST or not within:
            return Outcome.NOT_TESTABLE
        bounds = (interval.low, interval.mean, interval.high)
        low, mean, high = sorted(self.sign * (bound - self.null) for bound in bounds)
        if self.kind == "value" and low > self.margin:
            return Outcome.REACHED
        borne_out, excluded = self.decide(np.array(low), np.array(mean), np.array(high))
        return decided(bool(borne_out), bool(excluded))

    def decide(
        self, low: NDArray[np.float64], mean: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return whether intervals bear the claim out, and whether they exclude it, (N,) each.

        Args:
            low, mean, high: differences from `null`, positive where they speak for the claim, (N,) each.
        """
        m = self.margin
        if self.kind == "better":
            return (low > 0) & (mean >= m), high < m
        if self.kind == "not worse":
            return low > -m, high < -m
        if self.kind == "nearly":
            return (mean >= -m) & (low > -m - SLACK), high < -m
        return (-m < low) & (high < m), (high < -m) | (low > m)

    def margins(self, number: float) -> float:
        """Return how far a number speaks for the claim, in margins."""
        return self.sign * (number - self.null) / self.margin

    @property
    def holds(self) -> tuple[float, float]:
        """Return the numbers that bear the claim out, in margins: beyond one, above minus one, or within one."""
        lowest = 1.0 if self.kind == "better" else -1.0
        return lowest, 1.0 if self.kind in ("equal", "value") else float("inf")


def decided(borne_out: bool, excluded: bool = True) -> Outcome:
    """Return the outcome of a test; one without an interval excludes what it does not bear out."""
    if borne_out:
        return Outcome.REPRODUCED
    return Outcome.NOT_REPRODUCED if excluded else Outcome.INCONCLUSIVE


_POSITIVE = [Outcome.REPRODUCED, Outcome.REACHED, Outcome.IN_PART]
_WEAKEST_FIRST = [
    Outcome.NOT_REPRODUCED, Outcome.NOT_TESTABLE, Outcome.REACHED, Outcome.INCONCLUSIVE, Outcome.IN_PART, Outcome.REPRODUCED,
]  # fmt: skip
_BEST_FIRST = [*_POSITIVE, Outcome.INCONCLUSIVE, Outcome.NOT_TESTABLE, Outcome.NOT_REPRODUCED]


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes that must all bear a claim out; values are reached if none lies below and one above."""
    return min(outcomes, key=_WEAKEST_FIRST.index, default=Outcome.NOT_TESTABLE)


def some_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes of which some bear a claim out in part."""
    found = set(outcomes)
    mixed = Outcome.REPRODUCED in found and len(found) > 1
    return Outcome.IN_PART if mixed else all_of(found)


def one_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes of alternatives, of which one that bears a claim out is enough."""
    return min(outcomes, key=_BEST_FIRST.index, default=Outcome.NOT_TESTABLE)


def agreed(outcomes: Iterable[Outcome]) -> Outcome:
    """Join the outcomes of readings: theirs if they agree, the weaker of two that bear the claim out, `inconclusive` if one is,
    `depends` if they contradict each other.
    """
    found = set(outcomes) - UNTESTED
    if len(found) <= 1:
        return found.pop() if found else Outcome.NOT_TESTABLE
    if found <= set(_POSITIVE):
        return max(found, key=_POSITIVE.index)
    decisions = found - {Outcome.INCONCLUSIVE}
    return Outcome.DEPENDS if len(decisions) > 1 else Outcome.INCONCLUSIVE


def n_that_decides(values: pd.Series, asked: Hypothesis, *, log: bool = False) -> str:
    """Return how many replicates would decide what is inconclusive, at a power of 80 %; `TOO_MANY` above `LARGEST_N`.

    The design is simulated: normal replicates with the mean and the spread of those at hand, and their intervals. Folds have a
    part in common, for which the widened variance stands.

    Args:
        values: the replicates at hand, whose index names their unit.
        log: whether they are ratios, whose interval is one on the log scale.
    """
    known = np.log(values) if log else values
    mean, sd, n = known.mean(), known.std(), len(known)
    to_number = np.exp if log else np.positive
    generator, unit = np.random.default_rng(0), str(values.index.name)
    drawn, common = generator.normal(mean, sd, (SIMULATIONS, LARGEST_N)), generator.normal(0, sd, SIMULATIONS)
    for count in range(n + 1, LARGEST_N + 1):
        part = drawn[:, :count]
        half = half_widths(part.std(axis=1, ddof=1), count, unit)
        center = part.mean(axis=1) + common * np.sqrt(shared_variance(count, unit))
        ends = np.stack([to_number(center + shift) - asked.null for shift in (-half, 0 * half, half)])
        borne_out, excluded = asked.decide(*(ends[:: asked.sign] * asked.sign))
        if (borne_out | excluded).mean() >= POWER:
            return f"{count}"
    return TOO_MANY
