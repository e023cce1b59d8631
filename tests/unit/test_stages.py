"""Table S7 shows what stages took, and says where nobody recorded it."""

import json
from pathlib import Path

import pandas as pd

from replication.report.tables.complexity import MEASURES, time_frame
from replication.runs.columns import COLUMNS
from replication.runs.resources import StageMeter, disk_mb
from support.published import copy_evidence, describe, sources_for

DESCRIPTION = {
    "files": [{"file": "a.zip", "size": 2**21, "checksum": ""}, {"file": "b.zip", "size": 2**20, "checksum": ""}],
    "arrays": {"x_train": {"dtype": "uint8", "shape": [1024, 1024], "sha256": ""},
               "y_train": {"dtype": "int64", "shape": [2**18], "sha256": ""}},
}  # fmt: skip


def stages(root: Path) -> pd.DataFrame:
    frame = time_frame(sources_for("supplement/tableS7", root))
    own = frame[(frame["dataset"] == "cifar10") & frame["stage"].notna()]
    return own.pivot_table(index="stage", columns="metric", values="mean", dropna=False)


def test_sizes_of_older_evidence_follow_from_its_data_and_the_rest_was_not_recorded(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", "cifar10")
    (root / "cifar10" / "evidence" / "resources.csv").unlink()
    describe(root, "cifar10", **DESCRIPTION)
    own = stages(root)
    assert own.loc[["download", "prepare"], "disk_mb"].tolist() == [3, 3]
    recorded = own.loc[["download", "prepare", "summarise"], ["wall_seconds", "cpu_seconds", "peak_memory_mb"]]
    assert recorded.isna().all(axis=None)


def test_measured_stages_are_shown_and_trainings_count_the_longest_and_the_largest(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", "cifar10")
    values = [["download", 5, 2, 100, 3], ["prepare", 7, 6, 300, 4], ["summarise", 1, 0.5, 90, 0.25]]
    table = pd.DataFrame(values, columns=COLUMNS["resources.csv"])
    table.to_csv(root / "cifar10" / "evidence" / "resources.csv", index=False)
    own, records = stages(root), sources_for("supplement/tableS7", root).evidence.runs("cifar10")
    measured = own.loc[["download", "prepare", "summarise"], list(MEASURES)]
    assert measured.to_numpy().tolist() == [row[1:] for row in values]
    train = own.loc["train"]
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
