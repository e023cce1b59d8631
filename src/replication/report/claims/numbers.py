"""Numbers of claims: what runs measured, how two arms differ, and the frame with one row a number."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from replication.metrics.intervals import Interval, interval, log_interval, over_samples, replicates
from replication.report.claims.hypothesis import ANY, MARGIN, TOO_MANY, Hypothesis, Kind, Outcome, n_that_decides
from replication.report.claims.readings import Reading, learned, readings_of
from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, Evidence, printed_reading
from replication.report.labels import model_title
from replication.report.texts import printed_value
from replication.runs.registry import CLAI, CLAIM_TEXTS, MIXTURES, MODELS

Role = Literal["test", "informs", "option", "beside", "control"]
MEASURES: Mapping[str, Mapping[str, Any]] = CLAIM_TEXTS["measures"]
ARMS = {"identity": "Gaussian (M = I)", "maximised": "centred alignment maximised"}
"""Names of arms that are no model."""
WANTED: dict[str, tuple[Kind, int]] = {
    "more": ("better", 1), "less": ("better", -1), "not less": ("not worse", 1), "not more": ("not worse", -1),
    "nearly": ("nearly", 1),
}  # fmt: skip
"""By the word of a row in claims.yaml the kind of a hypothesis, and its sign."""
EACH, MIXTURE = "each kernel", "its mixture"
"""In place of an arm: CLaI-M and CLaI-C in turn, of which one that passes is enough, since the paper names none; and beside a
kernel the mixture on its embeddings."""


class Unit(NamedTuple):
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
        """Write a mean, with its interval where it has one: `+0.41 points [−0.12, +0.94]`, with true minus signs."""
        form = f"{'+' if self.signed else ''}.{self.digits}f"
        numbers = (format(self.factor * number, form) for number in (value.mean, value.low, value.high))
        mean, low, high = (number.replace("-", "−") for number in numbers)
        number = f"{mean} {self.name}".rstrip()
        return f"{number} [{low}, {high}]" if value.known else number


PER_CENT = Unit(2, "%", factor=100)
POINTS = Unit(2, "points", factor=100, signed=True)
NUMBER, DIFFERENCE = Unit(3), Unit(3, signed=True)
EFFECT = Unit(2, "standard deviations", signed=True)
RATIO, SCALE = Unit(3, "times"), Unit(1)
P_VALUE = Unit(3, "(p)")
_UNITS = {
    "share": (PER_CENT, POINTS),
    "change": (POINTS, POINTS),
    "number": (NUMBER, DIFFERENCE),
    "unbounded": (NUMBER, DIFFERENCE),
    "effect": (EFFECT, EFFECT),
    "scale": (SCALE, DIFFERENCE),
}
"""By the kind of a measure the unit of a value, and of a difference."""


@dataclass(frozen=True)
class Test:
    """A measure of an arm, or of two arms compared, under each reading of a set.

    Args:
        measure: a key of `measures` in claims.yaml.
        of: a key of the arms of a reading.
        minus, over: the arm that is taken from it, or by which it is divided.
        under: a set of readings.
        want: what the claim says of the number, a key of `WANTED`; nothing where it says nothing.
        than, margin: the number from which differences count, and the least that matters; `printed`: the gap of table III.
        role: a test has a say in the verdict; under an option of ours it stands beside it. A control asks whether the same is
            found without the method.
        part: of the claim; that of the reading where there is none.
        least: the share of the first arm's value that the second must reach for a comparison.
        model: the arm, where a row is of `EACH`.
    """

    measure: str
    of: str
    under: str
    minus: str = ""
    over: str = ""
    want: str = ""
    margin: float | Literal["printed"] = MARGIN
    than: float = 0.0
    role: Role = "test"
    part: str = ""
    least: float = 0.0
    model: str = ""

    @property
    def arms(self) -> list[str]:
        return list(filter(None, (self.of, self.minus, self.over)))

    @property
    def kind(self) -> str:
        return str(MEASURES[self.measure]["kind"])

    @property
    def unit(self) -> Unit:
        return RATIO if self.over else _UNITS[self.kind][len(self.arms) - 1]

    @property
    def hypothesis(self) -> Hypothesis | None:
        """Return what the claim says of the number, by the values that the paper prints."""
        if not self.want:
            return None
        margin = self.margin
        if margin == "printed":
            ours, other = (printed_value("table3", model, self.measure.split("_")[0]) for model in self.arms)
            margin = other - ours
        bounds = ANY if self.over or self.kind in ("effect", "unbounded") else (-1.0, 1.0) if self.minus else (0.0, 1.0)
        kind, sign = WANTED[self.want]
        return Hypothesis(kind, margin, sign, self.than, bounds)


def unfolded(row: Mapping[str, Any]) -> Iterator[Test]:
    """Yield the tests of a row of claims.yaml, whose lists stand for several."""
    each = row["of"] == EACH
    listed = {key: value if isinstance(value, list) else [value] for key, value in row.items() if value != EACH}
    lists = listed | {"of": CLAI} if each else listed
    for values in itertools.product(*lists.values()):
        test = Test(**dict(zip(lists, values, strict=True)))
        if test.minus == MIXTURE:
            test = replace(test, minus=MIXTURES[test.of])
        yield replace(test, model=test.of) if each else test


@cache
def measured(evidence: Evidence, arm: str, measure: str, rule: str, shares: str, kernel: str) -> pd.Series:
    """Return what the runs of an arm measured, by seed, fold or repetition.

    A mean over a learning curve has a value for each seed and epoch, so that curves are compared at equal epochs.
    """
    name, cell = arm.split("/")
    entry = MEASURES[measure]
    rows = evidence.frame(name, entry["file"])
    rows = rows[rows[next(column for column in ("cell", "model", "variant") if column in rows)] == cell]
    if "quantity" in entry:  # as the kernel sees the signals, where there is one
        plain, seen = (rows["quantity"] == entry["quantity"] + ending for ending in ("", "_seen"))
        rows = rows[seen if seen.any() else plain]
    if entry["file"] == "metrics.csv":
        rows = rows[printed_reading(rows, rule, shares) & (rows["metric"] == measure)]
    if entry["file"] == "alignment.csv":
        rows = rows[rows["kernel"] == kernel]
    if "value" not in entry:
        return replicates(rows)
    columns = rows.assign(above_floor=rows["loss"] - rows["floor"]) if "floor" in rows else rows
    by_epoch = columns.set_index(["seed", "epoch"]).reindex(columns=[entry["column"]])
    curves = by_epoch[entry["column"]].dropna().sort_index()
    by_seed = curves.groupby("seed")
    if entry["value"] == "rise":
        return by_seed.last() - by_seed.first()
    return curves if entry["value"] == "mean" else by_seed.agg(entry["value"])


def compared(
    evidence: Evidence, reading: Reading, measure: str, arms: Sequence[str], *, ratio: bool = False
) -> tuple[Interval | None, pd.Series, list[tuple[str, str]]]:
    """Return a measure of an arm, or of the first arm minus (or over) the second, and the names and files behind it.

    It is the interval over seeds and test samples, where `comparisons.csv` has one for these arms; and replicates, by seed, fold
    or repetition.
    """
    first, *others = (measured(evidence, reading.arms[arm], measure, *reading.how) for arm in arms)
    for other in others:
        first = (first / other if ratio else first - other).dropna()
    values = first.groupby("seed").mean() if first.index.nlevels > 1 else first
    names, cells = zip(*(reading.arms[arm].split("/") for arm in arms), strict=True)
    file = MEASURES[measure]["file"]
    if len(set(names)) == 1 and file == "metrics.csv" and not ratio:
        around = over_samples(evidence.frame(names[0], "comparisons.csv"), measure, *cells)
        if around is not None:
            return around, values, [(names[0], "comparisons.csv")]
    return None, values, [(name, file) for name in names]


RECORDED = [
    "role", "part", "target", "option", "name", "data", "model", "quantity", "algorithm", "arms", "embeddings_of", "unit", "text",
    "mean", "low", "high", "n", "samples", "outcome", "half", "twice", "reason", "decides", "n_needed", "margins", "holds",
]  # fmt: skip
"""Columns of the frame of numbers that claims.json has.

