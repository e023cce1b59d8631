"""Controls stand beside the verdicts, say so where they were not run, and decide nothing."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.report.claims.finding import Finding
from replication.report.claims.hypothesis import Outcome
from replication.report.claims.judge import CLAIMS
from replication.report.evidence import Evidence
from replication.report.printed_values import read_values
from replication.report.statistics import Interval
from replication.runs.columns import COLUMNS
from support.evidence_fixture import EXPECTED, STUDIES, write_benchmark, write_evidence, write_studies

REPOSITORY = Path(__file__).parents[2]
PAPER = read_values(REPOSITORY / "workflow" / "config" / "printed_values.csv")
CONTROLLED = ("9", "10", "11", "12", "14")
DATASETS = ["cifar10", "challenge2019"]


def evidence_below(root: Path) -> Evidence:
    return Evidence.found(root, EXPECTED | STUDIES | {"convergence": {"title": "Band powers", "needs": "them"}})


def finding_on(root: Path, number: str) -> Finding:
    return next(claim for claim in CLAIMS if claim.number == number).judge(evidence_below(root), PAPER)


def append(root: Path, dataset: str, file: str, rows: list[tuple[object, ...]]) -> None:
    """Add rows to an evidence file, which may be new."""
    path = root / dataset / "evidence" / file
    frame = pd.DataFrame(rows, columns=COLUMNS[file])
    if path.exists():
        frame = pd.concat([pd.read_csv(path), frame])
    frame.to_csv(path, index=False)


def write_controls(root: Path) -> None:
    """Write controls in which other embeddings do what CLaI's does, and more of it."""
    append(root, "cifar10", "alignment.csv", [
        (model, seed, epoch, "cosine", 0.1 * epoch, 0.2 * epoch + 0.01 * seed, 0.3)
        for model in ("clai-c", "cross-entropy") for seed in (0, 1, 2) for epoch in (0, 1, 2)
    ])  # fmt: skip
    append(root, "cifar10", "agreement.csv", [
        ("clai-m", seed, None, share, quantity, value)
        for seed in (0, 1, 2)
        for share, quantity, value in (
            (0.1, "agreement", 0.6), (0.2, "agreement", 0.8), (0.1, "kde_error", 0.0), (np.nan, "class_agreement", 0.95),
        )
    ])  # fmt: skip
    append(root, "challenge2019", "latent.csv", [
        (model, 0, fold, f"{quantity}_{form}", 0.3 + 0.01 * fold)
        for model in ("clai-m", "clai-c", "cross-entropy") for fold in range(5)
        for quantity in ("area_effect", "roughness") for form in ("seen", "unit")
    ])  # fmt: skip
    append(
        root, "cifar10", "similarity.csv", [("inputs", 0, a, b, float(a == b)) for a in range(10) for b in range(10)]
    )


def written(root: Path) -> Path:
    write_evidence(root, DATASETS)
    write_studies(root)
    write_benchmark(root)
    return root


def test_without_controls_each_claim_that_has_one_says_so(tmp_path: Path) -> None:
    root = written(tmp_path)
    for number in CONTROLLED:
        finding = finding_on(root, number)
        assert not finding.controls
        assert len(finding.not_controlled) == 1, number


def test_controls_are_shown_and_change_no_verdict(tmp_path: Path) -> None:
    without, root = written(tmp_path / "without"), written(tmp_path / "with")
    before = {number: finding_on(without, number).verdict for number in CONTROLLED}
    write_controls(root)
    findings = {number: finding_on(root, number) for number in CONTROLLED}
    assert {number: finding.verdict for number, finding in findings.items()} == before
    assert [number for number, finding in findings.items() if finding.not_controlled] == ["14"]
    value = {part.quantity: part.value for part in findings["9"].controls}
    rise = value["Cross-entropy, cosine kernel: rise of the centred alignment from the untrained network"]
    assert isinstance(rise, Interval)
    assert (rise.mean, rise.n) == (pytest.approx(0.4), 3)
    lowest = next(part.value for part in findings["10"].controls if "0.1 to 0.2: lowest" in part.quantity)
    assert isinstance(lowest, Interval)
    assert lowest.mean == pytest.approx(0.6)
    effects = [part.quantity for part in findings["11"].controls if "effect size" in part.quantity]
    seen, unit = "as the kernel sees them", "on unit vectors"
    forms = (("CLaI-M", seen), ("CLaI-M", unit), ("CLaI-C", seen), ("Cross-entropy", seen))
    assert effects == [f"{model}, {form}: effect size of the area" for model, form in forms]
    # All pairs of different classes are alike, so that any assignment is as good.
    p = next(
        part.value for part in findings["12"].controls if part.quantity.startswith("Inputs of the encoder, one seed: p")
    )
    assert p == 1


def test_signals_of_cross_entropy_that_converge_speak_against_the_claim(tmp_path: Path) -> None:
    root = written(tmp_path)
    append(root, "challenge2019", "latent.csv", [
        (model, 0, fold, "area_effect_seen", -0.5 + 0.01 * fold) for model in ("clai-c", "cross-entropy") for fold in range(5)
    ])  # fmt: skip
    outcomes = [part.outcome for part in finding_on(root, "11").controls]
    assert outcomes == [Outcome.REPRODUCED, Outcome.NOT_REPRODUCED]


def test_a_cohort_without_the_control_of_signals_is_named(tmp_path: Path) -> None:
    root = written(tmp_path)
    shutil.copytree(root / "challenge2019", root / "challenge2019-septic")
    path = root / "challenge2019-septic" / "evidence" / "dataset.json"
    path.write_text(path.read_text().replace("Challenge 2019", "Septic records"))
    write_controls(root)
    finding = finding_on(root, "11")
    assert finding.controls
    assert [name.rpartition(", on ")[2] for name in finding.not_controlled] == [
        "Septic records, study challenge2019-septic"
    ]


def test_schedules_to_convergence_are_compared_by_kernel(tmp_path: Path) -> None:
    root = written(tmp_path)
    folder = root / "convergence" / "evidence"
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_bytes((root / "cifar10" / "evidence" / "dataset.json").read_bytes())
    append(root, "convergence", "metrics.csv", [
        ("convergence", f"full_{schedule}", seed, None, "printed", "population", "accuracy", accuracy + 0.01 * seed)
        for schedule, accuracy in {"sequential-all-long": 0.7, "joint-all-long": 0.6, "joint-1-long": 0.72}.items()
        for seed in (0, 1, 2)
    ])  # fmt: skip
    finding = finding_on(root, "14")
    gains = [part.value.mean for part in finding.controls if isinstance(part.value, Interval)]
    assert gains == pytest.approx([-0.1, 0.02])
    assert [part.outcome for part in finding.controls] == [Outcome.NOT_REPRODUCED, None], "the test has all references"
    assert not finding.not_controlled


def test_the_interval_of_a_share_ends_where_shares_end(tmp_path: Path) -> None:
    root = written(tmp_path)
    append(root, "cifar10", "agreement.csv", [
        ("clai-m", seed, None, 0.1, quantity, value)
        for seed, lowest in ((0, 0.7), (1, 0.9)) for quantity, value in (("agreement", lowest), ("kde_error", 0.0))
    ])  # fmt: skip
    (lowest,) = (part.value for part in finding_on(root, "10").controls if "lowest agreement" in part.quantity)
    assert isinstance(lowest, Interval)
    assert (lowest.mean, lowest.low, lowest.high) == (pytest.approx(0.8), 0.0, 1.0)
