"""Verdicts follow from the evidence by their stated rules, and flip when the published evidence is changed.

Controls stand beside the verdicts, say so where they were not run, and decide nothing.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from replication.metrics.intervals import Interval, minus_printed
from replication.report.claims.computed import CIFAR10_GROUPS, grouping_p, passes_as_printed
from replication.report.claims.hypothesis import Outcome
from replication.report.claims.judge import Finding, find, judge, record
from replication.report.claims.numbers import compared
from replication.report.claims.readings import Reading, learned
from replication.report.evidence import Evidence, _read_csv, _read_description, _read_records
from replication.runs.registry import CLAI, CLAIM_TEXTS, MODELS
from replication.runs.run import COLUMNS, RUNS, read_records, write_records
from support.published import EXPECTED, VERDICTS, change, copy_evidence, describe, without_models
from support.repository import PUBLISHED

REPRODUCED, NOT, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
DEPENDS, UNTESTED = Outcome.DEPENDS, Outcome.NOT_TESTABLE


def finding_on(root: Path, number: str) -> Finding:
    """Return what a claim's judge finds in the evidence below `root`, which may have changed since it was last read."""
    _read_csv.cache_clear()
    _read_records.cache_clear()
    return find(number, Evidence.found(root, EXPECTED))


def outcome(root: Path, number: str) -> Outcome:
    return finding_on(root, number).outcome


def put(root: Path, name: str, file: str, levels: Mapping[str, float], column: str = "value", **where: object) -> None:
    """Give models levels in some rows of a file, as of runs without predictions; seeds or folds differ by a ten-thousandth."""

    def edit(frame: pd.DataFrame) -> pd.DataFrame:
        key = frame["cell"] if "cell" in frame else frame["model"]
        level = key.map(levels) * (1 + 1e-4 * frame["fold"].fillna(frame["seed"]))
        for key, wanted in where.items():
            level = level.where(frame[key] == wanted)
        return frame.assign(**{column: level.fillna(frame[column])})

    change(root, name, file, edit)
    (root / name / "evidence" / "comparisons.csv").unlink(missing_ok=True)


def controls(finding: Finding, words: str = "") -> pd.DataFrame:
    of_role = finding.numbers[finding.numbers["role"] == "control"]
    return of_role[(of_role["model"] + " " + of_role["quantity"]).str.contains(words, regex=False)]


def with_option(finding: Finding, *options: str) -> pd.DataFrame:
    return finding.numbers[finding.numbers["option"].isin(options)]


