"""What the test of a claim finds: numbers in parts, kept as numbers until a page shows them, and the verdict that they give."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from clai.report.evidence import Evidence
from clai.report.statistics import UNITS, Interval

REPLICATES = "at least two seeds or folds of each model"
"""What a difference needs before it can decide a verdict."""


class Verdict(StrEnum):
    """The four verdicts, in the words that pages show."""

    REPRODUCED = "reproduced"
    REPRODUCED_WHERE_TESTED = "reproduced where tested"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True)
class Unit:
    """How numbers of one kind are written.

    Args:
        digits: after the point; significant ones for `style` g.
        name: as in "accuracy in per cent"; empty for a pure number.
        factor: from the value in the evidence to the number shown.
        signed: whether positive numbers carry a plus, as differences do.
        style: f, e or g, as in Python's format strings.
    """

    digits: int
    name: str = ""
    factor: float = 1.0
    signed: bool = False
    style: str = "f"

    def text(self, value: float | Interval) -> str:
        """Write a number, or a mean with its interval and the number of replicates: `+0.41 [+0.12, +0.70], n = 3 seeds`."""
        if not isinstance(value, Interval):
            return f"{self.factor * value:{'+' if self.signed else ''}.{self.digits}{self.style}}"
        if value.n == 0:
            return "no value"
        mean, low, high = (self.text(number) for number in (value.mean, value.low, value.high))
        if not value.known:
            return f"{mean}, n = 1 {value.unit}, no interval"
        return f"{mean} [{low}, {high}], n = {value.n} {UNITS[value.unit]}"


PER_CENT = Unit(2, "per cent", factor=100)
POINTS = Unit(2, "percentage points", factor=100, signed=True)
FRACTION = Unit(3)
DIFFERENCE = Unit(3, signed=True)
"""Of two fractions, or of two numbers without a unit."""
LOSS = Unit(4)


@dataclass(frozen=True)
class Statistic:
    """A named number, or a mean with its interval."""

    name: str
    value: float | Interval
    unit: Unit

    def text(self) -> str:
        """Write the name and the value."""
        return f"{self.name} {self.unit.text(self.value)}"


@dataclass(frozen=True)
class Part:
    """One line of the evidence.

    Args:
        data: name of the data that the numbers rest on.
        quantity: what the numbers measure.
        statistics: the numbers.
        holds: whether they bear the claim out; None if they have no say in the verdict.
    """

    data: str
    quantity: str
    statistics: Sequence[Statistic]
    holds: bool | None = None

    def text(self) -> str:
        """Write the part as `data, quantity in unit: name value; name value.`"""
        units = dict.fromkeys(statistic.unit.name for statistic in self.statistics if statistic.unit.name)
        quantity = self.quantity + (f" in {' and '.join(units)}" if units else "")
        return f"{self.data}, {quantity}: {'; '.join(statistic.text() for statistic in self.statistics)}."


@dataclass
class Finding:
    """The evidence on a claim.

    Args:
        parts: the lines of the evidence.
        files: the evidence files behind them.
        data: names of the data behind them.
        missing: what would have to be there for what was not tested.
        alternatives: whether, of several parts on the same data, one that bears the claim out is enough.
    """

    parts: list[Part] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    alternatives: bool = False

    def add(self, *parts: Part, known: bool = True, needs: str = REPLICATES) -> None:
        """Add parts; if too little is `known` for a verdict, they have no say in it and `needs` is missing."""
        self.parts += parts if known else [replace(part, holds=None) for part in parts]
        if not known:
            self.missing.append(needs)

    def cite(self, evidence: Evidence, dataset: str, file: str, title: bool = False) -> None:
        """Add an evidence file, and with `title` the name of its data."""
        self.files.append(evidence.path(dataset, file).as_posix())
        if title:
            self.data.append(evidence.title(dataset))

    @property
    def outcomes(self) -> list[bool]:
        """Whether each part that has a say bears the claim out; with `alternatives`, whether one does on each dataset."""
        parts = [part for part in self.parts if part.holds is not None]
        if not self.alternatives:
            return [bool(part.holds) for part in parts]
        data = dict.fromkeys(part.data for part in parts)
        return [any(part.holds for part in parts if part.data == name) for name in data]

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: every outcome must bear the claim out, and nothing may be missing."""
        if not self.outcomes:
            return Verdict.NOT_TESTABLE
        if not all(self.outcomes):
            return Verdict.NOT_REPRODUCED
        return Verdict.REPRODUCED_WHERE_TESTED if self.missing else Verdict.REPRODUCED


def start(evidence: Evidence, datasets: Sequence[str], file: str) -> tuple[Finding, list[str]]:
    """Begin a finding on `file` of those of `datasets` that are at hand, or whose substitute is.

    Returns:
        The finding, which cites the files that are there and names what the datasets that are not there need; the datasets and
        substitutes at hand.
    """
    finding, present = Finding(), []
    for dataset in [key for key in datasets if key in evidence.expected]:
        if evidence.has(stand_in := evidence.stand_in(dataset)):
            finding.cite(evidence, stand_in, file, title=True)
            present.append(stand_in)
        if not evidence.has(dataset):
            title, needs = (evidence.expected[dataset][key] for key in ("title", "needs"))
            finding.missing.append(needs if needs.startswith(title) else f"{title}: {needs}")
    return finding, present
