"""A run's record says what it was made with, and every number of an output leads back to its runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clailearn.errors import InputError
from replication.__main__ import main
from replication.report.provenance import records_behind, trace
from replication.runs.registry import CLAIMS
from replication.runs.run import (
    Recorder,
    RunId,
    commit,
    digest,
    read_records,
    records_of,
    write_gathered,
    write_records,
)
from support.published import PUBLISHED, copy_evidence, evidence_for
from support.repository import REPOSITORY, lay

TABLE1 = REPOSITORY / "paper_figures" / "table1.tex"
DESCRIPTION = {"files": [{"file": "raw.zip", "size": 7, "checksum": "sha256:ab"}]}


def test_what_the_workflow_writes_makes_no_run_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert commit() == ("unknown", True)
    rendered = ("paper_figures/table1.tex", "results/published/a.csv", "README.md")
    lay(tmp_path, dict.fromkeys((*rendered, "src/a.py"), b"committed"))
    for arguments in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"]):
        subprocess.run(["git", *arguments], check=True)
    lay(tmp_path, dict.fromkeys(rendered, b"rendered"))
    assert not commit()[1]
    monkeypatch.chdir("results")
    assert not commit()[1]
    Path("../src/a.py").write_text("edited", encoding="utf-8")
    assert commit()[1]


def test_record_holds_the_settings_and_what_they_hash_to(tmp_path: Path) -> None:
    settings = {"model": "clai-m", "threads": 3, "training": {"epochs": 5}}
    Recorder(RunId("cifar10", "clai-m", 1), settings, DESCRIPTION, "cpu").write(tmp_path / "run.json", iterations=12)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"] == settings
    assert record["config_hash"] == digest(record["settings"])
    assert record["data"] == {"raw.zip": "sha256:ab"}
    assert (record["threads"], record["seed"], record["fold"], record["iterations"]) == (3, 1, None, 12)
    assert record["peak_memory_mb"] > 0
    assert record["wall_seconds"] >= 0
    assert {"torch", "numpy", "snakemake", "python"} <= record["versions"].keys()
    assert len(record["commit"]) in (40, len("unknown"))


def test_a_resumed_run_counts_the_time_of_all_its_processes() -> None:
    recorder = Recorder(RunId("cifar10", "clai-m", 1), {"threads": 1}, DESCRIPTION, "cpu")
    record = recorder.finish(earlier=(1e5, 2e5))
    own = recorder.finish()
    for measure, earlier in (("wall_seconds", 1e5), ("cpu_seconds", 2e5)):
        assert own[measure] < earlier <= record[measure], measure


def test_a_run_is_a_line_and_its_evaluation_another_one(tmp_path: Path) -> None:
    runs = [RunId("cifar10", "clai-m", seed) for seed in range(3)]
    records = [Recorder(run, {"threads": 2}, DESCRIPTION, "cpu").finish() for run in runs]
    write_records(tmp_path / "runs.jsonl", reversed(records))
    assert read_records(tmp_path / "runs.jsonl") == records_of(tmp_path) == records
    write_records(tmp_path / "evaluations.jsonl", [records[1] | {"commit": "e" * 40}])
    first, second, third = records_of(tmp_path)
    assert [first, third] == [records[0], records[2]]
    assert second["evaluation"]["commit"] == "e" * 40 != second["commit"]


@pytest.mark.parametrize(
    ("splits", "samples", "title"),
    [
        ({"train": {"n": 4000}}, 1000, "Pets, 1,000 of 4,000 training samples"),
        ({"train": {"n": 4000}}, 5000, "Pets"),
        ({"all": {"n": 4000}}, 1000, "Pets"),
    ],
)
def test_a_title_names_training_samples_where_a_run_draws_them(
    tmp_path: Path, splits: Any, samples: int, title: str
) -> None:
    """From fewer no run draws, and none of recordings does."""
    (tmp_path / "prepared.json").write_text(json.dumps({"title": "Pets", "splits": splits}))
    write_gathered(tmp_path / "dataset.json", [tmp_path / "prepared.json"], study=True, samples=samples)
    assert json.loads((tmp_path / "dataset.json").read_text())["title"] == title


def published(*datasets: str) -> list[dict[str, Any]]:
    return [record for name in datasets for record in records_of(PUBLISHED / name / "evidence")]


def test_a_run_that_the_evidence_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"runs\.jsonl has no record of cifar10/gp/seed7"):
        records_behind([RunId("cifar10", "clai-m", 0), RunId("cifar10", "gp", 7)], PUBLISHED)


def test_every_number_of_a_table_is_traced_to_the_runs_of_its_dataset_and_model() -> None:
    frame = pd.read_csv(TABLE1.with_suffix(".csv"))
    traced = list(trace(frame, {}, published("pathmnist", "cifar10", "sleepedf-20", "sleepedf-bands")))
    assert sum(len(rows) for rows, _ in traced) == len(frame)
    for rows, behind in traced:
        (dataset, model), n = next(zip(rows["dataset"], rows["model"], strict=True)), rows["n"].max()
        expected = [f"{dataset}/{model}/seed{seed}" for seed in range(n)]
        assert [record["run"] for record in behind] == expected


@pytest.mark.parametrize(("other", "cells"), [({}, ["full_x"]), ({"other": "clai-c"}, ["full_x", "cosine_x"])])
def test_a_row_of_a_study_rests_on_runs_of_its_cell_and_a_difference_on_those_of_both(other: Any, cells: Any) -> None:
    row = {"dataset": "a", "study": "s", "cell": "full_x", "model": "clai-m"}
    records = [{"run": f"s/{cell}/seed0"} for cell in ("full_x", "cosine_x", "cross-entropy")]
    ((_, behind),) = trace(pd.DataFrame([row | other]), {}, [*records, {"run": "a/clai-m/seed0"}])
    assert [record["run"] for record in behind] == [f"s/{cell}/seed0" for cell in cells]


def test_a_claim_rests_on_the_runs_of_the_evidence_that_it_names() -> None:
    runs = [{"run": run} for run in ("a/clai-m/seed0", "b/gp/seed0/fold0", "theory/checks/seed0")]
    files = [["a/evidence/metrics.csv"], ["theory/evidence/theory.csv", "b/evidence/latent.csv"]]
    traced = trace(pd.DataFrame({"claim": ["one", "two"]}), {"claims": [{"files": names} for names in files]}, runs)
    assert [behind for _, behind in traced] == [runs[:1], runs[1:]]


def test_command_leads_from_a_row_to_runs_data_settings_and_versions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["dataset=cifar10", "model=clai-c", "metric=accuracy"]
    assert main(["provenance", str(TABLE1), "--row", *rows]) == 0
    text = capsys.readouterr().out
    (record,) = [record for record in published("cifar10") if record["run"] == "cifar10/clai-c/seed1"]
    (run,) = [line for line in text.splitlines() if "<- cifar10/clai-c/seed1:" in line]
    threads = f"{record['threads']} threads on {record['device']}"
    for part in (f"commit {record['commit'][:10]}", f"settings {record['config_hash']}", threads):
        assert part in run
    assert "<- cifar10/clai-m" not in text
    shown = pd.read_csv(TABLE1.with_suffix(".csv")).set_index(["dataset", "model", "metric"])
    assert f"{shown.loc[('cifar10', 'clai-c', 'accuracy'), 'mean']:.6g}" in text
    assert f"torch: {record['versions']['torch']}" in text
    with pytest.raises(SystemExit, match="1"):
        main(["provenance", str(TABLE1), "--row", "model=gp"])
    assert "found no row with {'model': 'gp'}" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="1"):
        main(["provenance", "."])
    assert "Name a table, a figure or the page of claims" in capsys.readouterr().err


def test_a_missing_column_is_named_with_its_file_and_an_unpublished_file_reads_as_empty(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", "cifar10")
    (root / "cifar10" / "evidence" / "similarity.csv").write_text("model,seed\n")
    with pytest.raises(InputError, match=r"similarity\.csv: columns .*'class_a'.* are missing"):
        evidence_for(CLAIMS, root).frame("cifar10", "similarity.csv")
    assert evidence_for(CLAIMS).frame("cifar10", "latent.csv").empty


def test_an_output_reads_no_file_that_it_does_not_name() -> None:
    with pytest.raises(InputError, match=r"similarity\.csv: outputs\.yaml does not name .* add it to its `files`"):
        evidence_for("table1").frame("cifar10", "similarity.csv")
