"""The paper's claims, each judged once by the evidence: what pages, figures and verification read.

claims.yaml has the words, the modules beside this one the tests. A sentence follows from the outcome, so that it cannot
contradict it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.claims import complexity, multiclass, sepsis, theory, training
from replication.report.claims.finding import Estimate, Finding
from replication.report.claims.hypothesis import Outcome
from replication.report.evidence import Evidence
from replication.runs.registry import CLAIM_TEXTS

TARGETS = CLAIM_TEXTS["targets"]
JUDGES: dict[str, Callable[[Finding], None]] = {
    "1": multiclass.more_accurate,
    "2": multiclass.better_calibrated,
    "3a": training.lower_loss,
    "3b": training.converges_faster,
    "4": multiclass.table1_values,
    "5": sepsis.lowest_calibration_error,
    "6": sepsis.slightly_lower,
    "7": sepsis.beats_mixture,
    "8": sepsis.competitive_calibration,
    "9": theory.optimises_alignment,
    "10": theory.is_parzen_classifier,
    "11": sepsis.signals_converge,
    "12": multiclass.groups_similar_classes,
    "13": complexity.time_grows_with_classes,
    "14": complexity.tensor_replaces_loop,
    "15": theory.zero_targets_help,
    "16": multiclass.sleepedf_is_hardest,
    "A": theory.learned_metric,
    "B": complexity.loop_over_classes,
    "C": complexity.long_tails,
}
"""By a claim's number what adds the evidence on it to a finding."""


def judge(evidence: Evidence, printed_values: pd.DataFrame) -> list[dict[str, Any]]:
    """Judge every claim by `evidence` and the values that the paper prints; return the records of `record`."""
    return [
        record(number, text, find(number, evidence, printed_values)) for number, text in CLAIM_TEXTS["claims"].items()
    ]


def find(number: str, evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    """Return what the evidence shows of a claim."""
    finding = Finding(evidence, printed_values)
    JUDGES[number](finding)
    return finding


def record(number: str, text: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    """Return a judged claim as JSON values; the numbers of an assertion have no verdict.

    Numbers stand in the unit shown, with six significant digits. An interval that a rule judges stands in margins as well, which
    speak for the claim where they are positive, beside the range that bears it out; its open end is None. `decides` marks the
    decisive numbers.
    """
    states = text.get("states")
    decisive = finding.decisive if states else []
    decisive = [estimate for estimate in decisive if estimate.outcome == finding.outcome] or decisive
    return {
        "id": number,
        **{name: text[name] for name in ("title", "claim", "place", "test", "rule", "limits")},
        "outcome": finding.outcome if states else "",
        "qualifier": finding.qualifier if states else "",
        "note": finding.note,
        "sentence": sentence(states, finding) if states else "",
        "decisive": decisive_numbers(decisive),
        "readings": {TARGETS[target]["name"]: outcome for target, outcome in finding.outcomes.items() if target},
        "untested": [TARGETS[target]["name"] for target in finding.untested],
        "parts": finding.parts,
        "estimates": [_estimate(estimate, finding, decisive) for estimate in finding.estimates],
        "not_controlled": finding.not_controlled,
        "files": finding.files,
        "needs": list(dict.fromkeys(finding.missing)),
    }


def sentence(states: Mapping[str, str], finding: Finding) -> str:
    """Say what was found: the words of the verdict's outcome, or of each reading's where they differ."""
    shown = {target: outcome for target, outcome in finding.outcomes.items() if outcome != Outcome.NOT_TESTABLE}
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


def decisive_numbers(estimates: Sequence[Estimate]) -> dict[str, list[str]]:
    """Return by quantity, with its data, the numbers that decide, one a reading: `+10.15 points [+9.45, +10.85]`."""
    numbers: dict[str, list[str]] = {}
    for estimate in estimates:
        of = ", ".join(filter(None, [estimate.quantity, estimate.model, estimate.short_data.split(" (")[0]]))
        short = TARGETS.get(estimate.target, {}).get("short", "")
        shown = [estimate.unit.text(estimate.value), *([f"with {short}"] if short else [])]
        numbers.setdefault(of, []).append(" ".join(shown))
    return numbers


def _estimate(estimate: Estimate, finding: Finding, decisive: Sequence[Estimate]) -> dict[str, Any]:
    number, factor, asked = estimate.value, estimate.unit.factor, estimate.hypothesis
    bounds = (number.low, number.mean, number.high) if number.known else ()
    margins = sorted(asked.margins(bound) for bound in bounds) if asked else []
    informs = estimate.role == "test" and not any(estimate is test for test in finding.tests)
    return {
        "role": "informs" if informs else estimate.role,
        **{name: getattr(estimate, name) for name in ("part", "target", "option", "key", "data", "model", "quantity")},
        "unit": estimate.unit.name,
        "text": estimate.unit.text(number),
        **{name: _digits(factor * getattr(number, name)) for name in ("mean", "low", "high")},
        "n": number.n,
        "samples": number.samples,
        "outcome": estimate.outcome,
        "decides": any(estimate is one for one in decisive),
        "n_needed": estimate.n_needed,
        "margins": [_digits(margin) for margin in margins],
        "holds": asked and [_digits(edge) for edge in asked.holds],
    }


def _digits(number: float) -> float | None:
    return float(f"{number:.6g}") if np.isfinite(number) else None
