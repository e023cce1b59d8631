"""Verdicts follow from the evidence by their stated rules, and flip when the evidence does."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clai.report.claims import (
    CIFAR10_GROUPS,
    CLAIMS,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    REPRODUCED_IN_PART,
    constant_calibration_error,
    epochs_to,
    grouping_test,
    judge,
    markdown,
)
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from support.evidence_fixture import (
    EXPECTED,
    STUDIES,
    write_benchmark,
    write_evidence,
    write_studies,
    write_theory,
)

PAPER = read_printed_values(Path(__file__).parents[2] / "workflow" / "config" / "printed_values.csv")


def verdicts(root: Path) -> dict[int, str]:
    frame = judge(Evidence.found(root, EXPECTED | STUDIES), PAPER)
    return dict(zip(frame["id"], frame["verdict"], strict=True))


def test_all_sixteen_claims_are_judged_and_say_how() -> None:
    assert [claim.number for claim in CLAIMS] == list(range(1, 17))
    assert all(claim.test and claim.rule.startswith("Reproduced if") for claim in CLAIMS)


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    frame = judge(Evidence.found(tmp_path / "published", EXPECTED), PAPER)
    assert set(frame["verdict"]) == {NOT_TESTABLE}
    assert frame["needs"].str.len().gt(0).all()


def test_verdicts_flip_with_the_evidence(tmp_path: Path) -> None:
    write_evidence(tmp_path / "better", list(EXPECTED), gain=0.02)
    write_evidence(tmp_path / "worse", list(EXPECTED), gain=-0.02)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in (1, 2, 3, 5):
        assert better[number] == REPRODUCED
        assert worse[number] == NOT_REPRODUCED


def test_schedules_and_targets_are_judged_by_the_studies(tmp_path: Path) -> None:
    write_studies(tmp_path / "better", gain=0.02)
    write_studies(tmp_path / "worse", gain=-0.02)
    for name in ("better", "worse"):
        write_benchmark(tmp_path / name)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in (14, 15):
        assert better[number] == REPRODUCED
        assert worse[number] == NOT_REPRODUCED
    frame = judge(Evidence.found(tmp_path / "better", EXPECTED | STUDIES), PAPER).set_index("id")
    assert "an epoch of the sequential schedule takes" in frame.loc[14, "evidence"]


def test_cost_is_judged_by_the_growth_that_the_benchmark_measured(tmp_path: Path) -> None:
    for name, power, miniature in (("linear", 1.0, False), ("steeper", 1.5, False), ("mini", 1.0, True)):
        write_benchmark(tmp_path / name, power=power, miniature=miniature)
    assert verdicts(tmp_path / "linear")[13] == REPRODUCED
    assert verdicts(tmp_path / "steeper")[13] == NOT_REPRODUCED
    assert verdicts(tmp_path / "mini")[13] == NOT_TESTABLE, "overheads rule the times of miniature sizes"


def test_one_seed_gives_no_verdict_on_differences(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=1)
    frame = judge(Evidence.found(tmp_path, EXPECTED), PAPER).set_index("id")
    for number in (1, 2, 3, 4):
        assert frame.loc[number, "verdict"] == NOT_TESTABLE
        assert "at least two seeds" in frame.loc[number, "needs"]


def test_a_verdict_on_part_of_the_datasets_names_the_rest(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    row = judge(Evidence.found(tmp_path, EXPECTED), PAPER).set_index("id").loc[1]
    assert row["verdict"] == REPRODUCED_IN_PART
    assert row["data"] == "CIFAR-10 (JPEG copy)"
    assert "(n = 3)" in row["evidence"]
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
    assert verdicts(tmp_path)[4] == NOT_REPRODUCED
    write_evidence(tmp_path / "other", ["cifar10"])
    metrics.to_csv(tmp_path / "other" / "cifar10" / "evidence" / "metrics.csv", index=False)
    assert verdicts(tmp_path / "other")[4] == REPRODUCED_IN_PART


def test_the_open_cohort_stands_in_for_mimic_iv_and_is_named(tmp_path: Path) -> None:
    write_evidence(tmp_path / "open", ["challenge2019"])
    row = judge(Evidence.found(tmp_path / "open", EXPECTED), PAPER).set_index("id").loc[7]
    assert row["data"] == "Challenge 2019"
    assert "credentialed access" in row["needs"]
    write_evidence(tmp_path / "both", ["mimic-iv", "challenge2019"])
    assert judge(Evidence.found(tmp_path / "both", EXPECTED), PAPER).set_index("id").loc[7, "data"] == "MIMIC-IV"


@pytest.mark.parametrize(("agreement", "verdict"), [(0.6, NOT_REPRODUCED), (0.995, REPRODUCED)])
def test_parzen_claim_follows_the_lowest_agreement(tmp_path: Path, agreement: float, verdict: str) -> None:
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, agreement_paper=agreement)
    assert verdicts(tmp_path)[10] == verdict


@pytest.mark.parametrize(("margin", "verdict"), [(0.01, REPRODUCED), (-0.01, NOT_REPRODUCED)])
def test_alignment_claim_needs_the_bound(tmp_path: Path, margin: float, verdict: str) -> None:
    write_evidence(tmp_path, ["cifar10"], theory=False)
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, margin=margin)
    assert verdicts(tmp_path)[9] == verdict


def test_grouping_test_is_exact() -> None:
    similarity = np.zeros((10, 10))
    for group in CIFAR10_GROUPS:
        for a in group:
            for b in group:
                similarity[a, b] = 1.0
    gap, p, count = grouping_test(similarity, CIFAR10_GROUPS)
    assert gap == pytest.approx(1.0)
    assert count == 45 * 70 * 6
    assert p == pytest.approx(2 / count)  # the two pairs may change places
    assert grouping_test(np.zeros((10, 10)), CIFAR10_GROUPS)[1] == 1.0


def test_groupings_found_by_chance_are_not_reproduced(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    path = tmp_path / "cifar10" / "evidence" / "similarity.csv"
    frame = pd.read_csv(path)
    order = np.random.default_rng(0).permutation(10)
    frame[["class_a", "class_b"]] = order[frame[["class_a", "class_b"]].to_numpy()]
    frame.to_csv(path, index=False)
    assert verdicts(tmp_path)[12] == NOT_REPRODUCED


def test_a_run_that_never_gets_there_counts_its_last_epoch_and_one() -> None:
    rows = [(0, 1, 0.2), (0, 2, 0.6), (0, 3, 0.7), (1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3)]
    history = pd.DataFrame(rows, columns=["seed", "epoch", "validation_accuracy"])
    assert epochs_to(history, 0.5).tolist() == [2, 4]


def test_the_constant_predicts_the_prevalence_of_the_other_folds() -> None:
    frame = pd.DataFrame({"seed": 0, "fold": [0, 1, 2], "metric": "prevalence", "value": [0.1, 0.2, 0.3]})
    assert constant_calibration_error(frame).tolist() == pytest.approx([0.15, 0.0, 0.15])


def test_the_page_shows_every_claim_its_rule_and_its_verdict(tmp_path: Path) -> None:
    write_evidence(tmp_path / "mini", ["cifar10"], miniature=True)
    frame = judge(Evidence.found(tmp_path / "mini", EXPECTED), PAPER)
    page = markdown(frame, "The caption.")
    assert page.count("- Rule: ") == page.count("- Verdict: **") == 16
    assert "The caption." in page
