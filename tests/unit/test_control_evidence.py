"""Controls stand beside the verdicts, say so where they were not run, and decide nothing."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.report.claims.finding import Estimate, Finding
from replication.report.claims.hypothesis import Outcome
from replication.report.statistics import Interval
from replication.runs.columns import COLUMNS
from support.evidence_fixture import change, finding_on, shift, write_benchmark, write_evidence, write_studies

AGREES, AGAINST = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED


def controls(finding: Finding, words: str = "") -> list[Estimate]:
    return [e for e in finding.estimates if e.role == "control" and words in f"{e.model} {e.quantity}"]


def append(root: Path, dataset: str, file: str, rows: list[tuple[object, ...]]) -> None:
    """Add rows to an evidence file, which may be new."""
    path = root / dataset / "evidence" / file
    frame = pd.DataFrame(rows, columns=COLUMNS[file])
    if path.exists():
        frame = pd.concat([pd.read_csv(path), frame])
    frame.to_csv(path, index=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_evidence(tmp_path, ["cifar10", "mimic-iv", "pathmnist", "sleepedf-bands"])
    write_studies(tmp_path)
    write_benchmark(tmp_path)
    return tmp_path


def test_a_fixed_metric_that_gains_as_much_speaks_against_the_learned_one(root: Path) -> None:
    for learned, verdict in ((0.0, AGAINST), (0.1, AGREES)):
        change(root, "ablation", "metrics.csv", shift("full_zero", "accuracy", learned))
        finding = finding_on(root, "1")
        (control, *_) = controls(finding, "full M")
        assert (control.outcome, control.target) == (verdict, "zero")
        assert finding.outcome == Outcome.REPRODUCED
    shutil.rmtree(root / "ablation")
    for number in ("1", "2", "3b"):
        assert finding_on(root, number).not_controlled


def test_a_constant_that_is_calibrated_as_well_speaks_against_the_claim(root: Path) -> None:
    before = finding_on(root, "5")
    assert controls(before) == []
    append(root, "mimic-iv", "metrics.csv", [
        ("mimic-iv", "constant", 0, fold, "", "", "ece", 0.001 + 1e-4 * fold) for fold in range(5)
    ])  # fmt: skip
    finding = finding_on(root, "5")
    assert [control.outcome for control in controls(finding)] == [AGAINST]
    assert finding.outcome == before.outcome


def test_a_grouping_of_other_embeddings_speaks_against_the_claim(root: Path) -> None:
    before = finding_on(root, "12").outcome
    animals = (3, 4, 5, 7)
    append(root, "cifar10", "similarity.csv", [
        ("inputs", 0, a, b, float(a in animals and b in animals)) for a in range(10) for b in range(10)
    ])  # fmt: skip
    finding = finding_on(root, "12")
    found = {control.part: control.outcome for control in controls(finding, "Inputs")}
    assert found == {"vehicles": AGREES, "four-legged animals": AGAINST, "blue backgrounds": AGREES}
    assert finding.outcome == before


def test_an_agreement_beyond_what_a_share_can_be_gives_no_verdict(root: Path) -> None:
    append(root, "cifar10", "agreement.csv", [
        ("clai-m", seed, None, 0.1, "agreement", value) for seed, value in enumerate((0.97, 0.999, 0.999))
    ])  # fmt: skip
    (judged,) = [e for e in finding_on(root, "10").tests if e.part == "the data's class sizes"]
    assert isinstance(judged.value, Interval)
    assert judged.value.high > 1
    assert judged.outcome == Outcome.NOT_TESTABLE
    assert np.isfinite(judged.value.mean)