`arms` are the runs that a number compares, name and cell; `embeddings_of` those whose embeddings a model of them stands on,
empty where it has its own; `algorithm` what of the paper produces the number, empty for what is ours. Numbers stand in the unit
shown, with six significant digits. `half` and `twice` are the outcomes at half and at twice the margin, `reason` is why a number
has no say. An interval that a rule judges stands in `margins` as well, which speak for the claim where they are positive, beside
the range that bears it out, `holds`; its open end is None. `decides` marks the decisive numbers.
"""
COLUMNS = [*RECORDED, "value", "dataset", "substitute", "files", "which"]
"""All columns. `value` is an `Interval`, `files` are paths of evidence behind it, `which` is the kernel that it is about."""


@dataclass
class Numbers:
    """The numbers on a claim.

    Args:
        needs: what would have to be there for what was not tested.
        note: what stands beside the verdict.
    """

    evidence: Evidence
    rows: list[dict[str, Any]] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    note: str = ""

    def test(self, test: Test) -> None:
        """Add the numbers of a test."""
        entry, want, model = MEASURES[test.measure], test.hypothesis, test.model
        between = " over " if test.over else " minus "
        for one in readings_of(self.evidence, test.under):
            if one.needs:
                self.needs.append(f"{self.evidence.title(one.name)}: {one.needs}")
            if one.needs or not set(test.arms) <= one.arms.keys() or (one.option and "option" in entry):
                continue
            around, values, files = compared(self.evidence, one, test.measure, test.arms, ratio=bool(test.over))
            named = "" if model and len(test.arms) == 1 else between.join(map(title_of, test.arms))
            reason = ""
            if test.least:
                means = [measured(self.evidence, one.arms[arm], test.measure, *one.how).mean() for arm in test.arms]
                if means[1] < test.least * means[0]:
                    reason = f"`{one.arms[test.arms[1]]}` reaches less than half of what it is compared with"
            # A vote by a rule or with shares of ours is of no algorithm of the paper.
            printed = (one.rule, one.shares) == (PRINTED_RULE, PRINTED_SHARES)
            option = entry.get("option", one.option) if test.role == "test" else ""
            self.add(
                one.name, ", ".join(filter(None, [entry["title"], named, one.note])), around or values, test.unit, want, reason,
                role=test.role, option=option, part=test.part or one.part, target=one.target,
                model=model, which=title_of(model) or (one.note and f"the {one.note}"), arms=[one.arms[arm] for arm in test.arms],
                algorithm=entry.get("algorithm", "") if printed else "", files=files, replicates=values if around else None,
            )  # fmt: skip

    def add(
        self,
        name: str,
        quantity: str,
        values: pd.Series | Interval | float,
        unit: Unit,
        want: Hypothesis | Outcome | None = None,
        reason: str = "",
        replicates: pd.Series | None = None,
        **columns: Any,
    ) -> None:
        """Add a number if it has a value.

        Args:
            values: replicates, their interval, or a single number. Intervals of positive ratios and scales are on the log scale.
            want: what the claim says of the interval, or what follows from a single number.
            reason: why the number has no say, where there is a reason beside those of `_no_say`.
            replicates: of an interval over seeds and test samples the values by seed, from which follows how many would decide.
            columns: others of `COLUMNS`; those that are not given are empty, and the role is a test.
        """
        log = isinstance(values, pd.Series) and unit in (RATIO, SCALE) and bool((values > 0).all())
        if isinstance(values, pd.Series):
            value = log_interval(values) if log else interval(values)
        else:
            value = values if isinstance(values, Interval) else Interval(values, np.nan, np.nan, 0)
        if np.isnan(value.mean):
            return
        asked = want if isinstance(want, Hypothesis) else None
        outcomes = [
            replace(asked, margin=factor * asked.margin).outcome(value) if asked else want for factor in (1, 0.5, 2)
        ]
        row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"role": "test", "arms": [], "files": []} | columns
        row["role"] = "option" if row["option"] else row["role"]
        judged = row["role"] in ("test", "option") and outcomes[0]
        reason = (reason or self._no_say(row["arms"])) if judged else ""
        if reason:
            outcomes = [Outcome.NO_SAY] * 3
        needed, own = "", values if isinstance(values, pd.Series) else replicates
        if asked and outcomes[0] == Outcome.INCONCLUSIVE and own is not None:
            needed = n_that_decides(own, asked, log=log)
            if own is replicates and needed != TOO_MANY:  # More seeds leave the part of the test samples as it is.
                needed = f"{needed} by seeds alone"
        bounds = (value.low, value.mean, value.high) if value.known else ()
        margins = sorted(asked.margins(bound) for bound in bounds) if asked else []
        self.rows.append(row | {
            "name": name, "quantity": quantity, "value": value, "unit": unit.name, "text": unit.text(value),
            **{part: _digits(unit.factor * getattr(value, part)) for part in ("mean", "low", "high")},
            "n": value.n, "samples": value.samples,
            **dict(zip(("outcome", "half", "twice"), outcomes, strict=True)), "reason": reason,
            "margins": [_digits(margin) for margin in margins],
            "holds": asked and [_digits(edge) for edge in asked.holds],
            "data": row["data"] or self.evidence.title(name), "dataset": row["data"] or self.evidence.dataset_title(name),
            "substitute": self.evidence.is_substitute(name), "n_needed": needed,
            "embeddings_of": list(dict.fromkeys(filter(None, map(embeddings_of, row["arms"])))),
            "files": [self.evidence.path(*file).as_posix() for file in row["files"]],
        })  # fmt: skip

    def _no_say(self, arms: Sequence[str]) -> str:
        """Say why a comparison of these arms has no say: one did not learn, or stands on embeddings of other runs."""
        for arm in arms:
            known = learned(self.evidence, arm)
            if known and not known.enough:
                return f"`{arm}` did not learn: {known.by} {NUMBER.text(known.value)}"
        for arm in arms:
            if (base := embeddings_of(arm)) and base not in arms:
                return f"`{arm}` is fitted on the embeddings of `{base}`, which is not what it is compared with"
        return ""

    def frame(self) -> pd.DataFrame:
        """Return a row a number. A test on a substitute informs where its part of the claim has tests on the paper's own data."""
        frame = pd.DataFrame(self.rows, columns=COLUMNS, dtype=object)
        tests, substitute = frame["role"] == "test", frame["substitute"].astype(bool)
        with_own = frame["part"].isin(frame.loc[tests & ~substitute, "part"])
        return frame.assign(role=frame["role"].mask(tests & substitute & with_own, "informs"))


def _digits(number: float) -> float | None:
    return float(f"{number:.6g}") if np.isfinite(number) else None


def embeddings_of(arm: str) -> str:
    """Return the arm whose embeddings a model is fitted on; nothing for one that embeds samples itself."""
    name, cell = arm.split("/")
    base = MODELS[cell].embeddings if cell in MODELS else None
    return f"{name}/{base}" if base else ""


def title_of(arm: str) -> str:
    """Return the name of an arm: of a model, or of what is compared in its place; nothing for no arm."""
    return ARMS.get(arm) or (model_title(arm) if arm else "")
