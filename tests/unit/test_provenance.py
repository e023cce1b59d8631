"""A run's record says what it was made with, and every number of an output leads back to its runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clai.errors import InputError
from clai.report.cli import main, trace
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.publication import publish
from clai.report.sidecars import csv_text, sidecar
from clai.report.tables.choices import read_choices
from clai.report.tables.parts import Sources
from clai.report.tables.render import render
from clai.runs.record import Recorder, commit, digest, with_evaluation
from support.evidence_fixture import EXPECTED, write_evidence

WORKFLOW = Path(__file__).parents[2] / "workflow"


@pytest.fixture(scope="module")
def table1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table 1 of a folder with evidence for CIFAR-10 and none for PathMNIST."""
    folder = tmp_path_factory.mktemp("outputs")
    write_evidence(folder / "published", ["cifar10"])
    evidence = Evidence.found(folder / "published", {key: EXPECTED[key] for key in ("pathmnist", "cifar10")})
    values, choices = (
        read_printed_values(WORKFLOW / "config" / "printed_values.csv"),
        read_choices(WORKFLOW / "config" / "choices.csv"),
    )
    table = render("table1", Sources(evidence, values, choices, {}), "Results.")
    path = folder / "table1.tex"
    path.write_text(table.tex)
    path.with_suffix(".csv").write_text(csv_text(table.frame))
    path.with_suffix(".json").write_text(sidecar(table.caption, evidence, table.runs))
    return path


