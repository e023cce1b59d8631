"""The rules of verdicts: what an interval says of a claim, and how outcomes join.

An interval is held against zero and against a margin of relevance, as tests of equivalence and of non-inferiority do (Schuirmann
1987; Piaggio et al. 2012).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pandas as pd
from scipy.special import stdtrit

from replication.metrics.intervals import FEWEST, LEVEL, Interval, spread

MARGIN = 0.01
"""Least difference that matters in accuracy, ROC-AUC, AUPRC, F1, calibration error and loss: 1 percentage point, or 0.01."""
LARGEST_N = 1000


class Outcome(StrEnum):
    """What evidence says of a claim, in the words that pages show."""

    REPRODUCED = "reproduced"
    EXCEEDED = "exceeded"
    IN_PART = "reproduced in part"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    DEPENDS = "depends on the reading"
    NOT_TESTABLE = "not testable here"


ANY = (float("-inf"), float("inf"))
"""The range of a number without bounds."""
Kind = Literal["better", "not worse", "equal", "value"]


@dataclass(frozen=True)
class Hypothesis:
    """What a claim says of a number.

    Args:
        kind: `better`, `not worse` or `equal`; `value`: as `equal`, but exceeded beyond the margin.
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
        low, high = sorted(self.sign * (bound - self.null) for bound in (interval.low, interval.high))
        if self.kind == "better":
            return decided(borne_out=low > 0 and high >= self.margin, excluded=high < self.margin)
        if self.kind == "not worse":
            return decided(borne_out=low > -self.margin, excluded=high < -self.margin)
        if self.kind == "value" and low > self.margin:
            return Outcome.EXCEEDED
        return decided(
            borne_out=-self.margin < low and high < self.margin, excluded=high < -self.margin or low > self.margin
        )

    def margins(self, number: float) -> float:
        """Return how far a number speaks for the claim, in margins."""
        return self.sign * (number - self.null) / self.margin

    @property
    def holds(self) -> tuple[float, float]:
        """Return the numbers that bear the claim out, in margins: beyond one, above minus one, or within one."""
        lowest = 1.0 if self.kind == "better" else -1.0
        return lowest, 1.0 if self.kind in ("equal", "value") else float("inf")


MORE, LESS = Hypothesis("better"), Hypothesis("better", sign=-1)
NOT_LESS, NOT_MORE = Hypothesis("not worse"), Hypothesis("not worse", sign=-1)


def decided(borne_out: bool, excluded: bool = True) -> Outcome:
    """Return the outcome of a test; one without an interval excludes what it does not bear out."""
    if borne_out:
        return Outcome.REPRODUCED
    return Outcome.NOT_REPRODUCED if excluded else Outcome.INCONCLUSIVE


_WEAKEST_FIRST = [
    Outcome.NOT_REPRODUCED, Outcome.NOT_TESTABLE, Outcome.EXCEEDED, Outcome.INCONCLUSIVE, Outcome.IN_PART, Outcome.REPRODUCED,
]  # fmt: skip
_BEST_FIRST = [
    Outcome.REPRODUCED, Outcome.EXCEEDED, Outcome.IN_PART, Outcome.INCONCLUSIVE, Outcome.NOT_TESTABLE, Outcome.NOT_REPRODUCED,
]  # fmt: skip


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes that must all bear a claim out; values are exceeded if none lies below and one above."""
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
    """Join the outcomes of readings: theirs if they agree, `inconclusive` if one is, `depends` if they contradict each other."""
    found = {outcome for outcome in outcomes if outcome != Outcome.NOT_TESTABLE}
    if len(found) <= 1:
        return found.pop() if found else Outcome.NOT_TESTABLE
    decisions = found - {Outcome.INCONCLUSIVE}
    return Outcome.DEPENDS if len(decisions) > 1 else Outcome.INCONCLUSIVE


def n_needed(values: pd.Series, margin: float) -> int | None:
    """Return how many independent replicates, more than there are, would have a 95 % interval no wider than `margin`.

    Args:
        values: the replicates at hand, whose standard deviation is taken for the true one.

    Returns:
        None if those at hand are enough, if they are fewer than two, or if `LARGEST_N` are too few.
    """
    _, sd, n = spread(values)
    if n < 2:
        return None
    quantile = (1 + LEVEL) / 2
    counts = range(2, LARGEST_N + 1)
    needed = next((count for count in counts if stdtrit(count - 1, quantile) * sd / count**0.5 <= margin / 2), n)
    return needed if needed > n else None