def test_datasets_without_runs_of_clai_are_named_and_not_judged(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", "pathmnist", "cifar10", "sleepedf-bands", "challenge2019")
    without_models(root, ["clai-m", "clai-c"])
    claims = judge(Evidence.found(root, EXPECTED))
    assert {claim["outcome"] for claim in claims} == {UNTESTED, ""}
    assert "CIFAR-10: runs of a CLaI model" in claims[0]["needs"]


# Samples of several classes


@pytest.mark.parametrize(("number", "metric", "better"), [("1", "accuracy", 0.52), ("2", "ece", 0.48)])
def test_the_kernels_are_compared_given_three_seeds(tmp_path: Path, number: str, metric: str, better: float) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    for level, verdict in ((better, REPRODUCED), (1 - better, NOT)):
        put(root, "cifar10", "metrics.csv", {"clai-m": level, "clai-c": 0.5}, metric=metric)
        assert outcome(root, number) == verdict
    change(root, "cifar10", "metrics.csv", lambda metrics: metrics[metrics["seed"] == 0])
    finding = finding_on(root, number)
    assert finding.outcome == UNTESTED
    assert any("three seeds" in need for need in finding.needs)


def test_a_reading_that_contradicts_the_other_is_named(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10", "product-cifar10")
    put(root, "cifar10", "metrics.csv", {"clai-m": 0.5, "clai-c": 0.55}, metric="accuracy")
    for level, verdict in ((0.5, NOT), (0.6, DEPENDS)):
        levels = {"full_product": level, "cosine_product": 0.55}
        put(root, "product-cifar10", "metrics.csv", levels, metric="accuracy")
        _read_csv.cache_clear()
        claim = judge(Evidence.found(root, EXPECTED))[0]
        assert (claim["outcome"], claim["qualifier"]) == (verdict, "where tested")
    names = {target: CLAIM_TEXTS["targets"][target]["name"] for target in ("zero", "product")}
    assert claim["readings"] == {names["zero"]: NOT, names["product"]: REPRODUCED}
    assert [one["outcome"] for one in claim["estimates"] if one["decides"]] == [NOT, REPRODUCED]


def test_a_fixed_metric_that_gains_as_much_speaks_against_the_learned_one(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10", "ablation")
    before = outcome(root, "1")
    for level, verdict in ((0.5, NOT), (0.7, REPRODUCED)):
        put(root, "ablation", "metrics.csv", {"full_zero": level, "identity_zero": 0.6}, metric="accuracy")
        finding = finding_on(root, "1")
        control = controls(finding, "CLaI-M").iloc[0]
        assert (control["outcome"], control["target"], finding.outcome) == (verdict, "zero", before)
    shutil.rmtree(root / "ablation")
    assert record(finding_on(root, "1"))["not_controlled"]


@pytest.mark.parametrize(("number", "column", "lower"), [("3a", "loss", True), ("3b", "validation_accuracy", False)])
def test_training_is_judged_by_runs_of_120_epochs_of_equal_batches(
    tmp_path: Path, number: str, column: str, lower: bool
) -> None:
    root = copy_evidence(tmp_path, "cifar10", "pathmnist")
    finding = finding_on(root, number)
    assert finding.outcome == UNTESTED, "16 epochs are an option of ours"
    if number == "3b":
        assert set(finding.numbers["name"]) == {"cifar10"}
        assert any("PathMNIST: runs of both kernels with one batch size" in need for need in finding.needs)
    copy_evidence(root, "epochs-120")
    change(root, "epochs-120", "history.csv", lambda history: history[history["cell"].str.endswith("_zero")])
    for level, verdict in ((0.4, REPRODUCED), (0.6, NOT)):
        levels = {"full_zero": level if lower else 1 - level, "cosine_zero": 0.5}
        put(root, "epochs-120", "history.csv", levels, column)
        full = {"full_zero": levels["full_zero"] * 1.001}  # so that a ratio varies between seeds
        put(root, "epochs-120", "history.csv", full, column, seed=1)
        finding = finding_on(root, number)
        assert (finding.outcome, finding.untested) == (verdict, ["product"])


def test_the_lead_is_the_mean_over_the_epochs_of_both_curves(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    rows = [("a", 0, 1, 0.2), ("a", 0, 2, 0.6), ("b", 0, 1, 0.1), ("b", 0, 2, 0.4), ("b", 0, 3, 0.9)]
    history = pd.DataFrame(rows, columns=["cell", "seed", "epoch", "validation_accuracy"])
    history.reindex(columns=COLUMNS["history.csv"]).to_csv(root / "cifar10/evidence/history.csv", index=False)
    reading = Reading("", {arm: f"cifar10/{arm}" for arm in "abc"})
    evidence = Evidence.found(root, EXPECTED)
    _read_csv.cache_clear()
    (_, lead, _), (_, none, _) = (compared(evidence, reading, "mean_accuracy", arms) for arms in ("ab", "ac"))
    assert (list(lead), len(none)) == (pytest.approx([0.15]), 0)


@pytest.mark.parametrize(
    ("accuracy", "roc_auc", "verdict"),
    [(0.8046, 0.9386, REPRODUCED), (0.8046, 0.9786, Outcome.REACHED), (0.7846, 0.9786, NOT)],
)
def test_table1_is_reproduced_or_reached(tmp_path: Path, accuracy: float, roc_auc: float, verdict: Outcome) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    for metric, value in (("accuracy", accuracy), ("roc_auc", roc_auc)):  # one model is enough
        put(root, "cifar10", "metrics.csv", {"clai-m": value, "clai-c": value - 0.1}, metric=metric)
    assert outcome(root, "4") == verdict


def test_printed_values_have_a_sampling_error_and_do_not_apply_to_a_substitute(tmp_path: Path) -> None:
    difference = minus_printed(Interval(0.83, 0.82, 0.84, 3), 0.8, 10_000)
    assert difference.mean == pytest.approx(0.03)
    assert difference.high - difference.mean == pytest.approx((0.01**2 + 1.96**2 * 0.16 / 10_000) ** 0.5, rel=1e-3)
    assert outcome(copy_evidence(tmp_path, "sleepedf-bands"), "4") == UNTESTED


def test_differences_count_test_samples_where_predictions_were_kept(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    for low, verdict in ((0.015, REPRODUCED), (-0.02, OPEN)):
        change(root, "cifar10", "comparisons.csv", lambda frame, low=low: frame.assign(value=0.02, low=low, high=0.05))
        judged = finding_on(root, "1").tests.squeeze()
        assert (judged["outcome"], judged["value"].samples) == (verdict, 10000)


def test_the_hardest_dataset_is_below_both_others(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "pathmnist", "cifar10", "sleepedf-bands")
    for level, verdict in ((0.6, REPRODUCED), (0.99, NOT)):
        put(root, "sleepedf-bands", "metrics.csv", {"clai-m": level, "clai-c": level}, metric="accuracy")
        finding = finding_on(root, "16")
        assert (finding.outcome, finding.qualifier) == (verdict, "on a substitute")
    without_models(root, ["clai-c"])
    assert any("runs of CLaI-C" in need for need in finding_on(root, "16").needs)


def test_grouping_p_is_exact() -> None:
    similarity = np.zeros((10, 10))
    for group in CIFAR10_GROUPS.values():
        similarity[np.ix_(group, group)] = 1.0
    assert grouping_p(similarity, CIFAR10_GROUPS["four-legged animals"]) == pytest.approx(1 / 210)
    assert grouping_p(similarity, CIFAR10_GROUPS["vehicles"]) == pytest.approx((1 + 6 + 1) / 45)  # pairs of one group
    assert grouping_p(np.zeros((10, 10)), CIFAR10_GROUPS["vehicles"]) == 1.0


def test_each_group_must_lie_together_in_the_mean_over_seeds_and_not_in_other_embeddings(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10")

    def together(frame: pd.DataFrame, animals: tuple[int, ...], seeds: list[int]) -> pd.DataFrame:
        """Make these classes alike in all embeddings, those of the inputs among them."""
        alike = frame["class_a"].isin(animals) & frame["class_b"].isin(animals)
        frame = frame.assign(similarity=frame["similarity"].mask(frame["seed"].isin(seeds), alike))
        inputs = frame[(frame["model"] == "clai-m") & (frame["seed"] == 0)].assign(model="inputs")
        return pd.concat([frame[frame["model"] != "inputs"], inputs])

    change(root, "cifar10", "similarity.csv", lambda frame: together(frame, (3, 4, 5, 7), [0, 1, 2, 3, 4]))
    finding = finding_on(root, "12")
    others = {"vehicles": NOT, "blue backgrounds": NOT}
    assert (finding.outcome, finding.parts) == (Outcome.IN_PART, {"four-legged animals": REPRODUCED} | others)
    of_inputs = controls(finding, "inputs").set_index("part")["outcome"].to_dict()
    assert of_inputs == {"four-legged animals": NOT, "vehicles": REPRODUCED, "blue backgrounds": REPRODUCED}
    change(root, "cifar10", "similarity.csv", lambda frame: together(frame, (3, 4, 6, 7), [0, 1, 2, 3, 4]))
    assert outcome(root, "12") == NOT
    change(root, "cifar10", "similarity.csv", lambda frame: frame[frame["seed"] < 2])
    assert outcome(root, "12") == UNTESTED


# Sepsis

MIMIC = "mimic-recording-batches"
MIXTURES = ("student-t-mixture", "student-t-mixture-m")


@pytest.fixture
def mimic(tmp_path: Path) -> Path:
    """Evidence of MIMIC-IV with a recording as a batch, where CLaI-M is the best calibrated and both kernels beat the mixture."""
    root = copy_evidence(tmp_path / "mimic", "sixteen-recordings")
    (root / "sixteen-recordings").rename(root / MIMIC)
    describe(root, MIMIC, dataset=MIMIC)
    ranks = {"clai-m": 0.81, "clai-c": 0.8} | dict.fromkeys(MIXTURES, 0.7)
    for metric in ("auroc", "auprc", "f1", "f1_validation"):
        put(root, MIMIC, "metrics.csv", ranks, metric=metric)
    put(root, MIMIC, "metrics.csv", {"clai-m": 0.1, "clai-c": 0.2} | dict.fromkeys(MIXTURES, 0.3), metric="ece")
    return root


@pytest.mark.parametrize(
    ("number", "metric", "levels"),
    [
        ("5", "ece", {"clai-m": 0.21}),
        ("6", "auroc", {"clai-m": 0.75}),  # farther below than the paper's own gap
        ("7", "auprc", {"clai-m": 0.6, "clai-c": 0.6}),
        ("7", "ece", {"clai-m": 0.4, "clai-c": 0.4}),
        ("8", "ece", {"clai-m": 0.4, "clai-c": 0.4}),
    ],
)
def test_verdicts_on_sepsis_flip_with_metrics(mimic: Path, number: str, metric: str, levels: dict[str, float]) -> None:
    assert outcome(mimic, number) == REPRODUCED
    put(mimic, MIMIC, "metrics.csv", levels, metric=metric)
    assert outcome(mimic, number) == NOT


def test_the_mixture_must_be_beaten_in_ranking_and_in_calibration_by_one_model(mimic: Path) -> None:
    put(mimic, MIMIC, "metrics.csv", {"clai-m": 0.4}, metric="ece")
    assert outcome(mimic, "7") == REPRODUCED, "by the other kernel"
    put(mimic, MIMIC, "metrics.csv", {"clai-c": 0.6}, metric="f1_validation")
    finding = finding_on(mimic, "7")
    assert (finding.outcome, set(finding.parts.values())) == (NOT, {REPRODUCED}), "each part by another kernel"


def test_an_arm_that_did_not_learn_has_no_say(mimic: Path) -> None:
    change(mimic, MIMIC, "history.csv", lambda history: history.assign(validation_auroc=np.nan))  # as of older runs
    put(mimic, MIMIC, "metrics.csv", {"clai-m": 0.54}, metric="auroc")
    finding = finding_on(mimic, "6")
    assert (finding.outcome, set(finding.tests["outcome"])) == (UNTESTED, {Outcome.NO_SAY})
    assert (
        finding.tests["reason"].str.contains("`mimic-recording-batches/clai-m` did not learn: test AUROC 0.540").all()
    )
    assert finding_on(mimic, "7").qualifier == "with CLaI-C"


def test_a_mixture_counts_beside_the_runs_alone_that_embed_for_it(mimic: Path) -> None:
    finding = finding_on(mimic, "7")
    for model in ("clai-m", "clai-c"):
        of_kernel = finding.tests[finding.tests["model"] == model]
        assert set(map(tuple, of_kernel["embeddings_of"])) == {(f"{MIMIC}/{model}",)}
        assert Outcome.NO_SAY not in set(of_kernel["outcome"])
    root = copy_evidence(mimic.parent / "open", "sixteen-recordings", "challenge2019-septic")
    change(root, "sixteen-recordings", "metrics.csv", lambda frame: frame[~frame["cell"].isin(MIXTURES)])
    runs = root / "sixteen-recordings" / "evidence" / RUNS
    write_records(runs, [record for record in read_records(runs) if "mixture" not in record["run"]])
    finding = finding_on(root, "7")
    assert set(finding.tests["outcome"]) == {Outcome.NO_SAY}, "the mixture of the other loss has other embeddings"


def test_no_verdict_rests_on_what_did_not_learn_or_is_of_no_algorithm() -> None:
    """In claims.json, by the published evidence itself: arms learned, embeddings are theirs, the paper has an algorithm."""
    tests = [one for claim in VERDICTS for one in claim["estimates"] if one["role"] == "test"]
    judged = [one for one in tests if one["outcome"] != Outcome.NO_SAY]
    assert judged
    assert [list(objections(one)) for one in judged if list(objections(one))] == []
    left_out = [one for one in tests if one["outcome"] == Outcome.NO_SAY and "did not learn" in one["reason"]]
    assert left_out, "of the published evidence"
    for one in left_out:
        assert list(objections(one)), "had it decided, this test would have failed"
    of_others = {"algorithm": "", "arms": ["recording-batches/clai-m", "recording-batches/student-t-mixture"]}
    assert list(objections(of_others)) == ["no algorithm", "embeddings of recording-batches/clai-c"]


def objections(one: Mapping[str, Any]) -> Iterator[str]:
    """Say why a number of claims.json should not decide."""
    if not one["algorithm"]:
        yield "no algorithm"
    for arm in one["arms"]:
        name, cell = arm.split("/")
        base = MODELS[cell].embeddings if cell in MODELS else None
        if base and f"{name}/{base}" not in one["arms"]:
            yield f"embeddings of {name}/{base}"
        if name != "benchmark":
            reached, least = how_far(PUBLISHED / name / "evidence", cell)
            if reached < least:
                yield f"{arm} did not learn"


def how_far(evidence: Path, cell: str) -> tuple[float, float]:
    """Return what the runs of a cell reach in the mean, and what a cell that learned does; NaN for a traced training alone."""
    history, description = pd.read_csv(evidence / "history.csv"), json.loads((evidence / "dataset.json").read_text())
    curves = history.query("cell == @cell").groupby(["seed", "fold"], dropna=False)
    if description["kind"] != "recordings":
        train, validation = (description["splits"][split]["counts"] for split in ("train", "val"))
        majority = validation[int(np.argmax(train))] / sum(validation)
        return float(curves["validation_accuracy"].max().mean()), max(2 / len(train), majority)
    reached = float(curves["validation_auroc"].max().mean())
    if not np.isnan(reached):  # as of older runs
        return reached, 0.55
    metrics = pd.read_csv(evidence / "metrics.csv").query("cell == @cell and rule in ('printed', '')")
    return float(metrics.query("metric == 'auroc' and shares == 'population'")["value"].mean()), 0.55


def test_a_constant_that_is_calibrated_as_well_speaks_against_the_claim(mimic: Path) -> None:
    put(mimic, MIMIC, "metrics.csv", {"constant": 0.01}, metric="ece")
    finding = finding_on(mimic, "5")
    assert (list(controls(finding)["outcome"]), finding.outcome) == ([NOT], REPRODUCED)


def test_signals_must_converge_and_be_smooth_and_like_the_process(mimic: Path) -> None:
    put(mimic, MIMIC, "latent.csv", dict.fromkeys(CLAI, -0.8), quantity="area_effect_seen")
    put(mimic, MIMIC, "latent.csv", {"gp": 0.5}, quantity="roughness")
    verdicts = []
    for rough, likeness in ((0.1, 0.8), (0.9, 0.8), (0.1, 0.4)):
        put(mimic, MIMIC, "latent.csv", dict.fromkeys(CLAI, rough), quantity="roughness_seen")
        put(mimic, MIMIC, "latent.csv", dict.fromkeys(CLAI, likeness), quantity="likeness")
        finding = finding_on(mimic, "11")
        verdicts.append((finding.outcome, list(finding.parts.values())))
    passed = [REPRODUCED] * 3
    assert verdicts == [(REPRODUCED, passed), (NOT, [REPRODUCED, NOT, REPRODUCED]), (NOT, [*passed[:2], NOT])]


def test_sepsis_is_judged_by_septic_patients_and_the_printed_loss_or_by_mimic_iv(mimic: Path) -> None:
    root = copy_evidence(mimic.parent / "open", "challenge2019", "challenge2019-septic")
    for number in ("5", "6", "7", "8"):
        assert outcome(root, number) == UNTESTED, "the whole cohort and the balanced loss are options of ours"
    one, many = "recording-batches", "sixteen-recordings"
    copy_evidence(root, one, many)
    for name, reached, ece in ((one, 0.5, 0.4), (many, 0.6, 0.1)):
        put(root, name, "history.csv", dict.fromkeys(CLAI, reached), "validation_auroc")
        put(root, name, "metrics.csv", {"clai-m": ece, "clai-c": 0.2} | dict.fromkeys(MIXTURES, 0.3), metric="ece")
    finding = finding_on(root, "5")
    assert (finding.outcome, finding.qualifier) == (REPRODUCED, "on a substitute")
    assert set(finding.tests["name"]) == {many}, "with a recording as a batch no kernel learned"
    assert set(with_option(finding, "one recording")["outcome"]) == {Outcome.NO_SAY}
    assert Outcome.NOT_REPRODUCED in set(with_option(finding, "balanced loss")["outcome"])
    for shares, verdict in (("equal", REPRODUCED), ("population", NOT)):  # equal shares are an option of ours
        put(root, many, "metrics.csv", {"clai-m": 0.4}, metric="ece", shares=shares)
        assert outcome(root, "5") == verdict
    put(root, one, "history.csv", dict.fromkeys(CLAI, 0.6), "validation_auroc")
    finding = finding_on(root, "5")
    assert set(finding.tests["name"]) == {one}, "a recording as a batch decides where both kernels learned"
    assert set(with_option(finding, "many recordings")["name"]) == {many}
    shutil.copytree(mimic / MIMIC, root / MIMIC)
    assert set(finding_on(root, "5").tests["name"]) == {MIMIC}


# Mathematics and cost


@pytest.mark.parametrize(("reached", "other", "verdict"), [(0.95, 0.1, REPRODUCED), (0.8, 0.1, NOT), (0.95, 0.39, NOT)])
def test_alignment_must_rise_beyond_controls(tmp_path: Path, reached: float, other: float, verdict: Outcome) -> None:
    root = copy_evidence(tmp_path, "theory", "objectives-cifar10")
    noise = np.random.default_rng(0).normal(1, 0.002, size=18)
    rises = {"alignment-m": 0.4, "full": 0.4 * reached, "cross-entropy": other}
    rows = [(m, seed, epoch, "gaussian", rises[m] * epoch) for m in rises for seed in range(3) for epoch in (0, 1)]
    frame = pd.DataFrame(rows, columns=["cell", "seed", "epoch", "kernel", "centred_alignment"])
    frame = frame.assign(alignment=frame["centred_alignment"] * noise)
    frame.to_csv(root / "objectives-cifar10" / "evidence" / "alignment.csv", index=False)
    finding = finding_on(root, "9")
    assert (finding.outcome, finding.note) == (verdict, "its bound holds")
    change(root, "theory", "theory.csv", lambda checks: checks.assign(value=-0.01))
    assert finding_on(root, "9").note != "its bound holds"


@pytest.mark.parametrize(
    ("agree", "of_derivation", "verdict"), [(0.995, 0.995, REPRODUCED), (0.9, 0.995, NOT), (0.995, 0.6, NOT)]
)
def test_the_parzen_rule_needs_the_algebra_and_the_decisions(
    tmp_path: Path, agree: float, of_derivation: float, verdict: Outcome
) -> None:
    root = copy_evidence(tmp_path, "cifar10", "theory")
    put(root, "cifar10", "agreement.csv", {"clai-m": agree}, quantity="class_agreement")
    equal = pd.DataFrame({"model": "clai-m", "seed": [0, 1], "share": 0.5, "quantity": "equal_agreement", "value": 1.0})
    change(root, "cifar10", "agreement.csv", lambda frame: pd.concat([frame, equal]))

    def edit(checks: pd.DataFrame) -> pd.DataFrame:
        return checks.assign(value=np.where(checks["rule"] == "derivation", of_derivation, 0.995))

    change(root, "theory", "theory.csv", edit)
    finding = finding_on(root, "10")
    assert finding.outcome == verdict
    parts = [REPRODUCED if of_derivation == 0.995 else NOT, REPRODUCED, REPRODUCED if agree == 0.995 else NOT]
    assert list(finding.parts.values()) == parts
    of_one_run = {"quantity": "equal_agreement", "seed": 0}
    put(root, "cifar10", "agreement.csv", {"clai-m": 0.98}, **of_one_run)
    assert list(finding_on(root, "10").parts.values())[1] == NOT, "each run counts"


def test_an_agreement_beyond_what_a_share_can_be_gives_no_verdict(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    for seed, value in enumerate((0.97, 0.999, 0.999, 0.97, 0.999)):
        put(root, "cifar10", "agreement.csv", {"clai-m": value}, quantity="class_agreement", seed=seed)
    judged = finding_on(root, "10").tests.squeeze()
    assert judged["value"].high > 1 > judged["value"].mean
    assert judged["outcome"] == UNTESTED


@pytest.mark.parametrize(
    ("power", "miniature", "verdict"), [(1.0, False, REPRODUCED), (1.5, False, NOT), (1.0, True, UNTESTED)]
)
def test_cost_is_judged_by_time_and_memory(tmp_path: Path, power: float, miniature: bool, verdict: Outcome) -> None:
    root = copy_evidence(tmp_path, "benchmark")
    describe(root, "benchmark", miniature=miniature)

    def edit(frame: pd.DataFrame) -> pd.DataFrame:
        """Let time and memory grow with a power of the passes and of the classes."""
        own = frame[frame["comparison"].eq("classes") & frame["variant"].eq("printed")]
        noise = 1 + 0.001 * own["C"] * own["repetition"] / own["C"].max()
        seconds, memory = passes_as_printed(own["M"], own["C"]) ** power * noise, own["C"] ** (power - 1) * noise
        values = seconds.where(own["quantity"] == "seconds", memory)
        return frame.assign(value=values.reindex(frame.index).fillna(frame["value"]))

    change(root, "benchmark", "benchmark.csv", edit)
    assert outcome(root, "13") == verdict


@pytest.mark.parametrize(("joint", "loop", "verdict"), [(0.501, 0.5, REPRODUCED), (0.45, 0.5, NOT), (0.45, 0.95, NOT)])
def test_the_tensor_must_be_as_accurate_at_the_best_epoch(
    tmp_path: Path, joint: float, loop: float, verdict: Outcome
) -> None:
    root = copy_evidence(tmp_path, "benchmark")
    assert outcome(root, "14") == UNTESTED
    copy_evidence(root, "convergence")
    schedules = {"joint-all-long": joint, "sequential-all-long": loop}
    levels = {f"{kernel}_{name}": level for kernel in ("cosine", "full") for name, level in schedules.items()}
    put(root, "convergence", "history.csv", levels, "validation_accuracy")
    for model in levels:  # the last epoch, which overfits, does not count
        history = pd.read_csv(root / "convergence" / "evidence" / "history.csv").query(f"cell == '{model}'")
        last = {model: 0.2 if "joint" in model else 0.49}
        put(root, "convergence", "history.csv", last, "validation_accuracy", epoch=history["epoch"].max())
    assert outcome(root, "14") == verdict
    change(root, "convergence", "history.csv", lambda frame: frame[frame["cell"].str.startswith("full_joint")])
    assert outcome(root, "14") == UNTESTED, "the study is not finished"
    copy_evidence(root, "turns-images")
    assert set(finding_on(root, "14").tests["name"]) == {"benchmark", "turns-images"}, "sleep stands in"


@pytest.mark.parametrize(("zero", "verdict"), [(-0.02, REPRODUCED), (-0.049, NOT), (-0.08, NOT)])
def test_zero_targets_are_judged_by_what_later_turns_change(tmp_path: Path, zero: float, verdict: Outcome) -> None:
    root = copy_evidence(tmp_path, "cifar10", "product-cifar10", "ablation")
    finding = finding_on(root, "15")
    assert finding.outcome == UNTESTED
    assert set(finding.numbers["role"]) == {"option"}
    copy_evidence(root, "turns-bands")
    targets = {"zero": zero, "product": -0.05}
    levels = {f"{k}_{t}_sequential-all-long": level for k in ("cosine", "full") for t, level in targets.items()}
    put(root, "turns-bands", "history.csv", levels, "turn_change")
    assert outcome(root, "15") == verdict


@pytest.mark.parametrize(
    ("levels", "counts", "enough"),
    [
        ([0.3] * 5, [1000] * 10, True),
        ([0.01] * 4 + [0.97], [1000] * 10, False),  # chance lies within the interval
        ([0.3] * 5, [9000] + [1000] * 9, False),  # naming the largest class is better
        ([0.3] * 2, [1000] * 10, True),  # two runs have no interval
    ],
)
def test_what_learned_is_above_chance_and_the_largest_class(
    tmp_path: Path, levels: list[float], counts: list[int], enough: bool
) -> None:
    root = copy_evidence(tmp_path, "cifar10")
    evidence = Evidence.found(root, EXPECTED)
    splits = evidence.description("cifar10")["splits"]
    _read_description.cache_clear()
    describe(root, "cifar10", splits=splits | {name: splits[name] | {"counts": counts} for name in ("train", "val")})
    reached = dict(enumerate(levels))
    change(root, "cifar10", "history.csv", lambda frame: frame[frame["seed"].isin(reached)])
    change(root, "cifar10", "history.csv", lambda frame: frame.assign(validation_accuracy=frame["seed"].map(reached)))
    _read_csv.cache_clear()
    found = learned(evidence, "cifar10/clai-m")
    assert found is not None
    assert found.enough == enough
