"""The paper's claims, each judged once by the evidence: what pages, figures and verification read.

Rules read evidence alone. A claim about several datasets is judged on those at hand, and all of these must bear it out. A claim
about sepsis is judged on the open Challenge 2019 cohorts where MIMIC-IV is not at hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.claims import cost, multiclass, sepsis, theory, training
from replication.report.claims.finding import Claim, Finding, Part, deciding_part, joint_outcome
from replication.report.claims.hypothesis import Outcome
from replication.report.evidence import Evidence
from replication.report.statistics import Interval

CLAIMS: list[Claim] = sorted(
    (
        entry
        for module in (multiclass, training, sepsis, theory, cost)
        for entry in vars(module).values()
        if isinstance(entry, Claim)
    ),
    key=lambda claim: (int(claim.number.rstrip("ab")), claim.number),
)
"""All claims by number."""


def judge(evidence: Evidence, printed_values: pd.DataFrame) -> list[dict[str, Any]]:
    """Judge every claim by `evidence` and the values that the paper prints; return the records of `record`."""
    names = {evidence.title(key): (evidence.description(key)["title"], key) for key in evidence.at_hand()}
    return [record(claim, claim.judge(evidence, printed_values), names) for claim in CLAIMS]


def record(claim: Claim, finding: Finding, names: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return a judged claim as JSON values.

    An answer is what the numbers of one reading, dataset and model say together; those of the headline show the verdict. Of the
    number that decides it, an answer has the values that support the claim, as a pair of limits, and the replicates. Numbers
    stand in the unit shown, with six significant digits.

    Args:
        names: by title of an evidence folder that of its data, and its key.
    """
    verdict, decisive = finding.verdict, finding.decisive
    return {
        "id": claim.number, "title": claim.short, "claim": claim.claim, "place": claim.place, "test": claim.test,
        "rule": claim.rule, "limits": claim.limits, "outcome": verdict.outcome, "qualifier": verdict.qualifier,
        "readings": [
            {"choices": reading.choices, "of_paper": reading.of_paper, "outcome": outcome}
            for reading, outcome in finding.outcomes.items()
        ],
        "deciding": finding.deciding,
        "untested": finding.untested,
        "answers": [_answer(group, decisive, names) for group in finding.groups],
        "beside": [_data(part, names) | _number(part) for part in finding.parts if part.outcome is None],
        "controls": [_data(part, names) | _number(part) for part in finding.controls],
        "not_controlled": finding.not_controlled,
        "data": finding.data,
        "files": finding.files,
        "needs": list(dict.fromkeys(finding.missing)),
    }  # fmt: skip


def _answer(group: Sequence[Part], decisive: Sequence[Part], names: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    decides, outcome = deciding_part(group), joint_outcome(group)
    factor = decides.unit.factor
    needed = [part.n_needed for part in group if part.n_needed] if outcome == Outcome.INCONCLUSIVE else []
    return {
        **_data(decides, names),
        "key": decides.key,
        "reading": decides.reading.choices,
        "outcome": outcome,
        "n_needed": max(needed, default=None),
        "headline": any(part is decides for part in decisive),
        "decides": next(place for place, part in enumerate(group) if part is decides),
        "supports": decides.hypothesis and [_digits(factor * edge) for edge in decides.hypothesis.region()],
        "replicates": {str(unit): _digits(factor * value) for unit, value in decides.replicates.items()},
        "numbers": [_number(part) for part in group],
    }


def _data(part: Part, names: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    data, key = names.get(part.data, (part.data, ""))
    return {"data": data, "study": key if data != part.data else "", "model": part.model}


def _number(part: Part) -> dict[str, Any]:
    value = part.value if isinstance(part.value, Interval) else Interval(part.value, np.nan, np.nan, 0, "")
    factor = part.unit.factor
    return {
        "quantity": part.quantity,
        "unit": part.unit.name,
        "text": part.unit.text(part.value),
        **{name: _digits(factor * getattr(value, name)) for name in ("mean", "low", "high")},
        "n": value.n,
        "samples": value.samples,
        "outcome": part.outcome,
    }


def _digits(number: float) -> float | None:
    return float(f"{number:.6g}") if np.isfinite(number) else None
