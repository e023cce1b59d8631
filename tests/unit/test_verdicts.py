"""The rules of verdicts: intervals against margins, and how parts, models, data and readings join."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.metrics.intervals import Interval
from replication.report.claims.finding import DIFFERENCE, POINTS, Finding, Place
from replication.report.claims.hypothesis import (
    MORE,
    Hypothesis,
    Outcome,
    agreed,
    all_of,
    one_of,
    some_of,
)
from replication.report.claims.judge import judge
from replication.report.claims.page import claims_frame
from replication.report.evidence import Evidence
from support.published import EXPECTED, copy_evidence
from support.repository import PRINTED

REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
IN_PART, EXCEEDED, UNTESTED = Outcome.IN_PART, Outcome.EXCEEDED, Outcome.NOT_TESTABLE
ZERO, PRODUCT = Place("zero"), Place("product")
OF = {REPRODUCED: (0.02, 0.03), NOT: (-0.03, -0.02), OPEN: (-0.01, 0.03)}
"""An interval for each outcome of a claim of more."""


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    root = copy_evidence(tmp_path, "pathmnist", "cifar10", "sleepedf-bands")
    return Finding(Evidence.found(root, EXPECTED), PRINTED, targets=("zero", "product"))


def add(
    finding: Finding, key: str, outcome: Outcome, place: Place = ZERO, part: str = "", quantity: str = "accuracy"
) -> None:
    low, high = OF[outcome]
    value = Interval((low + high) / 2, low, high, 3)
    finding.add(key, quantity, value, DIFFERENCE, MORE, place, part=part)


@pytest.mark.parametrize(
    ("kind", "low", "high", "outcome"),
    [
        ("better", 0.005, 0.02, REPRODUCED),
        ("better", -0.02, 0.009, NOT),
        ("better", 0.001, 0.009, NOT),  # certain, and too small to matter
        ("better", -0.001, 0.02, OPEN),
        ("not worse", -0.009, 0.02, REPRODUCED),
        ("not worse", -0.03, -0.011, NOT),
        ("not worse", -0.011, 0.02, OPEN),
        ("equal", -0.009, 0.009, REPRODUCED),
        ("equal", 0.011, 0.02, NOT),
        ("equal", -0.02, -0.011, NOT),
        ("equal", -0.009, 0.02, OPEN),
        ("value", 0.011, 0.02, EXCEEDED),
        ("value", -0.02, -0.011, NOT),
        ("value", -0.009, 0.009, REPRODUCED),
    ],
)
def test_an_interval_meets_zero_and_the_margin(kind: str, low: float, high: float, outcome: Outcome) -> None:
    mean = (low + high) / 2
    assert Hypothesis(kind).outcome(Interval(mean, low, high, 3)) == outcome  # type: ignore[arg-type]
    mirrored = Hypothesis(kind, sign=-1, null=1.0, bounds=(0, 2))  # type: ignore[arg-type]
    assert mirrored.outcome(Interval(1 - mean, 1 - high, 1 - low, 3)) == outcome
    from_margin = [mirrored.margins(1 - bound) for bound in (low, high)]
    assert from_margin == pytest.approx([100 * low, 100 * high])


@pytest.mark.parametrize(
    ("low", "high", "n"),
    [(0.02, 0.03, 2), (0.02, 0.02, 3), (0.02, 1.07, 3), (-1.2, -0.5, 3), (np.nan, np.nan, 1)],
    ids=["two replicates", "no width", "above the range", "below the range", "one replicate"],
)
def test_no_verdict_comes_from_an_interval_that_is_none(low: float, high: float, n: int) -> None:
    assert MORE.outcome(Interval(0.02, low, high, n)) == UNTESTED


def test_parts_alternatives_and_readings_join_by_the_rules() -> None:
    assert all_of([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert all_of([REPRODUCED, OPEN]) == OPEN
    assert all_of([OPEN, NOT, REPRODUCED]) == NOT
    assert all_of([REPRODUCED, UNTESTED]) == UNTESTED
    assert all_of([REPRODUCED, EXCEEDED, OPEN]) == EXCEEDED, "none lies below, one above"
    assert all_of([EXCEEDED, NOT]) == NOT
    assert some_of([REPRODUCED, NOT]) == IN_PART
    assert some_of([NOT, NOT]) == NOT
    assert some_of([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert one_of([NOT, OPEN]) == OPEN
    assert one_of([NOT, OPEN, REPRODUCED]) == REPRODUCED
    assert agreed([NOT, NOT]) == NOT
    assert agreed([REPRODUCED, NOT, OPEN]) == Outcome.DEPENDS
    assert agreed([REPRODUCED, OPEN]) == OPEN
    assert agreed([REPRODUCED, UNTESTED]) == REPRODUCED
    assert agreed([]) == UNTESTED


def test_a_claim_must_hold_on_every_dataset_for_one_model(finding: Finding) -> None:
    for model, on_images in (("CLaI-M", NOT), ("CLaI-C", REPRODUCED)):
        add(finding, "pathmnist", REPRODUCED, Place("zero", "", model))
        add(finding, "cifar10", on_images, Place("zero", "", model))
    assert finding.outcome == REPRODUCED
    add(finding, "cifar10", NOT, Place("zero", "", "CLaI-C"))
    assert finding.outcome == NOT, "neither model passes everywhere"


def test_a_substitute_informs_and_never_vetoes_the_papers_own_data(finding: Finding) -> None:
    add(finding, "sleepedf-bands", NOT)
    assert (finding.outcome, finding.qualifier) == (NOT, "on a substitute")
    add(finding, "pathmnist", REPRODUCED)
    assert (finding.outcome, finding.qualifier) == (REPRODUCED, "where tested"), "product targets are untested"
    assert [estimate.key for estimate in finding.tests] == ["pathmnist"]


def test_an_option_of_ours_has_no_say(finding: Finding) -> None:
    add(finding, "pathmnist", NOT, Place("zero", "calibrated"))
    assert finding.outcome == UNTESTED
    add(finding, "pathmnist", REPRODUCED)
    assert finding.outcome == REPRODUCED


def test_readings_that_contradict_each_other_make_the_verdict_depend(finding: Finding) -> None:
    add(finding, "pathmnist", REPRODUCED)
    add(finding, "pathmnist", OPEN, PRODUCT)
    assert finding.outcome == OPEN
    add(finding, "pathmnist", NOT, PRODUCT)
    assert finding.outcome == Outcome.DEPENDS
    assert [estimate.outcome for estimate in finding.decisive] == [REPRODUCED, NOT]


def test_a_part_without_evidence_leaves_the_claim_untested_unless_another_fails(finding: Finding) -> None:
    finding.required = ("ranking", "calibration")
    add(finding, "pathmnist", REPRODUCED, part="ranking")
    assert (finding.outcome, finding.parts["calibration"]) == (UNTESTED, UNTESTED)
    add(finding, "cifar10", NOT, part="ranking")
    assert finding.outcome == NOT


def test_n_is_told_of_what_seeds_alone_leave_open(finding: Finding) -> None:
    wide = pd.Series([-0.05, 0.0, 0.05]).rename_axis("seed")
    finding.add("pathmnist", "accuracy", wide, POINTS, MORE)
    around = Interval(0.0, -0.05, 0.05, 3, 10000)
    finding.add("pathmnist", "accuracy", around, POINTS, MORE)
    needed = [estimate.n_needed for estimate in finding.estimates]
    assert needed[0] is not None
    assert needed[0] > 100
    assert needed[1] is None, "more seeds leave the part of the test samples as it is"


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    claims = judge(Evidence.found(tmp_path / "published", EXPECTED), PRINTED)
    assert {claim["outcome"] for claim in claims} == {UNTESTED, ""}
    assert all(claim["needs"] for claim in claims if claim["id"] != "B")
    assert len(claims_frame(claims)) == 20
