"""The paper's claims, each judged once by the evidence: what pages, figures and verification read.

claims.yaml has the words of a claim, and its tests as rows. Its verdict follows from the numbers of these rows by stated rules.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from replication.report.claims.computed import COMPUTED
from replication.report.claims.hypothesis import UNTESTED, Outcome, agreed, all_of, one_of, some_of
from replication.report.claims.numbers import RECORDED, Numbers, title_of, unfolded
from replication.report.claims.readings import TARGETS, absent
from replication.report.evidence import Evidence
from replication.runs.registry import CLAIM_TEXTS, THEORY


def judge(evidence: Evidence) -> list[dict[str, Any]]:
    """Judge every claim by `evidence` and the values that the paper prints; return the records of `record`."""
    return [record(find(number, evidence)) for number in CLAIM_TEXTS["claims"]]


def find(number: str, evidence: Evidence) -> "Finding":
    """Return what the evidence shows of a claim."""
    claim = CLAIM_TEXTS["claims"][number]
    numbers = Numbers(evidence, needs=absent(evidence, claim.get("data", ())))
    for row in claim.get("tests", ()):
        for test in unfolded(row):
            numbers.test(test)
    COMPUTED.get(number, lambda _: None)(numbers)
    frame = numbers.frame()
    tests = frame[frame["role"] == "test"]
    numbers.needs.extend(_not_tested(claim, frame, evidence))
    if (tests["outcome"] == Outcome.NO_SAY).all() and "untested" in claim:
        numbers.needs.append(claim["untested"])
    if (tests["outcome"] == Outcome.NOT_TESTABLE).any():
        numbers.needs.append("three seeds or folds at least, and an interval with a width within the metric's range")
    if "lacks" in claim:
        numbers.needs.append(claim["lacks"])
    return Finding(number, claim, frame, numbers.needs, numbers.note)


def _not_tested(claim: Mapping[str, Any], numbers: pd.DataFrame, evidence: Evidence) -> Iterator[str]:
    """Yield, of the paper's own datasets that are at hand, those without a number, by the paper's readings of the targets."""
    measured = set()
    for name, target in numbers.loc[numbers["role"].isin(["test", "beside"]), ["name", "target"]].itertuples(
        index=False
    ):
        dataset = evidence.dataset_of(name)
        measured.add((evidence.expected.get(dataset, {}).get("raw_of", dataset), target))
    own = [name for name in claim.get("data", ()) if evidence.has(name) and not evidence.is_substitute(name)]
    for name, target in itertools.product(own, numbers.loc[numbers["role"] == "test", "target"].unique()):
        if (name, target) not in measured:
            targets = f" with {TARGETS[target]['short']}" if target else ""
            yield f"{evidence.title(name)}: runs of this claim's test{targets}"


@dataclass(frozen=True)
class Finding:
    """What the evidence shows of a claim.

    Args:
        number, claim: of the claim, and its entry in claims.yaml.
        numbers: a row a number, with the columns of `replication.report.claims.numbers`.
        needs: what would have to be there for what was not tested.
        note: what stands beside the verdict.
    """

    number: str
    claim: Mapping[str, Any]
    numbers: pd.DataFrame
    needs: Sequence[str] = ()
    note: str = ""

    @property
    def tests(self) -> pd.DataFrame:
        """Return the numbers with a say."""
        return self.numbers[self.numbers["role"] == "test"]

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """Return what the evidence says under each reading of the targets, by one of the models."""
        by_target = self.tests.groupby("target", sort=False)
        return {str(target): self._joined(rows, self.claim.get("parts", ())) for target, rows in by_target}

    @property
    def parts(self) -> dict[str, Outcome]:
        """Return what the evidence says of each part of the claim."""
        return {part: self._joined(self.tests[self.tests["part"] == part]) for part in self.claim.get("parts", ())}

    def data(self, target: str) -> dict[str, Outcome]:
        """Return what each dataset says under a reading of the targets."""
        rows = self.tests[self.tests["target"] == target]
        return {str(name): self._joined(own) for name, own in rows.groupby("dataset", sort=False)}

    def _joined(self, rows: pd.DataFrame, required: Sequence[str] = ()) -> Outcome:
        if len(rows) and (rows["outcome"] == Outcome.NO_SAY).all():
            return Outcome.NO_SAY
        return one_of(self._outcome(own, required) for own in _by_model(rows))

    def _outcome(self, rows: pd.DataFrame, required: Sequence[str]) -> Outcome:
        """Join the outcomes of a model; a part without evidence is not testable."""
        join = some_of if self.claim.get("join") == "some" else all_of
        said = rows[rows["outcome"] != Outcome.NO_SAY]
        there = rows if self.claim.get("join") == "learned" else said
        lacking = set(required) - set(there["part"])
        return join([*said["outcome"].dropna(), *[Outcome.NOT_TESTABLE] * len(lacking)])

    @property
    def untested(self) -> list[str]:
        """Return the readings of the targets without evidence, where another has some."""
        tested = [target for target, outcome in self.outcomes.items() if target and outcome not in UNTESTED]
        return [target for target in TARGETS if tested and target not in tested]

    @property
    def outcome(self) -> Outcome:
        """Return the verdict: that of the readings, if they agree."""
        return agreed(self.outcomes.values())

    def at(self, margin: str) -> Outcome:
        """Return the verdict at `half` or at `twice` each margin."""
        return replace(self, numbers=self.numbers.assign(outcome=self.numbers[margin])).outcome

    @property
    def qualifier(self) -> str:
        """Say on which data the verdict rests."""
        if self.outcome == Outcome.NOT_TESTABLE:
            return ""
        said = self.tests[self.tests["outcome"] != Outcome.NO_SAY]
        measured = said.loc[said["name"] != THEORY, "substitute"]
        data = "where tested" if self.needs or self.untested else ""
        if measured.any():
            data = "on a substitute" if measured.all() else "partly on a substitute"
        left_out = set(self.tests["which"]) - set(said["which"])
        which = " and ".join(filter(None, dict.fromkeys(said["which"])))
        left = f"with {which}" if left_out and which else ""
        lost = [part for part, outcome in self.parts.items() if outcome == Outcome.NO_SAY]
        return ", ".join(filter(None, [data, left or (f"without {' and '.join(lost)}" if lost else "")]))

    @property
    def decisive(self) -> pd.DataFrame:
        """Return a number for each outcome that a reading has: the first that shows it, or else the first.

        Numbers that show the verdict itself stand alone.
        """
        shown: dict[Outcome, int] = {}
        for target, outcome in self.outcomes.items():
            for rows in _by_model(self.tests[self.tests["target"] == target]):
                if self._outcome(rows, self.claim.get("parts", ())) == outcome and outcome not in UNTESTED:
                    sought = Outcome.REPRODUCED if outcome == Outcome.IN_PART else outcome
                    alike = rows[rows["outcome"] == sought]
                    said = rows[rows["outcome"] != Outcome.NO_SAY]
                    shown.setdefault(outcome, (alike if len(alike) else said).index[0])
        rows = self.numbers.loc[list(shown.values())]
        alike = rows[rows["outcome"] == self.outcome]
        return alike if len(alike) else rows


def _by_model(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return for each model with a say its rows and those that name none; all of them where none names a model."""
    models = [model for model in rows.loc[rows["outcome"] != Outcome.NO_SAY, "model"].unique() if model]
    return [rows[rows["model"].isin(["", model])] for model in models or [""]]


