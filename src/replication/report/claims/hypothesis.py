"""The rules of verdicts: what an interval says of a claim, how parts of the evidence join, and the readings that they join.

An interval is held against zero and against a margin of relevance, as tests of equivalence and of non-inferiority do (Schuirmann
1987; Piaggio et al. 2012). `RULES` states the rules for readers.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal, NamedTuple

import pandas as pd
from scipy.special import stdtrit

from replication.report.statistics import LEVEL, Interval, spread

MARGIN = 0.01
"""Least difference that matters in accuracy, ROC-AUC, AUPRC, F1, calibration error and loss: 1 percentage point, or 0.01."""
EPOCHS_MARGIN = 1.0
"""In epochs."""
EFFECT_MARGIN = 0.2
"""In standard deviations: a small effect (Cohen 1988)."""
ROUGHNESS_MARGIN = 0.05
"""In the unit of the roughness of signals, which lies between 0.6 and 1.5 in the published runs."""
POWER_MARGIN = 0.1
"""In powers of a size."""
RATIO_MARGIN = 0.1
"""In ratios of times."""
LARGEST_N = 1000


class Outcome(StrEnum):
    """What evidence says of a claim, in the words that pages show."""

    REPRODUCED = "reproduced"
    EXCEEDED = "exceeded"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    DEPENDS = "depends on the reading"
    NOT_TESTABLE = "not testable here"


DECIDED = (Outcome.REPRODUCED, Outcome.EXCEEDED, Outcome.NOT_REPRODUCED)
"""Outcomes that contradict each other."""


class Qualifier(StrEnum):
    """On which data a verdict rests."""

    WHOLE = ""
    WHERE_TESTED = "where tested"
    SUBSTITUTE = "on a substitute"


class Verdict(NamedTuple):
    """The verdict on a claim: "not reproduced, on a substitute"."""

    outcome: Outcome
    qualifier: Qualifier = Qualifier.WHOLE

    def __str__(self) -> str:
        return ", ".join(part for part in self if part)


RULES = f"""
A difference d is oriented so that a positive one speaks for the claim. Its 95 % interval [low, high] meets two limits: 0, and the
least difference that matters, the *margin* m. The margin is {100 * MARGIN:g} percentage point of accuracy and ROC-AUC,
{MARGIN:g} of AUROC, AUPRC, F1, calibration error and loss, {EPOCHS_MARGIN:g} epoch, and a stated number elsewhere.

| the claim says | reproduced | not reproduced | inconclusive |
| --- | --- | --- | --- |
| better | low > 0 and high >= m | high < m | otherwise |
| not worse | low > -m | high < -m | otherwise |
| equal | -m < low and high < m | high < -m or low > m | otherwise |

An advantage that is certain and too small to matter is thus *not reproduced*. Where a claim gives a value, it is *exceeded* if
low > m.

- **Several parts.** Parts of one claim on the same data must all bear it out, on every dataset at hand; one that excludes it is
  enough for *not reproduced*. Where the paper does not name the model, one model that passes is enough.
- **Readings.** A claim is judged once under every reading that has evidence. Readings combine what the paper's text allows with
  options of ours, named below. If all of them agree, this is the verdict. If two contradict each other, the claim *depends on
  the reading*. If some decide and others do not, it is *inconclusive*.
- **Inconclusive** evidence comes with n: the seeds or repetitions of folds whose interval would be no wider than the margin, at
  the observed spread. An interval that counts test samples as well has no n, because further seeds leave their part as it is.
- **On a substitute** stands where all data are others than the paper's, **where tested** where data or readings of the claim
  have no evidence. A test that needs two seeds or folds and has one is *not testable here*.

Margins and rules were fixed on 2026-11-21, after most of the evidence had been seen. docs/verdicts.md lists every
change of a rule with the verdict before and after.
"""
"""The rules as readers of the page of claims see them."""

Kind = Literal["better", "not worse", "equal", "value"]


@dataclass(frozen=True)
class Hypothesis:
    """What a claim says of a number.

    Args:
        kind: `better`, `not worse` or `equal`, as in `RULES`; `value`: as `equal`, but exceeded beyond the margin.
        margin: least difference that matters, positive.
        sign: 1 if larger numbers speak for the claim, -1 if smaller ones do.
        null: the number from which differences count.
    """

    kind: Kind
    margin: float
    sign: int = 1
    null: float = 0.0

    def outcome(self, interval: Interval) -> Outcome:
        """Return what an interval says; not testable without an interval."""
        if not interval.known:
            return Outcome.NOT_TESTABLE
        low, high = sorted(self.sign * (bound - self.null) for bound in (interval.low, interval.high))
        if self.kind == "better":
            return _decide(borne_out=low > 0 and high >= self.margin, excluded=high < self.margin)
        if self.kind == "not worse":
            return _decide(borne_out=low > -self.margin, excluded=high < -self.margin)
        if self.kind == "value" and low > self.margin:
            return Outcome.EXCEEDED
        within = -self.margin < low and high < self.margin
        return _decide(borne_out=within, excluded=high < -self.margin or low > self.margin)

    def region(self) -> tuple[float, float]:
        """Return the numbers that bear the claim out by the margin: beyond it, not below it, or within it."""
        if self.kind in ("equal", "value"):
            return self.null - self.margin, self.null + self.margin
        edge = self.null + self.sign * (self.margin if self.kind == "better" else -self.margin)
        return (edge, float("inf")) if self.sign > 0 else (float("-inf"), edge)


MORE, LESS = Hypothesis("better", MARGIN), Hypothesis("better", MARGIN, sign=-1)
NOT_LESS, NOT_MORE = Hypothesis("not worse", MARGIN), Hypothesis("not worse", MARGIN, sign=-1)


def _decide(*, borne_out: bool, excluded: bool) -> Outcome:
    if borne_out:
        return Outcome.REPRODUCED
    return Outcome.NOT_REPRODUCED if excluded else Outcome.INCONCLUSIVE


def decided(holds: bool) -> Outcome:
    """Return the outcome of a test that has no interval."""
    return Outcome.REPRODUCED if holds else Outcome.NOT_REPRODUCED


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes that must all bear a claim out; one that excludes it is enough."""
    order = (Outcome.NOT_REPRODUCED, Outcome.NOT_TESTABLE, Outcome.INCONCLUSIVE, Outcome.EXCEEDED, Outcome.REPRODUCED)
    return min(outcomes, key=order.index)


