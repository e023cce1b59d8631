"""A claim of the paper and the function that judges it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from replication.report.claims.finding import Finding
from replication.report.evidence import Evidence

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


def claim(
    number: str, short: str, *, claim: str, place: str, test: str, rule: str, limits: str = ""
) -> Callable[[Judge], Claim]:
    """Turn the function below into the claim that it judges."""
    return lambda judge: Claim(number, short, claim, place, test, rule, judge, limits)
