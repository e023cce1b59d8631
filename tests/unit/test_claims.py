"""Verdicts follow from the evidence by their stated rules, and flip when the evidence does."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.report.claims.hypothesis import Outcome
from replication.report.claims.judge import judge
from replication.report.claims.multiclass import CIFAR10_GROUPS, grouping_p, minus_printed
from replication.report.claims.page import claims_frame
from replication.report.claims.theory import TURNS
from replication.report.claims.training import lead
from replication.report.evidence import Evidence, _read_csv
from replication.report.statistics import Interval
from replication.runs.columns import COLUMNS
from replication.runs.outputs import CLAIM_TEXTS
from support.evidence_fixture import (
    DATASETS,
    EXPECTED,
    change,
    finding_on,
    shift,
    without_models,
    write_benchmark,
    write_evidence,
    write_studies,
    write_theory,
)
from support.repository import PRINTED

REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
DEPENDS, UNTESTED = Outcome.DEPENDS, Outcome.NOT_TESTABLE


def outcome(root: Path, number: str) -> Outcome:
    return finding_on(root, number).outcome


def test_without_evidence_nothing_is_testable_and_each_claim_says_what_it_takes(tmp_path: Path) -> None:
    claims = judge(Evidence.found(tmp_path / "published", EXPECTED), PRINTED)
    assert {claim["outcome"] for claim in claims} == {UNTESTED, ""}
    assert all(claim["needs"] for claim in claims if claim["id"] != "B")
    assert len(claims_frame(claims)) == 20


def test_verdicts_flip_with_the_evidence(tmp_path: Path) -> None:
    for name, gain in (("better", 0.02), ("worse", -0.02)):
        write_evidence(tmp_path / name, DATASETS, gain=gain)
    for number, verdict in {"1": REPRODUCED, "2": REPRODUCED, "5": REPRODUCED, "6": REPRODUCED}.items():
        assert outcome(tmp_path / "better", number) == verdict
    for number in ("1", "2", "5"):
        assert outcome(tmp_path / "worse", number) == NOT
    change(tmp_path / "worse", "mimic-iv", "metrics.csv", shift("clai-m", "auroc", -0.05))
    assert outcome(tmp_path / "worse", "6") == NOT, "farther below than the paper's own gap"


def test_a_reading_that_contradicts_the_other_is_named(tmp_path: Path) -> None:
    """The product target has runs of table 1 on PathMNIST alone."""
    write_evidence(tmp_path, ["cifar10", "pathmnist"], gain=-0.02)
    study = tmp_path / "product-pathmnist" / "evidence"
    shutil.copytree(tmp_path / "pathmnist" / "evidence", study)
    for file in ("metrics.csv", "history.csv"):
        frame = pd.read_csv(study / file)
        names = {"clai-m": "full_product", "clai-c": "cosine_product"}
        frame.assign(model=frame["model"].replace(names)).to_csv(study / file, index=False)
    for amount, verdict in ((0.0, NOT), (0.05, DEPENDS)):
        change(tmp_path, "product-pathmnist", "metrics.csv", shift("full_product", "accuracy", amount))
        _read_csv.cache_clear()
        claim = judge(Evidence.found(tmp_path, EXPECTED), PRINTED)[0]
        assert claim["outcome"] == verdict
        assert claim["qualifier"] == "where tested"
    assert claim["readings"] == {
        CLAIM_TEXTS["targets"]["zero"]["name"]: NOT,
        CLAIM_TEXTS["targets"]["product"]["name"]: REPRODUCED,
    }


@pytest.mark.parametrize(("number", "column", "amount"), [("3a", "loss", 0.05), ("3b", "validation_accuracy", -0.05)])
def test_training_is_judged_by_runs_of_120_epochs(tmp_path: Path, number: str, column: str, amount: float) -> None:
    write_evidence(tmp_path, ["cifar10"])
    assert outcome(tmp_path, number) == UNTESTED, "30 epochs are an option of ours"
    write_studies(tmp_path)
    for sign, verdict in ((-1, REPRODUCED), (2, NOT)):

        def edit(history: pd.DataFrame, sign: int = sign) -> None:
            rows = history["model"] == "full_zero"
            history.loc[rows, column] += sign * amount + 1e-4 * history.loc[rows, "seed"]

        change(tmp_path, "epochs-120", "history.csv", edit)
        finding = finding_on(tmp_path, number)
        assert finding.outcome == verdict
        assert finding.untested == ["product"]


def test_curves_of_unequal_batches_are_not_compared(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    assert [estimate.option for estimate in finding_on(tmp_path, "3b").estimates] == ["epochs"]
    records = tmp_path / "cifar10" / "evidence" / "runs.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        if "clai-m" in line["run"]:
            line["settings"] = "smaller batches"
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shared = records.parent / "runs_shared.json"
    content = json.loads(shared.read_text())
    (settings,) = content["settings"].values()
    content["settings"]["smaller batches"] = settings | {"training": settings["training"] | {"batch_size": 32}}
    shared.write_text(json.dumps(content))
    assert finding_on(tmp_path, "3b").estimates == []


def test_the_lead_is_the_mean_over_the_epochs_of_both_curves() -> None:
    rows = [("a", 0, 1, 0.2), ("a", 0, 2, 0.6), ("b", 0, 1, 0.1), ("b", 0, 2, 0.4), ("b", 0, 3, 0.9)]
    history = pd.DataFrame(rows, columns=["model", "seed", "epoch", "validation_accuracy"])
    assert lead(history, "a", "b").tolist() == pytest.approx([0.15])
    assert lead(history, "a", "c").empty


@pytest.mark.parametrize(
    ("accuracy", "roc_auc", "verdict"),
    [(0.8046, 0.9386, REPRODUCED), (0.8046, 0.9786, Outcome.EXCEEDED), (0.7846, 0.9786, NOT)],
)
def test_table1_is_reproduced_at_the_printed_values_and_exceeded_above_them(
    tmp_path: Path, accuracy: float, roc_auc: float, verdict: Outcome
) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=5)

    def edit(metrics: pd.DataFrame) -> None:
        for metric, value in (("accuracy", accuracy), ("roc_auc", roc_auc)):
            for model, beyond in (("clai-m", 0.0), ("clai-c", -0.1)):  # one model is enough
                rows = (metrics["model"] == model) & (metrics["metric"] == metric) & (metrics["rule"] == "printed")
                around = (metrics.loc[rows, "value"] - metrics.loc[rows, "value"].mean()) / 100
                metrics.loc[rows, "value"] = around + value + beyond

    change(tmp_path, "cifar10", "metrics.csv", edit)
    assert outcome(tmp_path, "4") == verdict


def test_printed_values_have_a_sampling_error() -> None:
    ours = Interval(0.83, 0.82, 0.84, 3)
    difference = minus_printed(ours, 0.8, 10_000)
    assert difference.mean == pytest.approx(0.03)
    assert difference.high - difference.mean == pytest.approx((0.01**2 + 1.96**2 * 0.16 / 10_000) ** 0.5, rel=1e-3)


def test_printed_values_do_not_apply_to_a_substitute(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["sleepedf-bands"])
    assert outcome(tmp_path, "4") == UNTESTED
    assert outcome(tmp_path, "1") == REPRODUCED


def test_differences_count_test_samples_where_predictions_were_kept(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    path = tmp_path / "cifar10" / "evidence" / "comparisons.csv"
    compared = pd.read_csv(path)
    compared["low"] -= 0.02
    compared["high"] += 0.02
    compared.to_csv(path, index=False)
    for number in ("1", "2"):
        (judged,) = finding_on(tmp_path, number).tests
        assert (judged.outcome, judged.value.samples) == (OPEN, 10000)
    path.unlink()
    (judged,) = finding_on(tmp_path, "1").tests
    assert (judged.outcome, judged.value.samples) == (REPRODUCED, 0)


def test_one_seed_gives_no_verdict_on_differences(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"], seeds=1)
    for number in ("1", "2", "4", "12"):
        finding = finding_on(tmp_path, number)
        assert finding.outcome == UNTESTED
        assert any("three seeds" in need for need in finding.missing)


def write_septic(root: Path) -> None:
    """Write septic patients trained with the balanced loss, and the same with the printed one."""
    write_evidence(root, ["challenge2019"])
    for name in ("challenge2019-septic", "printed-loss-septic"):
        shutil.copytree(root / "challenge2019", root / name)
    shared = root / "challenge2019-septic" / "evidence" / "runs_shared.json"
    shared.write_text(shared.read_text().replace('"pair_weighting": "none"', '"pair_weighting": "balanced"'))
    names = {"clai-m": "full_unweighted", "clai-c": "cosine_unweighted"}
    change(root, "printed-loss-septic", "metrics.csv", lambda frame: frame.assign(model=frame["model"].replace(names)))


def test_sepsis_is_judged_by_septic_patients_and_the_printed_loss(tmp_path: Path) -> None:
    write_evidence(tmp_path / "whole", ["challenge2019"])
    for number in ("5", "6", "7", "8"):
        assert outcome(tmp_path / "whole", number) == UNTESTED, "the whole cohort is an option of ours"
    write_septic(tmp_path)
    worse = shift("clai-m", "ece", 0.2)
    for folder in ("challenge2019", "challenge2019-septic"):
        change(tmp_path, folder, "metrics.csv", worse)
    finding = finding_on(tmp_path, "5")
    assert (finding.outcome, finding.qualifier) == (REPRODUCED, "on a substitute")
    assert {e.outcome for e in finding.estimates if e.option in ("whole cohort", "balanced loss")} == {NOT}
    change(tmp_path, "printed-loss-septic", "metrics.csv", shift("full_unweighted", "ece", 0.2, shares="equal"))
    assert outcome(tmp_path, "5") == REPRODUCED, "equal shares are an option of ours"
    change(tmp_path, "printed-loss-septic", "metrics.csv", shift("full_unweighted", "ece", 0.2, shares="population"))
    assert outcome(tmp_path, "5") == NOT
    write_evidence(tmp_path, ["mimic-iv"])
    assert {estimate.key for estimate in finding_on(tmp_path, "5").tests} == {"mimic-iv"}


def test_a_recording_as_a_batch_decides_where_it_was_run(tmp_path: Path) -> None:
    write_septic(tmp_path)
    shutil.copytree(tmp_path / "printed-loss-septic", tmp_path / "recording-batches")
    cells = {"full_unweighted": "full_rate-quarter", "cosine_unweighted": "cosine_rate-tuned_sixteen-epochs"}
    change(
        tmp_path, "recording-batches", "metrics.csv", lambda frame: frame.assign(model=frame["model"].replace(cells))
    )
    change(tmp_path, "printed-loss-septic", "metrics.csv", shift("full_unweighted", "ece", 0.2))
    finding = finding_on(tmp_path, "5")
    assert finding.outcome == REPRODUCED
    assert {e.outcome for e in finding.estimates if e.option == "many recordings"} == {NOT}


def test_the_mixture_must_be_beaten_in_ranking_and_in_calibration_by_one_model(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["mimic-iv"])
    assert outcome(tmp_path, "7") == REPRODUCED
    assert outcome(tmp_path, "8") == REPRODUCED
    change(tmp_path, "mimic-iv", "metrics.csv", shift("clai-m", "ece", 0.2))
    assert outcome(tmp_path, "7") == REPRODUCED, "by the other kernel"
    change(tmp_path, "mimic-iv", "metrics.csv", shift("clai-c", "f1_validation", -0.2))
    finding = finding_on(tmp_path, "7")
    assert (finding.outcome, finding.parts) == (NOT, {"ranking": REPRODUCED, "calibration": REPRODUCED})
    change(tmp_path, "mimic-iv", "metrics.csv", shift("clai-c", "ece", 0.2))
    assert outcome(tmp_path, "8") == NOT


def trace(root: Path, reached: float, other: float) -> None:
    """Write alignments of a training that maximises them, of CLaI that reaches a share of their rise, and of another loss."""
    rises = {"alignment-m": 0.4, "clai-m": 0.4 * reached, "cross-entropy": other}
    rows = [
        (model, seed, epoch, "gaussian", (1 + 0.001 * seed) * rise * epoch / 5)
        for model, rise in rises.items() for seed in range(3) for epoch in range(6)
    ]  # fmt: skip
    file = root / "cifar10" / "evidence" / "alignment.csv"
    pd.DataFrame(rows, columns=COLUMNS["alignment.csv"]).to_csv(file, index=False)


@pytest.mark.parametrize(("reached", "other", "verdict"), [(0.95, 0.1, REPRODUCED), (0.8, 0.1, NOT), (0.95, 0.39, NOT)])
def test_alignment_must_rise_nearly_as_far_as_it_can_and_farther_than_with_other_losses(
    tmp_path: Path, reached: float, other: float, verdict: Outcome
) -> None:
    write_evidence(tmp_path, ["cifar10"])
    trace(tmp_path, reached, other)
    noise = np.random.default_rng(0).normal(1, 0.002, size=1000)
    change(
        tmp_path, "cifar10", "alignment.csv",
        lambda frame: frame.assign(centred_alignment=frame["centred_alignment"] * noise[: len(frame)]),
    )  # fmt: skip
    finding = finding_on(tmp_path, "9")
    assert finding.outcome == verdict
    assert finding.note == "its bound holds"
    write_theory(tmp_path / "theory" / "evidence", margin=-0.01)
    assert finding_on(tmp_path, "9").note != "its bound holds"


@pytest.mark.parametrize(
    ("agree", "of_derivation", "verdict"), [(0.995, 0.995, REPRODUCED), (0.9, 0.995, NOT), (0.995, 0.6, NOT)]
)
def test_the_parzen_rule_needs_the_algebra_and_the_decisions(
    tmp_path: Path, agree: float, of_derivation: float, verdict: Outcome
) -> None:
    write_evidence(tmp_path, ["cifar10"])
    rows = [("clai-m", seed, None, 0.1, "agreement", agree + 0.0005 * seed) for seed in range(3)]
    file = tmp_path / "cifar10" / "evidence" / "agreement.csv"
    pd.DataFrame(rows, columns=COLUMNS["agreement.csv"]).to_csv(file, index=False)

    def edit(checks: pd.DataFrame) -> None:
        for share in (0.5, 0.1):
            for rule, value in (("printed", 0.995), ("derivation", of_derivation)):
                checks.loc[checks["setting"].str.startswith(f"share={share};bandwidth=0.5;rule={rule}"), "value"] = (
                    value
                )

    change(tmp_path, "theory", "theory.csv", edit)
    assert outcome(tmp_path, "10") == verdict


def test_signals_must_converge_and_be_smooth_and_their_likeness_is_not_measured(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["mimic-iv"])
    rows = [
        (model, 0, fold, f"{quantity}_seen", value + 0.01 * fold)
        for model in ("clai-m", "clai-c") for fold in range(5)
        for quantity, value in (("area_effect", -0.8), ("roughness", 0.1))
    ]  # fmt: skip
    seen = pd.DataFrame(rows, columns=COLUMNS["latent.csv"])
    change(tmp_path, "mimic-iv", "latent.csv", lambda frame: pd.concat([frame, seen]))
    finding = finding_on(tmp_path, "11")
    assert finding.outcome == UNTESTED
    assert list(finding.parts.values()) == [REPRODUCED, REPRODUCED, UNTESTED]
    rougher = seen.assign(
        value=np.where(seen["quantity"] == "roughness_seen", 0.9 + 0.01 * seen["fold"], seen["value"])
    )
    change(
        tmp_path,
        "mimic-iv",
        "latent.csv",
        lambda frame: pd.concat([frame[~frame["quantity"].str.endswith("_seen")], rougher]),
    )
    assert outcome(tmp_path, "11") == NOT


def test_cost_is_judged_by_time_a_pass_and_memory(tmp_path: Path) -> None:
    for name, power, miniature in (("linear", 1.0, False), ("steeper", 1.5, False), ("mini", 1.0, True)):
        write_benchmark(tmp_path / name, power=power, miniature=miniature)
    assert outcome(tmp_path / "linear", "13") == REPRODUCED
    assert outcome(tmp_path / "steeper", "13") == NOT
    assert outcome(tmp_path / "mini", "13") == UNTESTED, "overheads rule the times of miniature sizes"


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, REPRODUCED), (-0.05, NOT)])
def test_the_tensor_must_be_as_accurate_at_the_best_epoch(tmp_path: Path, gain: float, verdict: Outcome) -> None:
    write_benchmark(tmp_path)
    assert outcome(tmp_path, "14") == UNTESTED
    write_studies(tmp_path)

    def edit(history: pd.DataFrame) -> pd.DataFrame:
        best = history["validation_accuracy"] + 1e-4 * history["seed"] * history["model"].str.contains("joint")
        best += gain * history["model"].str.contains("joint")
        # The last epoch, which overfits, does not count.
        best[history["epoch"] == 20] -= 0.3
        return history.assign(validation_accuracy=best + 0.05 * (history["epoch"] == 19))

    change(tmp_path, "convergence", "history.csv", edit)
    assert outcome(tmp_path, "14") == verdict
    change(tmp_path, "convergence", "history.csv", lambda frame: frame[frame["model"].str.startswith("full_joint")])
    assert outcome(tmp_path, "14") == UNTESTED, "the study is not finished"


@pytest.mark.parametrize(("gain", "verdict"), [(0.03, REPRODUCED), (0.0, NOT), (-0.03, NOT)])
def test_zero_targets_are_judged_by_what_later_turns_do_to_earlier_classes(
    gain: float, verdict: Outcome, tmp_path: Path
) -> None:
    write_studies(tmp_path, gain=gain)
    assert outcome(tmp_path, "15") == verdict


def test_zero_targets_are_not_judged_by_accuracy(tmp_path: Path) -> None:
    write_studies(tmp_path)
    for study in TURNS:
        shutil.rmtree(tmp_path / study)
    finding = finding_on(tmp_path, "15")
    assert finding.outcome == UNTESTED
    assert {estimate.role for estimate in finding.estimates} == {"option"}


def test_the_hardest_dataset_is_below_both_others(tmp_path: Path) -> None:
    datasets = ["pathmnist", "cifar10", "sleepedf-bands"]
    write_evidence(tmp_path, datasets)
    for amount, verdict in ((-0.1, REPRODUCED), (0.15, NOT)):
        for model in ("clai-m", "clai-c"):
            change(tmp_path, "sleepedf-bands", "metrics.csv", shift(model, "accuracy", amount))
        finding = finding_on(tmp_path, "16")
        assert (finding.outcome, finding.qualifier) == (verdict, "on a substitute")
    without_models(tmp_path, ["clai-c"])
    finding = finding_on(tmp_path, "16")
    assert any("runs of CLaI-C" in need for need in finding.missing)


def test_grouping_p_is_exact() -> None:
    similarity = np.zeros((10, 10))
    for group in CIFAR10_GROUPS.values():
        for a in group:
            for b in group:
                similarity[a, b] = 1.0
    assert grouping_p(similarity, CIFAR10_GROUPS["four-legged animals"]) == pytest.approx(1 / 210)
    assert grouping_p(similarity, CIFAR10_GROUPS["vehicles"]) == pytest.approx((1 + 6 + 1) / 45)  # pairs of one group
    assert grouping_p(np.zeros((10, 10)), CIFAR10_GROUPS["vehicles"]) == 1.0


def test_each_group_must_lie_together_in_every_seed(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    finding = finding_on(tmp_path, "12")
    found = dict(finding.parts)
    assert found["four-legged animals"] == REPRODUCED
    assert finding.outcome == (REPRODUCED if set(found.values()) == {REPRODUCED} else Outcome.IN_PART)

    def scatter(frame: pd.DataFrame) -> None:
        """Take two of the animals apart in one seed."""
        apart = (
            frame["class_a"].isin([3, 5]) & frame["class_b"].isin([3, 4, 5, 7]) & (frame["class_a"] != frame["class_b"])
        )
        frame.loc[apart & (frame["seed"] == 1), "similarity"] = -0.9

    change(tmp_path, "cifar10", "similarity.csv", scatter)
    assert finding_on(tmp_path, "12").parts["four-legged animals"] == NOT
    order = np.random.default_rng(0).permutation(10)
    change(
        tmp_path, "cifar10", "similarity.csv",
        lambda frame: frame.assign(**{c: order[frame[c].to_numpy()] for c in ("class_a", "class_b")}),
    )  # fmt: skip
    assert outcome(tmp_path, "12") == NOT


def test_datasets_without_runs_of_clai_are_named_and_not_judged(tmp_path: Path) -> None:
    write_evidence(tmp_path / "published", ["pathmnist", "cifar10", "sleepedf-bands", "challenge2019"], theory=False)
    without_models(tmp_path / "published", ["clai-m", "clai-c"])
    claims = judge(Evidence.found(tmp_path / "published", EXPECTED), PRINTED)
    assert {claim["outcome"] for claim in claims} == {UNTESTED, ""}
    assert "CIFAR-10: runs of a CLaI model" in claims[0]["needs"]