def one_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join outcomes of alternatives, of which one that bears a claim out is enough."""
    order = (Outcome.REPRODUCED, Outcome.EXCEEDED, Outcome.INCONCLUSIVE, Outcome.NOT_TESTABLE, Outcome.NOT_REPRODUCED)
    return min(outcomes, key=order.index)


def agreed(outcomes: Iterable[Outcome]) -> Outcome:
    """Join the outcomes of readings: theirs if they agree, `depends` if two contradict, `inconclusive` otherwise."""
    found = {outcome for outcome in outcomes if outcome != Outcome.NOT_TESTABLE}
    if len(found) <= 1:
        return found.pop() if found else Outcome.NOT_TESTABLE
    return Outcome.DEPENDS if len(found & set(DECIDED)) > 1 else Outcome.INCONCLUSIVE


def n_needed(values: pd.Series, margin: float) -> int | None:
    """Return the number of independent replicates whose 95 % interval would be no wider than `margin`.

    Args:
        values: the replicates at hand, whose standard deviation is taken for the true one.

    Returns:
        At least 2; None if `LARGEST_N` are too few or fewer than two are at hand.
    """
    _, sd, n = spread(values)
    if n < 2:
        return None
    enough = (
        count
        for count in range(2, LARGEST_N + 1)
        if stdtrit(count - 1, (1 + LEVEL) / 2) * sd / count**0.5 <= margin / 2
    )
    return next(enough, None)


Choices = Mapping[str, Sequence[str]]
"""By name of a choice its options."""


@dataclass(frozen=True)
class Reading:
    """One option for each choice that a claim depends on; empty where it does not.

    Args:
        target: of pairs without the class of the condition: `zero` (line 434) or `product` (Algorithm 3).
        network: `of table 1`, or `of the studies`.
        epochs: of claim 3, `ours`, or the `120` of figure 3.
        kernel: `cosine`, or a form of the Gaussian one.
        cohort: `septic` (patients with sepsis, line 651) or `whole`.
        loss: `printed` or `balanced` (pairs weighted by class); of claim 3 `raw` or `above its floor`.
        shares: classes of the references: `population` (shares of the data) or `equal`.
        rule: of decision: `printed` or `parzen`.
        ece: calibration error: `top label` (line 763) or `positive rate`.
        probability: `raw` or `calibrated` on validation data.
        model: where the paper does not name it.
        time: unit of time.
    """

    target: str = ""
    network: str = ""
    epochs: str = ""
    kernel: str = ""
    cohort: str = ""
    loss: str = ""
    shares: str = ""
    rule: str = ""
    ece: str = ""
    probability: str = ""
    model: str = ""
    time: str = ""

    @property
    def choices(self) -> dict[str, str]:
        """Return the options by the name of their choice."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name)}

    @property
    def of_paper(self) -> bool:
        """Return whether all options stand in the paper."""
        return not any(self.choices.get(name) in options for name, options in OURS.items())

    def text(self, choices: Iterable[str] | None = None) -> str:
        """Write the options of these choices, of all by default: `target zero, probability raw`."""
        names = self.choices if choices is None else choices
        return ", ".join(f"{'ECE' if name == 'ece' else name} {self.choices[name]}" for name in names)


OURS = {
    "network": ("of the studies",),
    "loss": ("balanced", "above its floor"),
    "shares": ("equal",),
    "probability": ("calibrated",),
}
"""The options that are ours."""
NAMES = [field.name for field in fields(Reading)]
"""The names of the choices."""


def varying(readings: Iterable[Reading]) -> list[str]:
    """Return the choices in which readings differ."""
    found = list(readings)
    return [name for name in NAMES if len({getattr(reading, name) for reading in found}) > 1]


def deciding(outcomes: Mapping[Reading, Outcome]) -> list[str]:
    """Return the fewest choices that an outcome is a function of."""
    names = varying(outcomes)
    for size in range(len(names) + 1):
        for subset in itertools.combinations(names, size):
            seen: dict[tuple[str, ...], Outcome] = {}
            if all(
                seen.setdefault(tuple(getattr(reading, name) for name in subset), outcome) == outcome
                for reading, outcome in outcomes.items()
            ):
                return list(subset)
    return names


def without_evidence(choices: Choices, tested: Iterable[Reading]) -> list[str]:
    """Name the combinations of `choices` that no reading has tested.

    An option that no reading has is named once, and its combinations are left out.
    """
    found = {tuple(getattr(reading, name) for name in choices) for reading in tested}
    unused = {
        (name, option)
        for place, (name, options) in enumerate(choices.items())
        for option in options
        if option not in {combination[place] for combination in found}
    }
    texts = [Reading(**{name: option}).text() for name, options in choices.items() for option in options
             if (name, option) in unused]  # fmt: skip
    for combination in itertools.product(*choices.values()):
        options = dict(zip(choices, combination, strict=True))
        if combination not in found and not unused & set(options.items()):
            texts.append(Reading(**options).text())
    return texts
