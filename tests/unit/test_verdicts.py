"""The rules of verdicts: intervals against margins, and how parts, models and readings join."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from replication.report.claims.finding import DIFFERENCE, PER_CENT, POINTS, Finding, Part, Unit
from replication.report.claims.hypothesis import (
    Hypothesis,
    Outcome,
    Qualifier,
    Reading,
    Verdict,
    agreed,
    all_of,
    deciding,
    n_needed,
    one_of,
    without_evidence,
)
from replication.report.claims.judge import CLAIMS, record
from replication.report.claims.page import claims_frame
from replication.report.statistics import Interval, interval

REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
ZERO, PRODUCT = Reading(target="zero", network="of the studies"), Reading(target="product", network="of the studies")


def part(data: str, outcome: Outcome | None, model: str = "", reading: Reading | None = None) -> Part:
    return Part(data, "accuracy", 0.8, PER_CENT, outcome, reading or Reading(), model, key=data)


def test_a_mean_is_written_with_sign_and_interval() -> None:
    seeds = pd.Series([0.001, 0.004, 0.0073]).rename_axis("seed")
    gap = interval(seeds)
    assert POINTS.text(gap) == "+0.41 [-0.37, +1.19]"
    assert DIFFERENCE.text(gap) == "+0.004 [-0.004, +0.012]"
    assert POINTS.text(interval(seeds.rename_axis("fold"))) == "+0.41 [-0.83, +1.65]"
    assert PER_CENT.text(interval(seeds[:1])) == "0.10"
    assert Unit(2, style="e").text(2.98e-7) == "2.98e-07"


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
        ("value", 0.011, 0.02, Outcome.EXCEEDED),
        ("value", -0.02, -0.011, NOT),
        ("value", -0.009, 0.009, REPRODUCED),
    ],
)
def test_an_interval_meets_zero_and_the_margin(kind: str, low: float, high: float, outcome: Outcome) -> None:
    mean = (low + high) / 2
    assert Hypothesis(kind, 0.01).outcome(Interval(mean, low, high, 3, "seed")) == outcome  # type: ignore[arg-type]
    mirrored = Hypothesis(kind, 0.01, sign=-1, null=1.0)  # type: ignore[arg-type]
    assert mirrored.outcome(Interval(1 - mean, 1 - high, 1 - low, 3, "seed")) == outcome
    assert mirrored.outcome(Interval(1 - mean, np.nan, np.nan, 1, "seed")) == Outcome.NOT_TESTABLE


def test_the_region_of_a_hypothesis_lies_beyond_its_margin() -> None:
    assert Hypothesis("better", 0.01).region() == (0.01, np.inf)
    assert Hypothesis("better", 0.01, sign=-1).region() == (-np.inf, -0.01)
    assert Hypothesis("not worse", 0.01).region() == (-0.01, np.inf)
    assert Hypothesis("equal", 0.1, null=1).region() == pytest.approx((0.9, 1.1))


def test_enough_replicates_make_the_interval_no_wider_than_the_margin() -> None:
    values = pd.Series([0.0, 0.01, 0.02]).rename_axis("seed")
    n = n_needed(values, 0.01)
    assert n is not None

    def width(count: int) -> float:
        spread_alike = np.random.default_rng(0).normal(size=count)
        spread_alike = (spread_alike - spread_alike.mean()) / spread_alike.std(ddof=1) * values.std()
        found = interval(pd.Series(spread_alike).rename_axis("seed"))
        return found.high - found.low

    assert width(n) <= 0.01 < width(n - 1)
    assert n_needed(pd.Series([0.1]), 0.01) is None
    assert n_needed(pd.Series([0.0, 100.0]), 0.01) is None


def test_parts_alternatives_and_readings_join_by_the_rules() -> None:
    assert all_of([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert all_of([REPRODUCED, OPEN]) == OPEN
    assert all_of([OPEN, NOT, REPRODUCED]) == NOT
    assert all_of([REPRODUCED, Outcome.EXCEEDED]) == Outcome.EXCEEDED
    assert one_of([NOT, OPEN]) == OPEN
    assert one_of([NOT, OPEN, REPRODUCED]) == REPRODUCED
    assert agreed([NOT, NOT]) == NOT
    assert agreed([REPRODUCED, NOT, OPEN]) == Outcome.DEPENDS
    assert agreed([REPRODUCED, OPEN]) == OPEN
    assert agreed([REPRODUCED, Outcome.NOT_TESTABLE]) == REPRODUCED
    assert agreed([]) == Outcome.NOT_TESTABLE


@pytest.mark.parametrize(
    ("parts", "missing", "verdict"),
    [
        ([], ["PathMNIST"], Verdict(Outcome.NOT_TESTABLE)),
        ([None], [], Verdict(Outcome.NOT_TESTABLE)),
        ([REPRODUCED, None], [], Verdict(REPRODUCED)),
        ([REPRODUCED, REPRODUCED], ["PathMNIST"], Verdict(REPRODUCED, Qualifier.WHERE_TESTED)),
        ([REPRODUCED, NOT], ["PathMNIST"], Verdict(NOT, Qualifier.WHERE_TESTED)),
    ],
)
def test_a_verdict_needs_every_part_that_has_a_say(
    parts: list[Outcome | None], missing: list[str], verdict: Verdict
) -> None:
    found = Finding(parts=[part("CIFAR-10", outcome) for outcome in parts], missing=missing).verdict
    assert found == verdict


def test_one_of_several_models_is_enough_on_each_dataset() -> None:
    parts = [part("CIFAR-10", NOT, "CLaI-M"), part("CIFAR-10", REPRODUCED, "CLaI-C"), part("SleepEDF", REPRODUCED)]
    assert Finding(parts=parts).verdict.outcome == REPRODUCED
    assert Finding(parts=[*parts, part("PathMNIST", NOT)]).verdict.outcome == NOT


def test_n_is_told_of_inconclusive_readings_alone() -> None:
    wide = pd.Series([-0.05, 0.0, 0.05]).rename_axis("seed")
    measured = {"hypothesis": Hypothesis("better", 0.01), "replicates": wide, "value": interval(wide)}
    settled = [
        part("CIFAR-10", REPRODUCED, "CLaI-M", ZERO),
        replace(part("CIFAR-10", OPEN, "CLaI-C", ZERO), **measured),
    ]
    for told, further in ((False, {}), (True, measured)):
        left = replace(part("CIFAR-10", OPEN, "CLaI-M", PRODUCT), **further)
        finding = Finding(parts=[*settled, left])
        assert finding.verdict.outcome == OPEN
        (reason,) = claims_frame([record(CLAIMS[0], finding, {})])["reason"]
        assert ("would take n of about" in reason) == told


def test_readings_that_contradict_make_the_verdict_depend_and_are_named() -> None:
    other = Reading(target="product", network="of table 1")
    found = {ZERO: NOT, PRODUCT: REPRODUCED, other: REPRODUCED}
    finding = Finding(parts=[part("CIFAR-10", outcome, reading=reading) for reading, outcome in found.items()])
    assert finding.verdict.outcome == Outcome.DEPENDS
    assert finding.deciding == ["target"]
    assert [p.reading for p in finding.decisive] == [ZERO, PRODUCT], "the pair that differs in the target alone"
    assert deciding({ZERO: NOT, PRODUCT: NOT}) == []


def test_readings_with_an_option_of_ours_are_not_the_papers() -> None:
    paper = Reading(target="zero", network="of table 1", loss="printed", shares="population", probability="raw")
    assert paper.of_paper
    for choice in (
        {"network": "of the studies"},
        {"loss": "balanced"},
        {"loss": "above its floor"},
        {"shares": "equal"},
        {"probability": "calibrated"},
    ):
        assert not replace(paper, **choice).of_paper


def test_readings_without_evidence_are_named_once() -> None:
    choices = {"target": ("zero", "product"), "probability": ("raw", "calibrated")}
    raw, calibrated = (Reading(target="zero", probability=p) for p in choices["probability"])
    assert without_evidence(choices, [raw]) == ["target product", "probability calibrated"]
    product = Reading(target="product", probability="raw")
    assert without_evidence(choices, [raw, calibrated, product]) == ["target product, probability calibrated"]
    finding = Finding(parts=[part("CIFAR-10", REPRODUCED, reading=raw)], choices=choices)
    assert finding.verdict == Verdict(REPRODUCED, Qualifier.WHERE_TESTED)