def sentence(finding: Finding) -> str:
    """Say what was found: the words of the verdict's outcome, or of each reading's where they differ."""
    states = CLAIM_TEXTS["states"] | finding.claim["states"]
    shown = {target: outcome for target, outcome in finding.outcomes.items() if outcome not in UNTESTED}
    words = {target: states[outcome].format(**_names(finding, target)) for target, outcome in shown.items()}
    if not shown:
        text = states[Outcome.NOT_TESTABLE].format(**_names(finding, ""))
    elif len(set(shown.values())) == 1 and not finding.untested:
        text = next(iter(words.values()))
    else:
        text = "; ".join(f"with {TARGETS[target]['short']}, {said}" for target, said in words.items())
    return f"{text[0].upper()}{text[1:]}."


def _names(finding: Finding, target: str) -> dict[str, str]:
    """Return the names of what passed, failed and stays open under a reading: of the claim's parts, or of its data."""
    outcomes = finding.parts or finding.data(target)
    names = {
        key: " and ".join(name.split(" (")[0] for name, outcome in outcomes.items() if outcome in kinds)
        for key, kinds in (
            ("passed", [Outcome.REPRODUCED]),
            ("failed", [Outcome.NOT_REPRODUCED]),
            ("undecided", [Outcome.INCONCLUSIVE, Outcome.NOT_TESTABLE]),
        )
    }
    return names | {
        "fails": f": both kernels fail in {names['failed']}" if names["failed"] else " in all of it",
        "but": f" (the claim holds for {names['passed']})" if names["passed"] else "",
        "open": f" (undecided: {names['undecided']})" if names["undecided"] else "",
    }


def decisive_numbers(numbers: pd.DataFrame) -> dict[str, list[str]]:
    """Return by quantity, with its data, the numbers that decide, one a reading: `+10.15 points [+9.45, +10.85]`."""
    found: dict[str, list[str]] = {}
    for _, row in numbers.iterrows():
        title = title_of(row["model"])
        model = title if title not in row["quantity"] else ""
        of = ", ".join(filter(None, [row["quantity"], model, row["dataset"].split(" (")[0]]))
        short = TARGETS.get(row["target"], {}).get("short", "")
        shown = [row["text"], *([f"with {short}"] if short else [])]
        found.setdefault(of, []).append(" ".join(shown))
    return found


def record(finding: Finding) -> dict[str, Any]:
    """Return a judged claim as JSON values; the numbers of an assertion have no verdict."""
    states, frame = finding.claim.get("states"), finding.numbers
    decisive = finding.decisive if states else frame[:0]
    wanting = states and (frame.empty or not (frame["role"] == "control").any())
    return {
        "id": finding.number,
        **{name: finding.claim[name] for name in ("title", "claim", "place", "test")},
        "rule": finding.claim.get("rule", "No verdict is given."),
        "limits": finding.claim["limits"],
        "outcome": finding.outcome if states else "",
        "qualifier": finding.qualifier if states else "",
        **{name: finding.at(name) if states else "" for name in ("half", "twice")},
        "note": finding.note,
        "sentence": sentence(finding) if states else "",
        "decisive": decisive_numbers(decisive),
        "readings": {TARGETS[target]["name"]: outcome for target, outcome in finding.outcomes.items() if target},
        "untested": [TARGETS[target]["name"] for target in finding.untested],
        "parts": finding.parts,
        "estimates": frame[RECORDED].assign(decides=frame.index.isin(decisive.index)).to_dict("records"),
        "without_say": list(dict.fromkeys(filter(None, frame["reason"]))),
        "not_controlled": finding.claim.get("controls", []) if wanting else [],
        "files": list(dict.fromkeys(file for files in frame["files"] for file in files)),
        "needs": list(dict.fromkeys(finding.needs)),
    }
