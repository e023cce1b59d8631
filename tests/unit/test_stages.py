"""Table S20 shows what stages took, and says where nobody recorded it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from replication.report.evidence import Evidence
from replication.report.tables.layout import Sources
from replication.report.tables.supplement_cost import MEASURES, stages_frame, stages_tex
from replication.runs.columns import COLUMNS
from replication.runs.resources import StageMeter, disk_mb
from support.evidence_fixture import EXPECTED, write_evidence

DESCRIPTION = {
    "files": [{"file": "a.zip", "size": 2**21, "checksum": ""}, {"file": "b.zip", "size": 2**20, "checksum": ""}],
    "arrays": {"x_train": {"dtype": "uint8", "shape": [1024, 1024], "sha256": ""},
               "y_train": {"dtype": "int64", "shape": [2**18], "sha256": ""}},
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Evidence of one dataset whose stages were not recorded."""
    write_evidence(tmp_path / "published", ["cifar10"])
    path = tmp_path / "published" / "cifar10" / "evidence" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | DESCRIPTION))
    return tmp_path / "published"


def sources(root: Path) -> Sources:
    nothing = pd.DataFrame()
    return Sources(Evidence.found(root, EXPECTED), nothing, nothing, nothing, {})


def test_sizes_of_older_evidence_follow_from_its_data_and_the_rest_was_not_recorded(root: Path) -> None:
    frame = stages_frame(sources(root))
    own = frame[frame["dataset"] == "cifar10"].set_index("stage")
    assert own.loc[["download", "prepare"], "disk_mb"].tolist() == [3, 3]
    assert (
        own.loc[["download", "prepare", "summarise"], ["wall_seconds", "cpu_seconds", "peak_memory_mb"]]
        .isna()
        .all(axis=None)
    )
    text = stages_tex(frame, sources(root), "Stages.")
    assert text.count("not recorded") == own[list(MEASURES)].isna().to_numpy().sum() > 0
    assert "MIMIC-IV}, \\emph{not run: needs credentialed access" in text


def test_measured_stages_are_shown_as_they_were_measured(root: Path) -> None:
    values = [["download", 5, 2, 100, 3], ["prepare", 7, 6, 300, 4], ["summarise", 1, 0.5, 90, 0.25]]
    table = pd.DataFrame(values, columns=COLUMNS["resources.csv"])
    table.to_csv(root / "cifar10" / "evidence" / "resources.csv", index=False)
    own = stages_frame(sources(root)).query("dataset == 'cifar10'").set_index("stage")
    assert own.loc[["download", "prepare", "summarise"], list(MEASURES)].to_numpy().tolist() == [
        row[1:] for row in values
    ]


def test_trainings_count_the_longest_the_sum_and_the_largest(root: Path) -> None:
    records = Evidence.found(root, EXPECTED).runs("cifar10")
    train = stages_frame(sources(root)).query("dataset == 'cifar10' and stage == 'train'").iloc[0]
    assert train["jobs"] == len(records)
    assert train["wall_seconds"] == max(record["wall_seconds"] for record in records)
    assert train["peak_memory_mb"] == max(record["peak_memory_mb"] for record in records)


def test_a_stage_measures_itself(tmp_path: Path) -> None:
    (tmp_path / "array.npy").write_bytes(bytes(2**20))
    StageMeter("prepare").write(
        str(tmp_path / "found.json"), disk_mb([tmp_path / "array.npy", tmp_path / "missing.npy"])
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["stage"], found["disk_mb"]) == ("prepare", 1.0)
    assert found["wall_seconds"] >= 0
    assert found["peak_memory_mb"] > 10
