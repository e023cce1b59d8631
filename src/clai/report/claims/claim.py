"""A claim of the paper and the function that judges it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from clai.report.claims.finding import Finding
from clai.report.evidence import Evidence

Judge = Callable[[Evidence, pd.DataFrame], Finding]
"""From the evidence and the values that the paper prints to what the test finds."""


@dataclass(frozen=True)
class Claim:
    """A claim in our words.

    Args:
        number: under which pages list it.
        claim: what the paper says.
        place: in the paper's source: sections, tables, figures and line numbers.
        test: what is compared with what.
        rule: what the test must find for the verdict "reproduced".
        judge: the test.
    """

    number: int
    claim: str
    place: str
    test: str
    rule: str
    judge: Judge


def claim(number: int, *, claim: str, place: str, test: str, rule: str) -> Callable[[Judge], Claim]:
    """Turn the function below into the claim that it judges."""
    return lambda judge: Claim(number, claim, place, test, rule, judge)
