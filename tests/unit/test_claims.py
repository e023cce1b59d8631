"""Verdicts follow from the evidence by their stated rules, and flip when the evidence does."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clai.report.claims.finding import DIFFERENCE, PER_CENT, POINTS, Finding, Part, Statistic, Unit, Verdict
from clai.report.claims.judgement import CLAIMS, Judgement, judge
from clai.report.claims.multiclass import CIFAR10_GROUPS, epochs_to, grouping_test
from clai.report.claims.page import claims_frame, claims_page
from clai.report.claims.sepsis import constant_calibration_error
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.statistics import interval
from support.evidence_fixture import (
    EXPECTED,
    STUDIES,
    write_benchmark,
    write_evidence,
    write_studies,
    write_theory,
)

PAPER = read_printed_values(Path(__file__).parents[2] / "workflow" / "config" / "printed_values.csv")


def table(root: Path) -> pd.DataFrame:
    """Judge all claims by the evidence below `root`; a row for each, by number."""
    return claims_frame(judge(Evidence.found(root, EXPECTED | STUDIES), PAPER)).set_index("id")


def verdicts(root: Path) -> dict[int, Verdict]:
    return {number: Verdict(verdict) for number, verdict in table(root)["verdict"].items()}


def part(data: str, holds: bool | None) -> Part:
    return Part(data, "accuracy", [Statistic("CLaI-M", 0.8, PER_CENT)], holds)


def test_a_mean_is_written_with_sign_interval_and_number_of_replicates() -> None:
    seeds = pd.Series([0.001, 0.004, 0.0073]).rename_axis("seed")
    gap = interval(seeds)
    assert POINTS.text(gap) == "+0.41 [-0.37, +1.19], n = 3 seeds"
    assert DIFFERENCE.text(gap) == "+0.004 [-0.004, +0.012], n = 3 seeds"
    assert POINTS.text(interval(seeds.rename_axis("fold"))) == "+0.41 [-0.83, +1.65], n = 3 folds"
    assert PER_CENT.text(interval(seeds[:1])) == "0.10, n = 1 seed, no interval"
    assert POINTS.text(interval(seeds[:0])) == "no value"
    assert Unit(2, style="e").text(2.98e-7) == "2.98e-07"


def test_a_part_names_data_quantity_and_unit_once() -> None:
    statistics = [Statistic("CLaI-M", 0.8265, PER_CENT), Statistic("chance", 0.1, PER_CENT)]
    assert (
        Part("CIFAR-10", "accuracy", statistics).text() == "CIFAR-10, accuracy in per cent: CLaI-M 82.65; chance 10.00."
    )
    assert Part("A", "ECE", [Statistic("M minus C", 0.01, DIFFERENCE)]).text() == "A, ECE: M minus C +0.010."


@pytest.mark.parametrize(
    ("holds", "missing", "verdict"),
    [
        ([], ["PathMNIST"], Verdict.NOT_TESTABLE),
        ([None], [], Verdict.NOT_TESTABLE),
        ([True, None], [], Verdict.REPRODUCED),
        ([True, True], ["PathMNIST"], Verdict.REPRODUCED_WHERE_TESTED),
        ([True, False], ["PathMNIST"], Verdict.NOT_REPRODUCED),
    ],
)
def test_a_verdict_needs_every_part_that_has_a_say(
    holds: list[bool | None], missing: list[str], verdict: Verdict
) -> None:
    assert Finding(parts=[part("CIFAR-10", value) for value in holds], missing=missing).verdict == verdict


def test_one_of_alternatives_is_enough_on_each_dataset() -> None:
    parts = [part("CIFAR-10", False), part("CIFAR-10", True), part("SleepEDF", True)]
    assert Finding(parts=parts, alternatives=True).verdict == Verdict.REPRODUCED
    assert Finding(parts=[*parts, part("PathMNIST", False)], alternatives=True).verdict == Verdict.NOT_REPRODUCED


def test_a_part_that_rests_on_too_little_has_no_say_and_says_what_is_missing() -> None:
    finding = Finding()
    finding.add(part("CIFAR-10", True), known=False, needs="two seeds")
    assert finding.outcomes == []
    assert finding.missing == ["two seeds"]


def test_all_sixteen_claims_are_judged_and_say_how() -> None:
    assert [claim.number for claim in CLAIMS] == list(range(1, 17))
    assert all(claim.test and claim.rule.startswith("Reproduced if") for claim in CLAIMS)


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    claims = table(tmp_path / "published")
    assert set(claims["verdict"]) == {Verdict.NOT_TESTABLE}
    assert claims["needs"].str.len().gt(0).all()


def test_verdicts_flip_with_the_evidence(tmp_path: Path) -> None:
    write_evidence(tmp_path / "better", list(EXPECTED), gain=0.02)
    write_evidence(tmp_path / "worse", list(EXPECTED), gain=-0.02)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in (1, 2, 3, 5):
        assert better[number] == Verdict.REPRODUCED
        assert worse[number] == Verdict.NOT_REPRODUCED


def test_schedules_and_targets_are_judged_by_the_studies(tmp_path: Path) -> None:
    write_studies(tmp_path / "better", gain=0.02)
    write_studies(tmp_path / "worse", gain=-0.02)
    for name in ("better", "worse"):
        write_benchmark(tmp_path / name)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in (14, 15):
        assert better[number] == Verdict.REPRODUCED
        assert worse[number] == Verdict.NOT_REPRODUCED
    assert "time of an epoch: sequential over joint" in table(tmp_path / "better").loc[14, "evidence"]


def test_cost_is_judged_by_the_growth_that_the_benchmark_measured(tmp_path: Path) -> None:
    for name, power, miniature in (("linear", 1.0, False), ("steeper", 1.5, False), ("mini", 1.0, True)):
        write_benchmark(tmp_path / name, power=power, miniature=miniature)
    assert verdicts(tmp_path / "linear")[13] == Verdict.REPRODUCED
    assert verdicts(tmp_path / "steeper")[13] == Verdict.NOT_REPRODUCED
    assert verdicts(tmp_path / "mini")[13] == Verdict.NOT_TESTABLE, "overheads rule the times of miniature sizes"


def test_one_seed_gives_no_verdict_on_differences(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=1)
    claims = table(tmp_path)
    for number in (1, 2, 3, 4):
        assert claims.loc[number, "verdict"] == Verdict.NOT_TESTABLE
        assert "at least two seeds" in claims.loc[number, "needs"]


def test_a_verdict_on_part_of_the_datasets_names_the_rest(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    row = table(tmp_path).loc[1]
    assert row["verdict"] == Verdict.REPRODUCED_WHERE_TESTED
    assert row["data"] == "CIFAR-10 (JPEG copy)"
    assert "n = 3" in row["evidence"]
    assert row["files"].endswith("cifar10/evidence/metrics.csv")
    assert "PathMNIST" in row["needs"]
    assert "SleepEDF" in row["needs"]


def test_table1_is_reproduced_only_if_the_printed_values_lie_within_the_interval(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    path = tmp_path / "cifar10" / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    printed = {"accuracy": 0.8046, "roc_auc": 0.9386}
    for metric, value in printed.items():
        rows = (metrics["model"] == "clai-m") & (metrics["metric"] == metric)
        metrics.loc[rows, "value"] += value - metrics.loc[rows, "value"].mean()
    metrics.to_csv(tmp_path / "metrics.csv", index=False)
    assert verdicts(tmp_path)[4] == Verdict.NOT_REPRODUCED
    write_evidence(tmp_path / "other", ["cifar10"])
    metrics.to_csv(tmp_path / "other" / "cifar10" / "evidence" / "metrics.csv", index=False)
    assert verdicts(tmp_path / "other")[4] == Verdict.REPRODUCED_WHERE_TESTED


def test_band_powers_stand_in_for_the_signals_are_named_and_meet_no_printed_value(tmp_path: Path) -> None:
    datasets = ["pathmnist", "cifar10", "sleepedf-bands"]
    write_evidence(tmp_path / "bands", datasets)
    rows = table(tmp_path / "bands")
    for number in (1, 2, 3, 4, 16):
        assert rows.loc[number, "data"].endswith("Sleep-EDF, band powers")
        assert "SleepEDF" in rows.loc[number, "needs"]
    assert rows.loc[1, "verdict"] == Verdict.REPRODUCED_WHERE_TESTED
    assert (
        "Sleep-EDF, band powers, accuracy of CLaI-M in percentage points: minus the lower" in rows.loc[16, "evidence"]
    )
    values = [text for text in rows.loc[4, "evidence"].split(".") if "printed" in text]
    assert values
    assert not any("band powers" in text for text in values)
    alone = table_of(tmp_path / "alone", ["sleepedf-bands"])
    assert alone.loc[4, "verdict"] == Verdict.NOT_TESTABLE
    both = table_of(tmp_path / "both", [*datasets, "sleepedf"])
    assert not both["data"].str.contains("band powers").any()


def table_of(root: Path, datasets: list[str]) -> pd.DataFrame:
    write_evidence(root, datasets)
    return table(root).loc[[1, 2, 3, 4, 16]]


def test_the_open_cohort_stands_in_for_mimic_iv_and_is_named(tmp_path: Path) -> None:
    write_evidence(tmp_path / "open", ["challenge2019"])
    row = table(tmp_path / "open").loc[7]
    assert row["data"] == "Challenge 2019"
    assert "credentialed access" in row["needs"]
    write_evidence(tmp_path / "both", ["mimic-iv", "challenge2019"])
    assert table(tmp_path / "both").loc[7, "data"] == "MIMIC-IV"


@pytest.mark.parametrize(("agreement", "verdict"), [(0.6, Verdict.NOT_REPRODUCED), (0.995, Verdict.REPRODUCED)])
def test_parzen_claim_follows_the_lowest_agreement(tmp_path: Path, agreement: float, verdict: str) -> None:
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, agreement_paper=agreement)
    assert verdicts(tmp_path)[10] == verdict


@pytest.mark.parametrize(("margin", "verdict"), [(0.01, Verdict.REPRODUCED), (-0.01, Verdict.NOT_REPRODUCED)])
def test_alignment_claim_needs_the_bound(tmp_path: Path, margin: float, verdict: str) -> None:
    write_evidence(tmp_path, ["cifar10"], theory=False)
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, margin=margin)
    assert verdicts(tmp_path)[9] == verdict


def test_grouping_test_is_exact() -> None:
    similarity = np.zeros((10, 10))
    groups = list(CIFAR10_GROUPS.values())
    for group in groups:
        for a in group:
            for b in group:
                similarity[a, b] = 1.0
    gap, p, count = grouping_test(similarity, groups)
    assert gap == pytest.approx(1.0)
    assert count == 45 * 70 * 6
    assert p == pytest.approx(2 / count)  # the two pairs may change places
    assert grouping_test(np.zeros((10, 10)), groups)[1] == 1.0


def test_groupings_found_by_chance_are_not_reproduced(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    path = tmp_path / "cifar10" / "evidence" / "similarity.csv"
    frame = pd.read_csv(path)
    order = np.random.default_rng(0).permutation(10)
    frame[["class_a", "class_b"]] = order[frame[["class_a", "class_b"]].to_numpy()]
    frame.to_csv(path, index=False)
    assert verdicts(tmp_path)[12] == Verdict.NOT_REPRODUCED


def test_a_run_that_never_gets_there_counts_its_last_epoch_and_one() -> None:
    rows = [(0, 1, 0.2), (0, 2, 0.6), (0, 3, 0.7), (1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3)]
    history = pd.DataFrame(rows, columns=["seed", "epoch", "validation_accuracy"])
    assert epochs_to(history, 0.5).tolist() == [2, 4]


def test_the_constant_predicts_the_prevalence_of_the_other_folds() -> None:
    frame = pd.DataFrame({"seed": 0, "fold": [0, 1, 2], "metric": "prevalence", "value": [0.1, 0.2, 0.3]})
    assert constant_calibration_error(frame).tolist() == pytest.approx([0.15, 0.0, 0.15])


def page(root: Path, caption: str = "The caption.") -> str:
    return claims_page(judge(Evidence.found(root, EXPECTED | STUDIES), PAPER), caption)


def test_the_page_shows_every_claim_its_rule_and_its_verdict(tmp_path: Path) -> None:
    write_evidence(tmp_path / "mini", ["cifar10"], miniature=True)
    text = page(tmp_path / "mini")
    assert text.startswith("# The paper's claims\n\nOf 16 claims, ")
    assert text.count("\n**Rule.** ") == text.count("\n**Verdict.** ") == text.count("\n## ") == 16
    assert "The caption." in text


def test_the_page_divides_the_evidence_by_what_it_says_of_the_claim(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    write_studies(tmp_path)
    section = page(tmp_path).split("\n## ")[1]
    blocks = section.split("\n\n")
    bearing = blocks[blocks.index("**Evidence that bears the claim out:**") + 1]
    assert bearing.startswith("- CIFAR-10 (JPEG copy), accuracy in percentage points: CLaI-M minus CLaI-C +")
    silent = blocks[blocks.index("**Evidence without a say in the verdict:**") + 1]
    assert len(re.findall(r"^- Ablation", silent, re.MULTILINE)) == 2
    assert "**Verdict.** Reproduced where tested." in section


def test_the_page_says_how_many_intervals_it_has() -> None:
    gap = interval(pd.Series([0.1, 0.2]).rename_axis("seed"))
    alone, number = interval(pd.Series([0.1]).rename_axis("seed")), 0.5
    parts = [
        Part("CIFAR-10", "accuracy", [Statistic("gap", gap, POINTS), Statistic("other gap", gap, POINTS)], True),
        Part("CIFAR-10", "ECE", [Statistic(name, value, POINTS) for name, value in [("a", gap), ("b", alone)]]),
        Part("CIFAR-10", "ECE", [Statistic("chance", number, POINTS)], False),
    ]
    text = claims_page([Judgement(CLAIMS[0], Finding(parts=parts))], "The caption.")
    assert "The page has 3 intervals, 2 of them with a say in a verdict." in " ".join(text.split())
    assert "one in 20 excludes 0 by chance" in " ".join(text.split())


def test_lines_of_the_page_are_wrapped_outside_its_table_and_within_no_number(tmp_path: Path) -> None:
    write_evidence(tmp_path, list(EXPECTED))
    write_studies(tmp_path)
    lines = page(tmp_path, "Data: " + "many words " * 30).splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    assert not [line for line in lines if line.count("[") != line.count("]")]
    assert not [line for line in lines if re.search(r"\b[np] =$", line)]