def test_what_the_workflow_writes_makes_no_run_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert commit() == ("unknown", True)
    files = [Path(name) for name in ("paper_figures/table1.tex", "results/published/a.csv", "README.md", "src/a.py")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("committed")
    for arguments in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"]):
        subprocess.run(["git", *arguments], check=True)
    for file in files[:3]:
        file.write_text("rendered")
    assert not commit()[1]
    monkeypatch.chdir("results")
    assert not commit()[1]
    Path("../src/a.py").write_text("edited")
    assert commit()[1]


def test_record_holds_the_settings_and_what_they_hash_to(tmp_path: Path) -> None:
    settings = {"threads": 3, "training": {"epochs": 5}}
    description = {"files": [{"file": "raw.zip", "size": 7, "checksum": "sha256:ab"}]}
    Recorder("cifar10/clai-m/seed1", settings, description, 1, None, "cpu").write(tmp_path / "run.json", pairs=12)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"] == settings
    assert record["config_hash"] == digest(settings)
    assert record["data"] == {"raw.zip": "sha256:ab"}
    assert (record["threads"], record["seed"], record["fold"], record["pairs"]) == (3, 1, None, 12)
    assert record["peak_memory_mb"] > 0
    assert record["wall_seconds"] >= 0
    assert {"torch", "numpy", "snakemake", "python"} <= record["versions"].keys()
    assert len(record["commit"]) in (40, len("unknown"))


def test_settings_that_runs_have_in_common_stand_once_beside_an_output(table1: Path) -> None:
    content = json.loads(table1.with_suffix(".json").read_text())
    assert len(content["runs"]) == 9
    assert not any("settings" in run for run in content["runs"])
    assert content["settings"] == {"c" * 16: {"threads": 2, "training": {"epochs": 5}}}


def evaluated(dirty: bool = False) -> dict[str, Any]:
    """A record of a training with that of its evaluation."""
    settings = {"threads": 2, "training": {"epochs": 5}}
    description: dict[str, Any] = {"files": []}
    of_training = Recorder("cifar10/clai-m/seed1", settings, description, 1, None, "cpu").finish()
    of_evaluation = Recorder(
        "cifar10/clai-m/seed1", settings | {"evaluation": {"ece_bins": 15}}, description, 1, None, "cpu"
    )
    return with_evaluation(
        of_training | {"dirty": False}, of_evaluation.finish() | {"dirty": dirty, "commit": "e" * 40}
    )


def test_evaluation_stands_in_the_record_with_what_it_does_not_share() -> None:
    record = evaluated()
    assert record["evaluation"]["settings"] == {"evaluation": {"ece_bins": 15}}
    whole = record["settings"] | record["evaluation"]["settings"]
    assert digest(whole) == record["evaluation"]["config_hash"] != record["config_hash"]
    evidence = Evidence(Path("published"), {}, frozenset())
    content = json.loads(sidecar("Text.", evidence, [record]))
    assert content["settings"] == {
        record["config_hash"]: record["settings"], record["evaluation"]["config_hash"]: whole,
    }  # fmt: skip
    assert "settings" not in content["runs"][0]["evaluation"]


def test_a_run_evaluated_with_uncommitted_changes_is_not_published(tmp_path: Path) -> None:
    file = tmp_path / "real" / "cifar10" / "evidence" / "runs.json"
    file.parent.mkdir(parents=True)
    for dirty in (False, True):
        file.write_text(json.dumps([evaluated(dirty)]))
        if dirty:
            with pytest.raises(InputError, match="uncommitted changes on eeee"):
                publish([file], tmp_path / "real", tmp_path / "published")
        else:
            assert publish([file], tmp_path / "real", tmp_path / "published") == ["cifar10/evidence/runs.json"]


def test_every_number_of_a_table_is_traced_to_the_runs_of_its_dataset_and_model(table1: Path) -> None:
    frame, runs = pd.read_csv(table1.with_suffix(".csv")), json.loads(table1.with_suffix(".json").read_text())["runs"]
    traced = trace(frame, runs)
    assert sum(len(group.rows) for group in traced) == len(frame)
    for rows, behind, _ in traced:
        (dataset, model), n = next(zip(rows["dataset"], rows["model"], strict=True)), rows["n"].max()
        own = [] if model == "majority-class" else [f"{dataset}/{model}/seed{seed}" for seed in range(n)]
        assert [run["run"] for run in behind] == own


def test_seeds_and_folds_narrow_the_runs_down() -> None:
    runs = [{"run": f"a/gp/seed0/fold{fold}", "seed": 0, "fold": fold} for fold in range(3)]
    frame = pd.DataFrame({"dataset": "a", "model": "gp", "seed": 0, "fold": [2, 0, 0], "value": 1.0})
    assert [[run["fold"] for run in group.runs] for group in trace(frame, runs)] == [[2], [0]]


def test_outputs_without_datasets_rest_on_all_their_runs() -> None:
    runs = [{"run": "a/gp/seed0", "seed": 0, "fold": None}]
    assert [group.runs for group in trace(pd.DataFrame({"setting": ["one", "two"]}), runs)] == [runs]


def test_a_claim_rests_on_the_runs_of_the_evidence_that_it_names() -> None:
    runs = [{"run": run} for run in ("a/clai-m/seed0", "a/clai-c/seed0", "b/gp/seed0/fold0", "theory/checks/seed0")]
    files = [
        "a/evidence/metrics.csv",
        "theory/evidence/theory.csv; b/evidence/latent.csv",
        "old/evidence/theory.csv",
        None,
    ]
    frame = pd.DataFrame({"claim": ["one", "two", "three", "four"], "files": files})
    traced = trace(frame, runs)
    assert [list(group.rows["claim"]) for group in traced] == [["one"], ["two"], ["three"], ["four"]]
    assert [group.runs for group in traced] == [runs[:2], runs[2:], [], []]
    assert [list(group.unrecorded) for group in traced] == [[], [], ["old/evidence/theory.csv"], []]


def test_command_names_the_files_of_a_claim_that_have_no_record(
    table1: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["published/cifar10/evidence/metrics.csv; published/theory/evidence/theory.csv", ""]
    pd.DataFrame({"id": [1, 2], "claim": ["one", "two"], "files": files}).to_csv(tmp_path / "claims.csv", index=False)
    (tmp_path / "claims.json").write_text(table1.with_suffix(".json").read_text())
    assert main(["provenance", str(tmp_path / "claims.md")]) == 0
    first, second = capsys.readouterr().out.split("\n\n")[1:3]
    assert first.count("<- cifar10/") == 9
    assert "<- published/theory/evidence/theory.csv: no record of a run" in first
    assert "<-" not in second
    assert "not run" in second


def test_command_prints_numbers_runs_data_settings_and_versions(
    table1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["provenance", str(table1)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    (run,) = [line for line in lines if "<- cifar10/clai-c/seed1:" in line]
    for part in ("commit 0000000000", f"settings {'c' * 16}", "seed 1", "2 threads on cpu", "1,500 MiB", "1e+09 pairs"):
        assert part in run
    accuracy = pd.read_csv(table1.with_suffix(".csv")).set_index(["dataset", "model", "metric"])["mean"]
    assert f"{accuracy['cifar10', 'clai-c', 'accuracy']:.6g}" in text
    assert "not run: needs pathmnist.npz" in text
    assert 'cifar10_images.zip: "sha256:abab' in text
    assert '"epochs": 5' in text
    assert '    torch: "2"' in lines


def test_what_has_no_csv_and_json_beside_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["provenance", str(tmp_path / "table9.tex")])
    assert stopped.value.code == 1
    assert "table9.csv is missing" in capsys.readouterr().err
