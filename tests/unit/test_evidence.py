"""Evidence folders are read, summarised and traced as their docstrings say."""

from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.evidence import Evidence, run_model
from support.published import PUBLISHED, copy_evidence, evidence_for

EVIDENCE = evidence_for("table1")


def test_a_dataset_is_at_hand_exactly_if_its_folder_is_there_and_owns_a_file_that_is_given() -> None:
    assert EVIDENCE.at_hand() == ["pathmnist", "cifar10", "sleepedf-20", "sleepedf-bands"]
    assert EVIDENCE.data("sleepedf").startswith("not run: needs ")
    files = [str(EVIDENCE.path("cifar10", "metrics.csv"))]
    assert Evidence.of_files(PUBLISHED, EVIDENCE.expected, files).at_hand() == ["cifar10"]


def test_a_missing_column_is_named_with_its_file_and_an_unpublished_file_reads_as_empty(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", "cifar10")
    (root / "cifar10" / "evidence" / "similarity.csv").write_text("model,seed\n")
    with pytest.raises(InputError, match=r"similarity\.csv: columns .*'class_a'.* are missing"):
        evidence_for("table1", root).frame("cifar10", "similarity.csv")
    assert EVIDENCE.frame("cifar10", "signals.csv").empty


def test_runs_behind_a_frame_are_those_of_its_models() -> None:
    frame = pd.DataFrame({"dataset": ["pathmnist", "sleepedf"], "model": ["clai-m", "gp"]})
    runs = EVIDENCE.runs_behind(frame)
    assert [run["run"] for run in runs] == [f"pathmnist/clai-m/seed{seed}" for seed in range(3)]
    assert {run_model(run) for run in runs} == {"clai-m"}
