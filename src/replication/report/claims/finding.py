"""What the evidence shows of a claim: estimates, and the verdict that they give."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from replication.metrics.intervals import Interval, interval
from replication.report.claims.hypothesis import Hypothesis, Outcome, agreed, all_of, n_needed, one_of
from replication.report.evidence import Evidence

ON_A_SUBSTITUTE, WHERE_TESTED = "on a substitute", "where tested"
PAIR = ("clai-m", "clai-c")
"""The paper's models: kernels that a contributor adds are in none of its claims."""
Role = Literal["test", "option", "beside", "control"]


@dataclass(frozen=True)
class Unit:
    """How numbers of one kind are written.

    Args:
        digits: after the point.
        name: such as points; empty for a pure number.
        factor: from the value in the evidence to the number shown.
        signed: whether positive numbers carry a plus, as differences do.
    """

    digits: int
    name: str = ""
    factor: float = 1.0
    signed: bool = False

    def text(self, value: Interval) -> str:
        """Write a mean, with its interval where it has one: `+0.41 points [+0.12, +0.70]`."""
        form = f"{'+' if self.signed else ''}.{self.digits}f"
        mean, low, high = (format(self.factor * number, form) for number in (value.mean, value.low, value.high))
        number = f"{mean} {self.name}".rstrip()
        return f"{number} [{low}, {high}]" if value.known else number


PER_CENT = Unit(2, "%", factor=100)
POINTS = Unit(2, "points", factor=100, signed=True)
NUMBER, DIFFERENCE = Unit(3), Unit(3, signed=True)
EFFECT = Unit(2, "standard deviations", signed=True)


class Place(NamedTuple):
    """Under which reading a number stands.

    Args:
        target: the paper's reading of the targets, `zero` or `product`, where it matters.
        option: the choice of ours, a key of `options` in claims.yaml.
        model: where the paper does not name it, and one is enough.
    """

    target: str = ""
    option: str = ""
    model: str = ""


@dataclass(frozen=True)
class Estimate:
    """A number of the evidence.

    Args:
        key: the evidence folder, and `data` the name of its data.
        value: the number as the mean, with its interval where it has one.
        outcome: what it says of the claim; None where the claim says nothing of it.
        role: a test has a say in the verdict, an option stands beside it with a choice of ours, a control asks whether the same
            is found without the method.
        target, option, model: as of `Place`.
        short_data: the dataset alone, without the study and the number of samples.
        n_needed: the replicates that would decide what stays open; None where test samples count, whose part they leave.
    """

    key: str
    data: str
    quantity: str
    value: Interval
    unit: Unit
    outcome: Outcome | None
    role: Role
    part: str = ""
    target: str = ""
    option: str = ""
    model: str = ""
    hypothesis: Hypothesis | None = None
    n_needed: int | None = None
    short_data: str = ""


