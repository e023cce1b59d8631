"""Verdicts follow from the evidence by their stated rules, and flip when the evidence does."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.report.claims.finding import Finding
from replication.report.claims.hypothesis import Outcome, Qualifier, Reading, Verdict
from replication.report.claims.judge import CLAIMS, judge
from replication.report.claims.multiclass import CIFAR10_GROUPS, grouping_test
from replication.report.claims.page import claims_frame, claims_page
from replication.report.claims.training import epochs_to
from replication.report.evidence import Evidence, _read_csv
from replication.report.printed_values import read_values
from support.evidence_fixture import (
    EXPECTED,
    STUDIES,
    without_models,
    write_benchmark,
    write_evidence,
    write_studies,
    write_theory,
)

PAPER = read_values(Path(__file__).parents[2] / "workflow" / "config" / "printed_values.csv")
REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
ZERO, PRODUCT = Reading(target="zero", network="of the studies"), Reading(target="product", network="of the studies")


def table(root: Path) -> pd.DataFrame:
    """Judge all claims by the evidence below `root`; a row for each, by number."""
    return claims_frame(judge(Evidence.found(root, EXPECTED | STUDIES), PAPER)).set_index("id")


def verdicts(root: Path) -> dict[str, Verdict]:
    claims = judge(Evidence.found(root, EXPECTED | STUDIES), PAPER)
    return {claim["id"]: Verdict(claim["outcome"], claim["qualifier"]) for claim in claims}


def finding_on(root: Path, number: str) -> Finding:
    claim = next(claim for claim in CLAIMS if claim.number == number)
    return claim.judge(Evidence.found(root, EXPECTED | STUDIES), PAPER)


def change(folder: Path, edit: Callable[[pd.DataFrame], None]) -> None:
    """Change the metrics of an evidence folder in place, as of runs whose predictions were not kept."""
    path = folder / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    edit(metrics)
    metrics.to_csv(path, index=False)
    (folder / "evidence" / "comparisons.csv").unlink(missing_ok=True)


def shift(model: str, metric: str, amounts: float | list[float]) -> Callable[[pd.DataFrame], None]:
    """Return an edit that adds amounts to a metric of a model, by seed."""

    def edit(metrics: pd.DataFrame) -> None:
        rows = (metrics["model"] == model) & (metrics["metric"] == metric)
        by_seed = metrics.loc[rows, "seed"].map(dict(enumerate(np.broadcast_to(amounts, 3))))
        metrics.loc[rows, "value"] += by_seed

    return edit


def test_all_claims_are_judged_and_say_how() -> None:
    numbers = [*map(str, range(1, 3)), "3a", "3b", *map(str, range(4, 17))]
    assert [claim.number for claim in CLAIMS] == numbers
    assert all(claim.test and claim.rule.startswith("Reproduced if") for claim in CLAIMS)


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    claims = table(tmp_path / "published")
    assert set(claims["verdict"]) == {str(Outcome.NOT_TESTABLE)}
    assert claims["needs"].str.len().gt(0).all()


def test_verdicts_flip_with_the_evidence(tmp_path: Path) -> None:
    write_evidence(tmp_path / "better", list(EXPECTED), gain=0.02)
    write_evidence(tmp_path / "worse", list(EXPECTED), gain=-0.02)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in ("1", "2", "3b", "5"):
        assert better[number] == Verdict(REPRODUCED, Qualifier.WHERE_TESTED), "one target, loss and share alone"
        assert worse[number].outcome == NOT
    assert better["6"].outcome == REPRODUCED
    assert worse["6"].outcome == NOT


def test_a_spread_beyond_the_margin_is_inconclusive_and_says_what_n_would_decide(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    change(tmp_path / "cifar10", shift("clai-m", "accuracy", [-0.05, 0.0, 0.05]))
    row = table(tmp_path).loc["1"]
    assert row["verdict"] == "inconclusive, where tested"
    needed = re.search(r"would take n of about (\d+)", row["reason"])
    assert needed is not None
    assert int(needed[1]) > 100


def test_the_target_that_a_verdict_hangs_on_is_named(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"], gain=-0.02)
    write_studies(tmp_path)
    change(tmp_path / "decisive", shift("full_product", "accuracy", 0.03))
    row = table(tmp_path).loc["1"]
    assert row["verdict"] == "depends on the reading, where tested"
    assert "The target decides: not reproduced with zero; reproduced with product." in row["reason"]
    assert row["evidence"].startswith("target zero: accuracy, CLaI-M minus CLaI-C: ")
    assert "; target product: " in row["evidence"]


def test_datasets_without_a_target_that_others_have_are_named(tmp_path: Path) -> None:
    """The product target has runs of table 1 on PathMNIST, and none on CIFAR-10."""
    write_evidence(tmp_path, ["cifar10", "pathmnist"])
    lacking = "CIFAR-10 (JPEG copy): runs with the target product and the network of table 1"
    numbers = ["1", "2", "3a", "3b", "4", "15"]
    assert not table(tmp_path).loc[numbers, "needs"].str.contains("network of table 1").any(), (
        "a reading without evidence"
    )
    study = tmp_path / "product-pathmnist" / "evidence"
    shutil.copytree(tmp_path / "pathmnist" / "evidence", study)
    for file in ("metrics.csv", "history.csv"):
        frame = pd.read_csv(study / file)
        names = {"clai-m": "full_product", "clai-c": "cosine_product"}
        frame.assign(model=frame["model"].replace(names)).to_csv(study / file, index=False)
    needs = table(tmp_path).loc[numbers, "needs"]
    assert needs.str.contains(lacking, regex=False).all()
    assert not needs.str.contains("PathMNIST: runs", regex=False).any()


def test_training_loss_is_judged_raw_and_above_its_floor(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])  # the floor of CLaI-C lies 0.09 higher
    path = tmp_path / "cifar10" / "evidence" / "history.csv"
    history = pd.read_csv(path)
    history.loc[history["model"] == "clai-m", "loss"] += 0.06
    history.to_csv(path, index=False)
    finding = finding_on(tmp_path, "3a")
    found = {reading.loss: outcome for reading, outcome in finding.outcomes.items()}
    assert found == {"raw": REPRODUCED, "above its floor": NOT}
    assert finding.verdict.outcome == Outcome.DEPENDS


def test_the_epochs_of_figure_3_are_a_reading_of_claim_3(tmp_path: Path) -> None:
    """CLaI-M ends with the lower loss there and gets to the accuracy later, so that both verdicts can go either way."""
    write_evidence(tmp_path, ["sleepedf-bands"])
    write_studies(tmp_path)
    path = tmp_path / "epochs-120" / "evidence" / "history.csv"
    history = pd.read_csv(path)
    gaussian = history["model"] == "full_zero"
    history.loc[gaussian, "loss"] -= 0.05
    history.loc[gaussian & (history["epoch"] < history["epoch"].max()), "validation_accuracy"] -= 0.3
    history.to_csv(path, index=False)
    for number, expected in (("3a", REPRODUCED), ("3b", NOT)):
        finding = finding_on(tmp_path, number)
        outcomes = {outcome for reading, outcome in finding.outcomes.items() if reading.epochs == "120"}
        assert outcomes == {expected}
        assert {reading.epochs for reading in finding.outcomes} == {"ours", "120"}


def test_sepsis_is_judged_by_shares_rule_and_calibration_error(tmp_path: Path) -> None:
    """Each share and rule has its own metrics; `ece` is that of the top label."""
    write_evidence(tmp_path, ["challenge2019"])
    path = tmp_path / "challenge2019" / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    worse = (metrics["model"] == "clai-m") & (metrics["metric"] == "ece") & (metrics["shares"] == "population")
    metrics.loc[worse, "value"] += 0.1
    metrics.to_csv(path, index=False)
    finding = finding_on(tmp_path, "5")
    assert finding.verdict == Verdict(Outcome.DEPENDS, Qualifier.SUBSTITUTE)
    failing = {reading for reading, outcome in finding.outcomes.items() if outcome == NOT}
    assert {(r.shares, r.ece, r.probability) for r in failing} == {("population", "top label", "raw")}
    assert finding.untested == ["cohort septic", "loss printed"]


def test_schedules_and_targets_are_judged_by_the_studies(tmp_path: Path) -> None:
    write_studies(tmp_path / "better", gain=0.02)
    write_studies(tmp_path / "worse", gain=-0.02)
    for name in ("better", "worse"):
        write_benchmark(tmp_path / name)
    better, worse = verdicts(tmp_path / "better"), verdicts(tmp_path / "worse")
    for number in ("14", "15"):
        assert better[number] == Verdict(REPRODUCED)
        assert worse[number].outcome == NOT
    assert "time of an epoch, sequential over joint" in table(tmp_path / "better").loc["14", "evidence"]


def test_zero_targets_are_judged_by_kernel(tmp_path: Path) -> None:
    write_studies(tmp_path, gain=0.02)
    for study in ("ablation", "decisive"):
        change(tmp_path / study, shift("full_zero", "accuracy", -0.05))
    row = table(tmp_path).loc["15"]
    assert row["verdict"] == "depends on the reading"
    assert "The kernel decides" in row["reason"]
    assert "not reproduced with Gaussian (full M)" in row["reason"]


def test_cost_is_judged_by_the_growth_that_the_benchmark_measured(tmp_path: Path) -> None:
    for name, power, miniature in (("linear", 1.0, False), ("steeper", 1.5, False), ("mini", 1.0, True)):
        write_benchmark(tmp_path / name, power=power, miniature=miniature)
    assert finding_on(tmp_path / "linear", "13").verdict.outcome == REPRODUCED
    assert finding_on(tmp_path / "steeper", "13").verdict.outcome == NOT
    assert finding_on(tmp_path / "mini", "13").verdict.outcome == Outcome.NOT_TESTABLE, (
        "overheads rule the times of miniature sizes"
    )


def test_one_seed_gives_no_verdict_on_differences(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=1)
    claims = table(tmp_path)
    for number in ("1", "2", "3a", "3b", "4"):
        assert claims.loc[number, "verdict"] == Outcome.NOT_TESTABLE
        assert "at least two seeds" in claims.loc[number, "needs"]


def test_a_verdict_on_part_of_the_datasets_names_the_rest(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    row = table(tmp_path).loc["1"]
    assert row["verdict"] == "reproduced, where tested"
    assert row["data"] == "CIFAR-10 (JPEG copy)"
    assert "n = 3" in row["evidence"]
    assert re.search(r"cifar10/evidence/metrics\.csv; \S+/cifar10/evidence/comparisons\.csv$", row["files"])
    assert "PathMNIST" in row["needs"]
    assert "SleepEDF" in row["needs"]


@pytest.mark.parametrize(
    ("accuracy", "roc_auc", "outcome"),
    [
        (0.8046, 0.9386, REPRODUCED),
        (0.8046, 0.9786, Outcome.EXCEEDED),
        (0.7846, 0.9786, NOT),
    ],
)
def test_table1_is_reproduced_at_the_printed_values_and_exceeded_above_them(
    tmp_path: Path, accuracy: float, roc_auc: float, outcome: Outcome
) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=5)
    path = tmp_path / "cifar10" / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    for metric, value in (("accuracy", accuracy), ("roc_auc", roc_auc)):
        for model, beyond in (("clai-m", 0.0), ("clai-c", -0.1)):  # one model is enough
            rows = (metrics["model"] == model) & (metrics["metric"] == metric) & (metrics["rule"] == "printed")
            around = (metrics.loc[rows, "value"] - metrics.loc[rows, "value"].mean()) / 10
            metrics.loc[rows, "value"] = around + value + beyond
    metrics.to_csv(path, index=False)
    assert finding_on(tmp_path, "4").verdict.outcome == outcome


@pytest.mark.parametrize(("half", "outcome"), [(0.005, Outcome.EXCEEDED), (0.02, OPEN)])
def test_table1_counts_test_samples_where_predictions_were_kept(tmp_path: Path, half: float, outcome: Outcome) -> None:
    """Seeds alone say that the values are exceeded."""
    write_evidence(tmp_path, ["cifar10"])
    path = tmp_path / "cifar10" / "evidence" / "comparisons.csv"
    printed = {"accuracy": 0.8046, "roc_auc": 0.9386}
    alone = [
        (model, "", metric, value + 0.02, value + 0.02 - half, value + 0.02 + half, None, 10000, 3, 1000)
        for model in ("clai-m", "clai-c")
        for metric, value in printed.items()
    ]
    compared = pd.read_csv(path)
    pd.concat([compared, pd.DataFrame(alone, columns=compared.columns)]).to_csv(path, index=False)
    finding = finding_on(tmp_path, "4")
    assert finding.verdict.outcome == outcome
    assert all(part.samples == 10000 and part.n_needed is None for part in finding.judged)
    assert finding.files[-1].endswith("cifar10/evidence/comparisons.csv")


def test_differences_count_test_samples_in_the_runs_of_table_1_alone_and_the_page_says_so(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    write_studies(tmp_path)
    path = tmp_path / "cifar10" / "evidence" / "comparisons.csv"
    compared = pd.read_csv(path)
    compared["low"] -= 0.02
    compared["high"] += 0.02
    compared.to_csv(path, index=False)
    for number in ("1", "2"):
        judged = finding_on(tmp_path, number).judged
        assert {(part.reading.network, part.samples) for part in judged} == {
            ("of table 1", 10000),
            ("of the studies", 0),
        }
        assert {part.outcome for part in judged if part.samples} == {OPEN}
    section = (
        claims_page(judge(Evidence.found(tmp_path, EXPECTED | STUDIES), PAPER), "")
        .split("\n## 1. ")[1]
        .split("\n## ")[0]
    )
    cells = [line.split(" | ") for line in section.splitlines() if line.startswith(("| zero", "| product"))]
    assert [row[5] for row in cells] == ["10000", "not counted", "not counted"]
    change(tmp_path / "cifar10", lambda metrics: None)
    alone = [part for part in finding_on(tmp_path, "1").judged if part.reading.network == "of table 1"]
    assert [(part.outcome, part.samples) for part in alone] == [(REPRODUCED, 0)]


def test_band_powers_stand_in_for_the_signals_are_named_and_meet_no_printed_value(tmp_path: Path) -> None:
    datasets = ["pathmnist", "cifar10", "sleepedf-bands"]
    write_evidence(tmp_path / "bands", datasets)
    rows = table(tmp_path / "bands")
    for number in ("1", "2", "3a", "3b", "4", "16"):
        assert rows.loc[number, "data"].endswith("Sleep-EDF, band powers")
        assert "SleepEDF" in rows.loc[number, "needs"]
    assert rows.loc["1", "verdict"] == "reproduced, where tested"
    on_bands = finding_on(tmp_path / "bands", "16").judged
    assert next((p.data, p.quantity) for p in on_bands) == (
        "Sleep-EDF, band powers",
        "accuracy of CLaI-M, minus the lower of the other two",
    )
    on_table1 = finding_on(tmp_path / "bands", "4").parts
    assert {p.outcome for p in on_table1 if p.data == "Sleep-EDF, band powers"} == {None}
    assert all(p.outcome is not None for p in on_table1 if p.data == "PathMNIST")
    alone = table_of(tmp_path / "alone", ["sleepedf-bands"])
    assert alone.loc["4", "verdict"] == Outcome.NOT_TESTABLE
    assert alone.loc["1", "verdict"].endswith(", on a substitute")
    both = table_of(tmp_path / "both", [*datasets, "sleepedf"])
    assert not both["data"].str.contains("band powers").any()


def table_of(root: Path, datasets: list[str]) -> pd.DataFrame:
    write_evidence(root, datasets)
    return table(root).loc[["1", "2", "3a", "3b", "4", "16"]]


@pytest.mark.parametrize("model", ["clai-m", "clai-c"])
@pytest.mark.parametrize("dataset", ["pathmnist", "cifar10", "sleepedf"])
def test_the_hardest_dataset_is_not_judged_without_runs_of_a_model(tmp_path: Path, dataset: str, model: str) -> None:
    datasets = ["pathmnist", "cifar10", "sleepedf"]
    write_evidence(tmp_path, datasets, theory=False)
    assert finding_on(tmp_path, "16").verdict.outcome in (REPRODUCED, NOT)
    path = tmp_path / dataset / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    metrics[metrics["model"] != model].to_csv(path, index=False)
    _read_csv.cache_clear()
    finding = finding_on(tmp_path, "16")
    assert finding.verdict.outcome == Outcome.NOT_TESTABLE
    assert [need.split(": runs of ")[1] for need in finding.missing] == [
        {"clai-m": "CLaI-M", "clai-c": "CLaI-C"}[model]
    ]


def test_datasets_without_runs_of_clai_are_named_and_not_judged(tmp_path: Path) -> None:
    write_evidence(tmp_path / "published", ["pathmnist", "cifar10", "sleepedf-bands", "challenge2019"], theory=False)
    without_models(tmp_path / "published", ["clai-m", "clai-c"])
    assert set(verdicts(tmp_path / "published").values()) == {Verdict(Outcome.NOT_TESTABLE)}
    missing = finding_on(tmp_path / "published", "1").missing
    assert "CIFAR-10 (JPEG copy): runs of a CLaI model" in missing
    assert "Sleep-EDF, band powers: runs of a CLaI model" in missing


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("position", [0, 2])
def test_a_run_whose_loss_does_not_vary_is_named_and_not_judged(tmp_path: Path, position: int) -> None:
    write_evidence(tmp_path, ["cifar10"], theory=False)
    path = tmp_path / "cifar10" / "evidence" / "history.csv"
    history = pd.read_csv(path)
    history.loc[(history["model"] == "clai-m") & (history["seed"] == position), "loss"] = 0.5
    history.to_csv(path, index=False)
    finding = finding_on(tmp_path, "9")
    assert finding.verdict == Verdict(REPRODUCED, Qualifier.WHERE_TESTED), "by CLaI-C"
    assert not any("CLaI-M" in part.quantity for part in finding.judged)
    assert ["vary" in need and need.endswith("CLaI-M") for need in finding.missing] == [True]


def test_the_open_cohort_stands_in_for_mimic_iv_and_is_named(tmp_path: Path) -> None:
    write_evidence(tmp_path / "open", ["challenge2019"])
    row = table(tmp_path / "open").loc["7"]
    assert row["data"] == "Challenge 2019"
    assert "credentialed access" in row["needs"]
    assert row["verdict"].endswith(", on a substitute")
    write_evidence(tmp_path / "both", ["mimic-iv", "challenge2019"])
    assert table(tmp_path / "both").loc["7", "data"] == "MIMIC-IV"


@pytest.mark.parametrize(("agreement", "outcome"), [(0.6, NOT), (0.995, REPRODUCED)])
def test_parzen_claim_follows_the_lowest_agreement(tmp_path: Path, agreement: float, outcome: Outcome) -> None:
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, agreement_paper=agreement)
    assert finding_on(tmp_path, "10").verdict.outcome == outcome


@pytest.mark.parametrize(("margin", "outcome"), [(0.01, REPRODUCED), (-0.01, NOT)])
def test_alignment_claim_needs_the_bound(tmp_path: Path, margin: float, outcome: Outcome) -> None:
    write_evidence(tmp_path, ["cifar10"], theory=False)
    folder = tmp_path / "theory" / "evidence"
    folder.mkdir(parents=True)
    write_theory(folder, margin=margin)
    assert finding_on(tmp_path, "9").verdict.outcome == outcome


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
    assert finding_on(tmp_path, "12").verdict.outcome == NOT


def test_a_run_that_never_gets_there_counts_its_last_epoch_and_one() -> None:
    rows = [(0, 1, 0.2), (0, 2, 0.6), (0, 3, 0.7), (1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3)]
    history = pd.DataFrame(rows, columns=["seed", "epoch", "validation_accuracy"])
    assert epochs_to(history, 0.5).tolist() == [2, 4]
