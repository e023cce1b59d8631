"""Evidence folders are read, summarised and traced as their docstrings say."""

from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.captions import caption
from replication.report.evidence import Evidence, run_model
from replication.report.labels import MINI_NOTE
from replication.report.printed_values import read_values
from support.evidence_fixture import EXPECTED, write_evidence

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    root = tmp_path_factory.mktemp("results") / "published"
    write_evidence(root, ["cifar10", "challenge2019"])
    return Evidence.found(root, EXPECTED)


def test_a_dataset_is_at_hand_exactly_if_its_folder_is_there(evidence: Evidence) -> None:
    assert evidence.at_hand() == ["cifar10", "challenge2019"]
    assert evidence.data("mimic-iv") == "not run: needs credentialed access to MIMIC-IV"
    assert evidence.data("cifar10") == "CIFAR-10 (JPEG copy)"


def test_only_datasets_that_own_a_given_file_are_read(evidence: Evidence) -> None:
    files = [str(evidence.path("challenge2019", "metrics.csv"))]
    assert Evidence.of_files(evidence.root, EXPECTED, files).at_hand() == ["challenge2019"]


def test_metrics_keep_one_decision_rule_and_models_without_rules(evidence: Evidence) -> None:
    metrics = evidence.metrics("cifar10")
    assert metrics.groupby(["model", "metric"]).size().eq(3).all()
    assert set(metrics["model"]) == {"clai-m", "clai-c", "cross-entropy"}


def test_a_missing_column_is_named_with_its_file(tmp_path: Path) -> None:
    write_evidence(tmp_path / "published", ["cifar10"])
    path = tmp_path / "published" / "cifar10" / "evidence" / "latent.csv"
    path.write_text("model,seed\n")
    evidence = Evidence.found(tmp_path / "published", EXPECTED)
    with pytest.raises(InputError, match=r"latent\.csv: columns .*'fold'.* are missing"):
        evidence.frame("cifar10", "latent.csv")


def test_a_file_that_was_not_published_reads_as_empty(evidence: Evidence) -> None:
    assert evidence.frame("cifar10", "signals.csv").empty


def test_runs_behind_a_frame_are_those_of_its_models(evidence: Evidence) -> None:
    frame = pd.DataFrame({"dataset": ["cifar10", "mimic-iv"], "model": ["clai-m", "gp"]})
    runs = evidence.runs_behind(frame)
    assert [run["run"] for run in runs] == [f"cifar10/clai-m/seed{seed}" for seed in range(3)]
    assert {run_model(run) for run in runs} == {"clai-m"}


def test_caption_names_data_seeds_hardware_and_what_was_not_run(evidence: Evidence) -> None:
    text = caption("A\n fixed   sentence.\n\nA note.\n", evidence, evidence.runs("cifar10"))
    sentences, note, basis = text.split("\n")
    assert (sentences, note) == ("A fixed sentence.", "A note.")
    assert basis.startswith("Data: CIFAR-10 (JPEG copy); Challenge 2019. Seeds: 0-2.")
    assert "Not run: PathMNIST, which needs pathmnist.npz" in text
    assert "MIMIC-IV, which needs credentialed access" in text
    assert "Hardware: 2 CPU cores." in text
    assert MINI_NOTE not in text


def test_caption_of_miniature_data_carries_its_mark(tmp_path: Path) -> None:
    write_evidence(tmp_path / "mini", ["cifar10"], miniature=True)
    evidence = Evidence.found(tmp_path / "mini", EXPECTED)
    assert caption("Fixed.", evidence, []).endswith(MINI_NOTE)
    write_evidence(tmp_path / "real", ["cifar10"], miniature=True)
    assert Evidence.found(tmp_path / "real", EXPECTED).miniature


def test_printed_values_are_unique_and_refuse_other_columns(tmp_path: Path) -> None:
    values = read_values(REPOSITORY / "workflow" / "config" / "printed_values.csv")
    assert not values.duplicated(["table", "row", "metric"]).any()
    assert set(values["unit"]) == {"per cent", "fraction", "count"}
    (tmp_path / "printed_values.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="rename them"):
        read_values(tmp_path / "printed_values.csv")
