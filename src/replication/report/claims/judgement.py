"""The paper's claims and their judgement by the evidence.

Rules read evidence alone. A claim about several datasets is judged on those at hand, and all of these must bear it out. A claim
about sepsis is judged on the open Challenge 2019 cohorts where MIMIC-IV is not at hand.
"""

from typing import NamedTuple

import pandas as pd

from replication.report.claims import benchmark, multiclass, sepsis, theory
from replication.report.claims.claim import Claim
from replication.report.claims.finding import Finding
from replication.report.evidence import Evidence


class Judgement(NamedTuple):
    """A claim and what its test finds."""

    claim: Claim
    finding: Finding


CLAIMS: list[Claim] = sorted(
    (
        entry
        for module in (multiclass, sepsis, theory, benchmark)
        for entry in vars(module).values()
        if isinstance(entry, Claim)
    ),
    key=lambda claim: (int(claim.number.rstrip("ab")), claim.number),
)
"""All claims by number."""


def judge(evidence: Evidence, printed_values: pd.DataFrame) -> list[Judgement]:
    """Judge every claim by `evidence` and the values that the paper prints."""
    return [Judgement(claim, claim.judge(evidence, printed_values)) for claim in CLAIMS]
