"""A claim of the paper, what its test finds, in parts that are numbers, and the verdict that these give."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from replication.report.claims.hypothesis import (
    DECIDED,
    Choices,
    Hypothesis,
    Outcome,
    Qualifier,
    Reading,
    Verdict,
    agreed,
    all_of,
    deciding,
    n_needed,
    one_of,
    varying,
    without_evidence,
)
from replication.report.evidence import Evidence
from replication.report.statistics import Interval, interval
from replication.runs.models import CLAI

REPLICATES = "at least two seeds or folds of each model"
"""What a difference needs before it can decide a verdict."""


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
        """Write a number, or a mean with its interval: `+0.41 [+0.12, +0.70]`."""
        if not isinstance(value, Interval):
            return f"{self.factor * value:{'+' if self.signed else ''}.{self.digits}{self.style}}"
        mean, low, high = (self.text(number) for number in (value.mean, value.low, value.high))
        return f"{mean} [{low}, {high}]" if value.known else mean


PER_CENT = Unit(2, "per cent", factor=100)
POINTS = Unit(2, "percentage points", factor=100, signed=True)
DIFFERENCE = Unit(3, signed=True)
"""Of two fractions, or of two numbers without a unit."""
FINE_DIFFERENCE = Unit(4, signed=True)
"""Of calibration errors, which calibration brings to about 0.001."""
LOSS = Unit(4)


@dataclass(frozen=True)
class Part:
    """A number of the evidence.

    Args:
        data: name of the data that it rests on.
        quantity: what it measures.
        value: the number, or a mean with its interval.
        unit: how to write it.
        outcome: what it says of the claim; None if it has no say in the verdict.
        reading: the reading that it belongs to.
        model: the model, where one of several is enough.
        hypothesis: what the claim says of the number.
        replicates: the values behind an interval, by seed or fold.
        key: the evidence folder.
    """

    data: str
    quantity: str
    value: float | Interval
    unit: Unit
    outcome: Outcome | None = None
    reading: Reading = field(default_factory=Reading)
    model: str = ""
    hypothesis: Hypothesis | None = None
    replicates: pd.Series = field(default_factory=lambda: pd.Series(dtype=float), compare=False)
    key: str = ""

    @property
    def samples(self) -> int:
        """Return the number of test samples, or of groups of them, that the interval counts; 0 if it does not."""
        return self.value.samples if isinstance(self.value, Interval) else 0

    @property
    def n_needed(self) -> int | None:
        """Return the number of replicates that an inconclusive part would need (`hypothesis.n_needed`).

        None where test samples count as well: more seeds leave their part of the interval as it is.
        """
        if self.hypothesis is None or self.outcome != Outcome.INCONCLUSIVE or self.samples:
            return None
        return n_needed(self.replicates, self.hypothesis.margin)


def weigh(
    evidence: Evidence,
    key: str,
    quantity: str,
    values: pd.Series,
    unit: Unit,
    hypothesis: Hypothesis,
    reading: Reading | None = None,
    model: str = "",
    over_samples: Interval | None = None,
) -> Part:
    """Weigh the interval over `values`, or that over seeds and test samples together, against a hypothesis.

    Args:
        values: by seed or fold.
        over_samples: the interval over seeds and test samples together; None where the samples' predictions were not kept.
        Others: as of `Part`.
    """
    value = over_samples or interval(values)
    outcome = hypothesis.outcome(value)
    return Part(
        evidence.title(key), quantity, value, unit, outcome, reading or Reading(), model, hypothesis, values, key
    )


@dataclass
class Finding:
    """The evidence on a claim.

    Args:
        parts: the numbers.
        choices: the choices that the claim's text leaves open, with all their options.
        files: the evidence files behind the numbers.
        keys: the evidence folders whose names the pages show, with these names.
        substitutes: those of these folders whose data stand in for the paper's.
        missing: what would have to be there for what was not tested.
        controls: numbers that say what would be found without the method; they have no say in the verdict. Their outcome says
            whether they agree with the claim.
        not_controlled: the controls without evidence.
    """

    parts: list[Part] = field(default_factory=list)
    choices: Choices = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    substitutes: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    controls: list[Part] = field(default_factory=list)
    not_controlled: list[str] = field(default_factory=list)

    def control(self, name: str, parts: Sequence[Part]) -> None:
        """Add the numbers of a control that have a value; without any, note that it was not run."""
        valued = [part for part in parts if not (isinstance(part.value, Interval) and part.value.n == 0)]
        self.controls += valued
        if not valued:
            self.not_controlled.append(name)

    def add(self, *parts: Part) -> None:
        """Add those parts that have a value; name what a part without an interval needs."""
        valued = [part for part in parts if not (isinstance(part.value, Interval) and part.value.n == 0)]
        self.parts += valued
        if any(part.outcome == Outcome.NOT_TESTABLE for part in valued):
            self.missing.append(REPLICATES)

    def cite(self, evidence: Evidence, key: str, file: str, title: bool = True) -> None:
        """Add an evidence file, and with `title` the name of its data."""
        path = evidence.path(key, file).as_posix()
        self.files += [] if path in self.files else [path]
        if title:
            self.keys[key] = evidence.title(key)
            self.substitutes |= {key} if evidence.is_substitute(key) else set()

    @property
    def data(self) -> list[str]:
        """Return the names of the data."""
        return list(self.keys.values())

    @property
    def judged(self) -> list[Part]:
        """Return the parts that have a say in the verdict."""
        return [part for part in self.parts if part.outcome is not None]

    @property
    def outcomes(self) -> dict[Reading, Outcome]:
        """Return what the evidence says under each reading: on every dataset, by one of the models."""
        return {
            reading: all_of(
                one_of(joint_outcome(group) for group in _grouped(parts, "model"))
                for parts in _grouped(of_reading, "data")
            )
            for reading, of_reading in ((parts[0].reading, parts) for parts in _grouped(self.judged, "reading"))
        }

    @property
    def untested(self) -> list[str]:
        """Return the readings without evidence."""
        known = [reading for reading, outcome in self.outcomes.items() if outcome != Outcome.NOT_TESTABLE]
        return without_evidence(self.choices, known) if known else []

    @property
    def verdict(self) -> Verdict:
        """Return the verdict by the rules of `RULES`."""
        outcome = agreed(self.outcomes.values())
        if outcome == Outcome.NOT_TESTABLE:
            return Verdict(outcome)
        keys = {part.key for part in self.judged if part.key}
        if keys and keys <= self.substitutes:
            return Verdict(outcome, Qualifier.SUBSTITUTE)
        return Verdict(outcome, Qualifier.WHERE_TESTED if self.missing or self.untested else Qualifier.WHOLE)

    @property
    def deciding(self) -> list[str]:
        """Return the fewest choices that decide between the outcomes of the readings."""
        return deciding({key: value for key, value in self.outcomes.items() if value != Outcome.NOT_TESTABLE})

    @property
    def groups(self) -> list[list[Part]]:
        """Return the judged parts by reading, dataset and model: those of a group must all bear the claim out."""
        return [
            group
            for of_reading in _grouped(self.judged, "reading")
            for of_data in _grouped(of_reading, "data")
            for group in _grouped(of_data, "model")
        ]

    @property
    def decisive(self) -> list[Part]:
        """Return the parts that show the verdict.

        Two contradicting ones if it depends on the reading, as alike in reading and data as there are; otherwise the first one
        of each outcome that a reading has.
        """
        outcomes = self.outcomes
        shown = [part for part in map(deciding_part, self.groups) if part.outcome == outcomes[part.reading]]
        if self.verdict.outcome == Outcome.DEPENDS:
            pairs = (
                (len(varying([one.reading, other.reading])) + (one.data != other.data), (one, other))
                for one, other in itertools.combinations(shown, 2)
                if one.outcome != other.outcome and {one.outcome, other.outcome} <= set(DECIDED)
            )
            return list(min(pairs, key=lambda pair: pair[0])[1])
        first: dict[Outcome | None, Part] = {}
        for part in shown:
            first.setdefault(part.outcome, part)
        return list(first.values())


def joint_outcome(group: Sequence[Part]) -> Outcome:
    """Return what judged parts say that must all bear a claim out."""
    return all_of(part.outcome for part in group if part.outcome is not None)


def deciding_part(group: Sequence[Part]) -> Part:
    """Return the first part of a group with its joint outcome."""
    return next(part for part in group if part.outcome == joint_outcome(group))


def _grouped(parts: Sequence[Part], name: str) -> list[list[Part]]:
    groups: dict[object, list[Part]] = {}
    for part in parts:
        groups.setdefault(getattr(part, name), []).append(part)
    return list(groups.values())


def start(evidence: Evidence, datasets: Sequence[str], file: str) -> tuple[Finding, list[str]]:
    """Begin a finding on `file` of those of `datasets` that are at hand, or whose substitute is.

    Returns:
        The finding, which cites the files that are there and names what the datasets that are not there need; the datasets and
        substitutes with runs of a CLaI model.
    """
    finding, present = Finding(), []
    for dataset in [key for key in datasets if key in evidence.expected]:
        if evidence.runs(stand_in := evidence.stand_in(dataset), CLAI):
            finding.cite(evidence, stand_in, file)
            present += [] if stand_in in present else [stand_in]
        elif evidence.has(stand_in):
            finding.missing.append(f"{evidence.title(stand_in)}: runs of a CLaI model")
        if not evidence.has(dataset):
            title, needs = (evidence.expected[dataset][key] for key in ("title", "needs"))
            finding.missing.append(needs if needs.startswith(title) else f"{title}: {needs}")
    return finding, present


Judge = Callable[[Evidence, pd.DataFrame], Finding]
"""From the evidence and the values that the paper prints to what the test finds."""


@dataclass(frozen=True)
class Claim:
    """A claim in our words.

    Args:
        number: under which pages list it, such as 1 or 3a.
        short: the claim in few words.
        claim: what the paper says.
        place: in the paper's source: sections, tables, figures and line numbers.
        test: what is compared with what.
        rule: what the test must find for the verdict "reproduced".
        judge: the test.
        limits: what the test leaves out, such as a control; empty if nothing.
    """

    number: str
    short: str
    claim: str
    place: str
    test: str
    rule: str
    judge: Judge
    limits: str = ""


def claim(number: str, short: str, **texts: str) -> Callable[[Judge], Claim]:
    """Turn the function below into the claim that it judges; `texts` are the other fields of `Claim`."""
    return lambda judge: Claim(number, short, judge=judge, **texts)