@dataclass
class Finding:
    """The evidence on a claim.

    Args:
        printed: the values that the paper prints.
        join: how the outcomes of one model and reading join.
        targets: the readings of the targets that the paper's text allows.
        required: the parts of the claim, where it has several.
        files: the evidence files behind them.
        missing: what would have to be there for what was not tested.
        not_controlled: the controls without evidence.
        note: what stands beside the verdict.
    """

    evidence: Evidence
    printed: pd.DataFrame
    join: Callable[[Iterable[Outcome]], Outcome] = all_of
    targets: Sequence[str] = ()
    required: Sequence[str] = ()
    estimates: list[Estimate] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    not_controlled: list[str] = field(default_factory=list)
    note: str = ""

    def start(self, datasets: Sequence[str], targets: Sequence[str] = ()) -> list[str]:
        """Name what absent `datasets` need, and return those datasets and substitutes that have runs of a CLaI model."""
        self.targets, present = targets, []
        for dataset in [key for key in datasets if key in self.evidence.expected]:
            for stand_in in self.evidence.stand_ins(dataset):
                if self.evidence.runs(stand_in, PAIR):
                    present += [] if stand_in in present else [stand_in]
                elif self.evidence.has(stand_in):
                    self.missing.append(f"{self.evidence.title(stand_in)}: runs of a CLaI model")
            if not self.evidence.has(dataset):
                title, needs = (self.evidence.expected[dataset][key] for key in ("title", "needs"))
                self.missing.append(needs if needs.startswith(title) else f"{title}: {needs}")
        return present

    def cite(self, key: str, file: str) -> None:
        """Add an evidence file to those behind the numbers."""
        path = self.evidence.path(key, file).as_posix()
        self.files += [] if path in self.files else [path]

    def frame(self, key: str, file: str) -> pd.DataFrame:
        """Return an evidence file and cite it; it is empty if it is not there."""
        frame = self.evidence.frame(key, file)
        if len(frame):
            self.cite(key, file)
        return frame

    def add(
        self,
        key: str,
        quantity: str,
        values: pd.Series | Interval | float,
        unit: Unit,
        hypothesis: Hypothesis | Outcome | None = None,
        place: Place | None = None,
        *,
        role: Role = "test",
        data: str = "",
        part: str = "",
    ) -> None:
        """Add an estimate if it has a value.

        Args:
            values: replicates by seed or fold, their interval, or a single number.
            hypothesis: what the claim says of the interval, or what follows from a single number.
            place: the reading that it belongs to.
            Others: as of `Estimate`. With an option the role is `option`, without a hypothesis `beside`.
        """
        value = interval(values) if isinstance(values, pd.Series) else values
        if not isinstance(value, Interval):
            value = Interval(value, np.nan, np.nan, 0)
        if np.isnan(value.mean):
            return
        place = place or Place()
        asked = hypothesis if isinstance(hypothesis, Hypothesis) else None
        outcome = hypothesis.outcome(value) if isinstance(hypothesis, Hypothesis) else hypothesis
        if role == "test":
            role = "option" if place.option else "beside" if outcome is None else "test"
        if outcome == Outcome.NOT_TESTABLE and role == "test":
            self.missing.append("three seeds or folds at least, and an interval with a width within the metric's range")
        needed = None
        if asked and outcome == Outcome.INCONCLUSIVE and isinstance(values, pd.Series):
            needed = n_needed(values, asked.margin)
        data, short = (data, data) if data else (self.evidence.title(key), self.evidence.dataset_title(key))
        self.estimates.append(
            Estimate(key, data, quantity, value, unit, outcome, role, part, *place, asked, needed, short)
        )

    @property
    def tests(self) -> list[Estimate]:
        """Return the estimates with a say: of each part those on the paper's own data, on substitutes where there are none."""
        tests = [estimate for estimate in self.estimates if estimate.role == "test"]
        own = {estimate.part for estimate in tests if not self._is_substitute(estimate)}
        return [estimate for estimate in tests if estimate.part not in own or not self._is_substitute(estimate)]

    def _is_substitute(self, estimate: Estimate) -> bool:
        return estimate.key in self.evidence.expected and self.evidence.is_substitute(estimate.key)

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Return what the evidence says under each reading of the targets, by one of the models."""
        targets = dict.fromkeys(estimate.target for estimate in self.tests)
        return {target: self._joined(self._of(target), self.required) for target in targets}

    @property
    def parts(self) -> dict[str, Outcome]:
        """Return what the evidence says of each part of the claim."""
        return {name: self._joined([e for e in self.tests if e.part == name]) for name in self.required}

    def data(self, target: str) -> dict[str, Outcome]:
        """Return what each dataset says under a reading of the targets."""
        names = dict.fromkeys(estimate.short_data for estimate in self._of(target))
        return {name: self._joined([e for e in self._of(target) if e.short_data == name]) for name in names}

    def _of(self, target: str) -> list[Estimate]:
        return [estimate for estimate in self.tests if estimate.target == target]

    def _joined(self, estimates: Sequence[Estimate], required: Sequence[str] = ()) -> Outcome:
        return one_of(self._outcome(group, required) for group in _by_model(estimates))

    def _outcome(self, group: Sequence[Estimate], required: Sequence[str]) -> Outcome:
        """Join the outcomes of a model; a part without evidence is not testable."""
        lacking = set(required) - {estimate.part for estimate in group}
        found = [estimate.outcome for estimate in group if estimate.outcome is not None]
        return self.join([*found, *[Outcome.NOT_TESTABLE] * len(lacking)])

    @property
    def untested(self) -> list[str]:
        """Return the readings of the targets without evidence."""
        tested = [target for target, outcome in self.outcomes.items() if outcome != Outcome.NOT_TESTABLE]
        return [target for target in self.targets if tested and target not in tested]

    @property
    def outcome(self) -> Outcome:
        """Return the verdict: that of the readings, if they agree."""
        return agreed(self.outcomes.values())

    @property
    def qualifier(self) -> str:
        """Say on which data the verdict rests."""
        if self.outcome == Outcome.NOT_TESTABLE:
            return ""
        if any(self._is_substitute(estimate) for estimate in self.tests):
            return ON_A_SUBSTITUTE
        return WHERE_TESTED if self.missing or self.untested else ""

    @property
    def decisive(self) -> list[Estimate]:
        """Return an estimate for each outcome that a reading has: the first that shows it, or else the first."""
        shown: dict[Outcome, Estimate] = {}
        for target, outcome in self.outcomes.items():
            for group in _by_model(self._of(target)):
                if self._outcome(group, self.required) == outcome and outcome != Outcome.NOT_TESTABLE:
                    sought = Outcome.REPRODUCED if outcome == Outcome.IN_PART else outcome
                    alike = [estimate for estimate in group if estimate.outcome == sought]
                    shown.setdefault(outcome, (alike or group)[0])
        return list(shown.values())


def _by_model(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """Return for each model its estimates and those that name none; all of them where none names a model."""
    models = list(dict.fromkeys(estimate.model for estimate in estimates if estimate.model))
    return [[e for e in estimates if e.model in ("", model)] for model in models] or [list(estimates)]
