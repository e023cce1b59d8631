"""The rules of verdicts: intervals against margins, and how parts, models, data and readings join."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from replication.metrics.intervals import Interval, interval
from replication.report.claims.hypothesis import Hypothesis, Outcome, agreed, all_of, n_that_decides, one_of, some_of
from replication.report.claims.judge import Finding, judge
from replication.report.claims.numbers import DIFFERENCE, MEASURES, POINTS, RATIO, SCALE, WANTED, Numbers, unfolded
from replication.report.claims.page import claims_frame, in_short
from replication.report.claims.readings import READINGS
from replication.report.evidence import Evidence
from replication.runs.registry import CLAIM_TEXTS
from support.published import EXPECTED, copy_evidence

REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
IN_PART, REACHED, UNTESTED = Outcome.IN_PART, Outcome.REACHED, Outcome.NOT_TESTABLE
MORE = Hypothesis("better")
OF = {REPRODUCED: (0.02, 0.03), NOT: (-0.03, -0.02), OPEN: (-0.01, 0.03)}
"""An interval for each outcome of a claim of more."""


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    root = copy_evidence(tmp_path, "pathmnist", "cifar10", "sleepedf-bands")
    return Numbers(Evidence.found(root, EXPECTED))


def add(numbers: Numbers, name: str, outcome: Outcome, target: str = "zero", **columns: str) -> None:
    low, high = OF[outcome]
    value = Interval((low + high) / 2, low, high, 3)
    numbers.add(name, "accuracy", value, DIFFERENCE, MORE, target=target, **columns)


def found(numbers: Numbers, *parts: str, join: str = "all") -> Finding:
    return Finding("1", {"parts": parts, "join": join}, numbers.frame())


@pytest.mark.parametrize(
    ("kind", "low", "high", "outcome"),
    [
        ("better", 0.005, 0.02, REPRODUCED),
        ("better", -0.02, 0.009, NOT),
        ("better", 0.001, 0.009, NOT),  # certain, and too small to matter
        ("better", -0.001, 0.02, OPEN),
        ("better", 0.001, 0.015, OPEN),  # the mean lies below the margin
        ("nearly", -0.1, 0.09, REPRODUCED),
        ("nearly", -0.12, 0.2, OPEN),  # the interval reaches too far below
        ("nearly", -0.05, -0.005, OPEN),  # the mean lies below the bar
        ("nearly", -0.05, -0.011, NOT),
        ("not worse", -0.009, 0.02, REPRODUCED),
        ("not worse", -0.03, -0.011, NOT),
        ("not worse", -0.011, 0.02, OPEN),
        ("equal", -0.009, 0.009, REPRODUCED),
        ("equal", 0.011, 0.02, NOT),
        ("equal", -0.02, -0.011, NOT),
        ("equal", -0.009, 0.02, OPEN),
        ("value", 0.011, 0.02, REACHED),
        ("value", -0.02, -0.011, NOT),
        ("value", -0.009, 0.009, REPRODUCED),
        ("value", -0.005, 0.03, OPEN),
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
    assert all_of([REPRODUCED, REACHED, OPEN]) == REACHED, "none lies below, one above"
    assert all_of([REACHED, NOT]) == NOT
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


def test_a_claim_must_hold_on_every_dataset_for_one_model(numbers: Numbers) -> None:
    for model, on_images in (("CLaI-M", NOT), ("CLaI-C", REPRODUCED)):
        add(numbers, "pathmnist", REPRODUCED, model=model)
        add(numbers, "cifar10", on_images, model=model)
    assert found(numbers).outcome == REPRODUCED
    add(numbers, "cifar10", NOT, model="CLaI-C")
    assert found(numbers).outcome == NOT, "neither model passes everywhere"


def test_a_substitute_informs_and_never_vetoes_the_papers_own_data(numbers: Numbers) -> None:
    add(numbers, "sleepedf-bands", NOT)
    finding = found(numbers)
    assert (finding.outcome, finding.qualifier) == (NOT, "on a substitute")
    add(numbers, "pathmnist", REPRODUCED)
    finding = found(numbers)
    assert (finding.outcome, finding.qualifier) == (REPRODUCED, "where tested"), "product targets are untested"
    assert list(finding.tests["name"]) == ["pathmnist"]
    assert list(finding.numbers["role"]) == ["informs", "test"]


def test_a_part_without_evidence_leaves_the_claim_untested_unless_another_fails(numbers: Numbers) -> None:
    add(numbers, "pathmnist", REPRODUCED, part="ranking")
    finding = found(numbers, "ranking", "calibration")
    assert (finding.outcome, finding.parts["calibration"]) == (UNTESTED, UNTESTED)
    add(numbers, "cifar10", NOT, part="ranking")
    assert found(numbers, "ranking", "calibration").outcome == NOT


@pytest.mark.parametrize("unit", [RATIO, SCALE])
def test_intervals_of_ratios_and_scales_are_on_the_log_scale_where_all_are_positive(
    numbers: Numbers, unit: Any
) -> None:
    for values in ([1.0, 2.0, 4.0], [-1.0, 2.0, 3.5]):
        numbers.add("pathmnist", "loss", pd.Series(values).rename_axis("seed"), unit)
    geometric, arithmetic = (row["value"] for row in numbers.rows)
    assert geometric.mean == pytest.approx(2)
    assert geometric.low * geometric.high == pytest.approx(4)
    assert (arithmetic.mean, arithmetic.n) == (1.5, 3)


def test_n_is_told_of_what_is_left_open(numbers: Numbers) -> None:
    wide, narrow = (pd.Series([-half, 0.0, half]).rename_axis("seed") for half in (0.05, 0.01))
    around = Interval(0.0, -0.05, 0.05, 3, 10000)
    for values, by_seed in ((wide, None), (narrow, None), (around, wide), (around, narrow)):
        numbers.add("pathmnist", "accuracy", values, POINTS, MORE, replicates=by_seed)
    many, few, still_many, fewer = [row["n_needed"] for row in numbers.rows]
    assert many == still_many == "more than is sensible"
    assert fewer == f"{few} by seeds alone"


def test_the_n_that_decides_has_the_power_that_it_promises() -> None:
    """Of published values: the n of a claim, and that folds need more than seeds."""
    by_seed = pd.Series([0.0125, -0.0036, 0.0009]).rename_axis("seed")
    needed = int(n_that_decides(by_seed, MORE))
    rng, decided = np.random.default_rng(1), 0
    for _ in range(400):
        again = pd.Series(rng.normal(by_seed.mean(), by_seed.std(), needed)).rename_axis("seed")
        decided += MORE.outcome(interval(again)) != OPEN
    assert decided / 400 > 0.77
    assert int(n_that_decides(by_seed.rename_axis("fold"), MORE)) > needed


def test_a_verdict_at_another_margin_joins_the_outcomes_at_that_margin(numbers: Numbers) -> None:
    values = pd.Series([0.010, 0.011, 0.012]).rename_axis("seed")
    numbers.add("pathmnist", "accuracy", values, POINTS, MORE, target="zero")
    finding = found(numbers)
    assert (finding.outcome, finding.at("half"), finding.at("twice")) == (REPRODUCED, REPRODUCED, NOT)


def test_what_has_no_say_is_left_out_of_joins_and_told(numbers: Numbers) -> None:
    add(numbers, "pathmnist", NOT, part="a", which="the cosine kernel", reason="it did not learn")
    assert found(numbers, "a", "b").outcome == UNTESTED
    add(numbers, "pathmnist", REPRODUCED, part="b", which="the Gaussian kernel")
    assert found(numbers, "a", "b").outcome == UNTESTED, "it needs both"
    finding = found(numbers, "a", "b", join="learned")
    assert (finding.outcome, finding.parts["a"]) == (REPRODUCED, Outcome.NO_SAY)
    assert finding.qualifier == "where tested, with the Gaussian kernel"


def test_every_row_of_a_claim_names_what_there_is() -> None:
    """A row of claims.yaml whose measure, readings or part are misspelt would leave its number out in silence."""
    texts = CLAIM_TEXTS["claims"]
    tests = [(claim, test) for claim in texts.values() for row in claim.get("tests", ()) for test in unfolded(row)]
    assert {test.under for _, test in tests} | {"product", "120 epochs", "capped hours", "whole cohort"} == READINGS
    for claim, test in tests:
        assert test.measure in MEASURES
        assert not test.want or test.want in WANTED
        assert not test.part or test.part in claim["parts"]
        assert test.hypothesis is None or test.role != "beside"
    for measure in MEASURES.values():
        assert measure.keys() <= {"title", "kind", "file", "quantity", "column", "value", "algorithm", "option"}


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    claims = judge(Evidence.found(tmp_path / "published", EXPECTED))
    assert {claim["outcome"] for claim in claims} == {UNTESTED, ""}
    assert all(claim["needs"] for claim in claims if claim["id"] != "B")
    assert len(claims_frame(claims)) == 20


def test_verdicts_are_counted_by_what_they_say() -> None:
    outcomes = ["reproduced", "not testable here", "not reproduced", "not testable here", None]
    said = in_short([{"outcome": outcome} for outcome in outcomes])
    assert said == "Of 4 verdicts 1 holds, 1 fails, 2 are not testable here."
