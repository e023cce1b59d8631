"""The claims with their verdicts as a Markdown page and as a table."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from clai.metrics.bootstrap import LEVEL
from clai.report.claims.finding import Finding, Verdict
from clai.report.claims.judgement import Judgement
from clai.report.statistics import Interval

WIDTH = 120
NUMBERS = (
    "Differences carry a sign. A mean over n seeds, folds or repetitions stands before its 95 % t-interval in "
    "brackets. Intervals over folds are widened for the training data that folds share (Nadeau & Bengio 2003). "
    "Accuracies, ROC-AUC of multiclass data and agreements are per cent, and their differences percentage points. "
    "Calibration errors and the metrics of sepsis detection are fractions of 1."
)

EVIDENCE = {
    True: "**Evidence that bears the claim out:**",
    False: "**Evidence that does not bear the claim out:**",
    None: "**Evidence without a say in the verdict:**",
}
"""Headings of the parts of a finding, by `Part.holds`."""


def claims_frame(judgements: Iterable[Judgement]) -> pd.DataFrame:
    """Return a row for each claim: id, claim, place, test, rule, evidence, data, files, verdict, needs."""
    rows = [
        {
            "id": claim.number, "claim": claim.claim, "place": claim.place, "test": claim.test, "rule": claim.rule,
            "evidence": " ".join(part.text() for part in finding.parts), "data": "; ".join(finding.data),
            "files": "; ".join(finding.files), "verdict": str(finding.verdict), "needs": "; ".join(_needs(finding)),
        }
        for claim, finding in judgements
    ]  # fmt: skip
    return pd.DataFrame(rows)


def claims_page(judgements: Sequence[Judgement], caption: str) -> str:
    """Write the page: how many claims are reproduced, a table of them, then a section for each claim."""
    blocks = ["# The paper's claims", _wrapped(_summary(judgements)), _table(judgements), _wrapped(NUMBERS)]
    blocks.append(_wrapped(_multiplicity(judgements)))
    blocks += [_wrapped(paragraph) for paragraph in caption.split("\n\n")]
    for judgement in judgements:
        blocks += _section(judgement)
    return "\n\n".join(blocks) + "\n"


def _summary(judgements: Sequence[Judgement]) -> str:
    counts = Counter(finding.verdict for _, finding in judgements)
    words = [f"{counts[verdict]} {'is' if counts[verdict] == 1 else 'are'} {verdict}" for verdict in Verdict]
    return f"Of {len(judgements)} claims, {', '.join(words[:-1])} and {words[-1]}."


def _multiplicity(judgements: Iterable[Judgement]) -> str:
    """Say how many intervals the page has, and how many of so many exclude 0 by chance."""
    parts = [part for _, finding in judgements for part in finding.parts]
    shown, deciding = (
        sum(isinstance(s.value, Interval) and s.value.known for part in chosen for s in part.statistics)
        for chosen in (parts, [part for part in parts if part.holds is not None])
    )
    return (
        f"The page has {shown} intervals, {deciding} of them with a say in a verdict. Where no true difference exists, one "
        f"in {1 / (1 - LEVEL):.0f} excludes 0 by chance. Verdicts are not corrected for their number; table S16 adjusts its "
        "p-values."
    )


def _table(judgements: Iterable[Judgement]) -> str:
    rows = ["| # | Claim | Verdict | Data |", "| --- | --- | --- | --- |"]
    rows += [
        f"| {claim.number} | {claim.claim} | {finding.verdict} | {'; '.join(finding.data) or '--'} |"
        for claim, finding in judgements
    ]
    return "\n".join(rows)


def _section(judgement: Judgement) -> list[str]:
    """Write the section of a claim as blocks."""
    claim, finding = judgement
    blocks = [
        f"## {claim.number}. {claim.claim}",
        _wrapped(f"Place in the paper (lines of its source): {claim.place}."),
        _wrapped(f"**Test.** {claim.test}"),
        _wrapped(f"**Rule.** {claim.rule}"),
    ]
    for holds, heading in EVIDENCE.items():
        blocks += _list(heading, [part.text() for part in finding.parts if part.holds == holds])
    blocks.append(_wrapped(f"**Verdict.** {_reason(finding)}"))
    blocks += _list("**What it would take:**", [f"{need[0].upper()}{need[1:]}." for need in _needs(finding)])
    blocks += _list("**Files:**", [f"`{file}`" for file in finding.files])
    return blocks


def _reason(finding: Finding) -> str:
    """Say the verdict and why."""
    total, failed = len(finding.outcomes), finding.outcomes.count(False)
    reasons = {
        Verdict.REPRODUCED: "All evidence bears the claim out.",
        Verdict.REPRODUCED_WHERE_TESTED: "All evidence at hand bears the claim out; some data are missing.",
        Verdict.NOT_REPRODUCED: f"Parts of the evidence that do not bear the claim out: {failed} of {total}.",
        Verdict.NOT_TESTABLE: "The evidence at hand is too little.",
    }
    if finding.alternatives:
        reasons |= {
            Verdict.REPRODUCED: "On every dataset, at least one model bears the claim out.",
            Verdict.REPRODUCED_WHERE_TESTED: "On every dataset at hand, at least one model bears the claim out.",
            Verdict.NOT_REPRODUCED: f"Datasets on which no model bears the claim out: {failed} of {total}.",
        }
    return f"{finding.verdict.capitalize()}. {reasons[finding.verdict]}"


def _needs(finding: Finding) -> list[str]:
    return list(dict.fromkeys(finding.missing))


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    """Write a heading and a bullet for each line; nothing without lines."""
    return [heading, "\n".join(_wrapped(line, "- ") for line in lines)] if lines else []


def _wrapped(text: str, bullet: str = "") -> str:
    """Break lines, but neither within a number nor before a sign that Markdown would take for a bullet."""
    bound = re.sub(r"\[[^\]]*\]| [-+] |\b[np] = ", lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        bound,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")
