"""The crate can be read back: a workflow, an action for each run with its data and settings, and one for each output."""

import json
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from replication.report.crate import PROFILES, build
from replication.runs.record import write_records

RUN = {
    "run": "cifar10/clai-m/seed0", "seed": 0, "fold": None, "device": "cpu", "hardware": "2 cores", "threads": 2, "dirty": False,
    "wall_seconds": 1.5, "peak_memory_mb": 9, "pairs": 7, "commit": "f" * 40, "command": "snakemake x",
    "settings": {"threads": 2}, "data": {"raw.zip": "sha256:12"}, "versions": {"torch": "2"},
}  # fmt: skip
WITHHELD = "results/published/mimic-iv/evidence/signals.csv"


@pytest.fixture
def crate(tmp_path: Path) -> ROCrate:
    """A crate of two runs and two tables that was written and read back; one table rests on no run, and on a file withheld."""
    records = [RUN, RUN | {"run": "cifar10/clai-m/seed1", "seed": 1}]
    files = {
        "Snakefile": "rule all:", "config.yaml": "a: 1",
        "results/published/cifar10/evidence/metrics.csv": "model,value\n",
        "results/published/cifar10/evidence/runs.jsonl": "", "results/published/cifar10/evidence/runs_shared.json": "",
        "paper_figures/table1.csv": "a\n", "paper_figures/table1.json": json.dumps({"caption": "Results."}),
        "paper_figures/tableS2.json": json.dumps({"caption": "Sizes."}),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_records(tmp_path / "results/published/cifar10/evidence", records)
    code, evidence = list(files)[:2], {"cifar10": list(files)[2:5]}
    outputs = {name: [file for file in files if f"/{name}." in file] for name in ("table1", "tableS2")}
    behind = {"table1": list(files)[2:5], "tableS2": [list(files)[3], WITHHELD]}
    build(tmp_path, "What it is.", code, evidence, outputs, behind).write_zip(tmp_path / "crate.zip")
    return ROCrate(tmp_path / "crate.zip")


def test_workflow_is_the_main_entity_and_the_profiles_are_named(crate: ROCrate) -> None:
    assert crate.mainEntity.id == "Snakefile"
    assert "ComputationalWorkflow" in crate.mainEntity.type
    assert crate.mainEntity["programmingLanguage"]["name"] == "Snakemake"
    assert {entity.id for entity in crate.root_dataset["conformsTo"]} >= set(PROFILES)


def test_every_run_is_an_action_with_data_settings_seed_and_commit(crate: ROCrate) -> None:
    for seed in (0, 1):
        action = crate.get(f"#cifar10/clai-m/seed{seed}")
        assert action.type == "CreateAction"
        assert action["instrument"] == crate.mainEntity
        values = {entity["name"]: entity.get("value") for entity in action["object"]}
        assert values["seed"] == seed
        assert values["commit"] == "f" * 40
        assert json.loads(values["settings"]) == {"threads": 2}
        assert [entity["identifier"] for entity in action["object"] if entity["name"] == "raw.zip"] == ["sha256:12"]
        assert "results/published/cifar10/evidence/metrics.csv" in [entity.id for entity in action["result"]]
    assert len(crate.root_dataset["mentions"]) == 4


def test_every_output_is_traced_to_the_evidence_behind_it(crate: ROCrate) -> None:
    action = crate.get("#render-table1")
    assert {entity.id for entity in action["object"]} == {
        "results/published/cifar10/evidence/metrics.csv", "results/published/cifar10/evidence/runs.jsonl",
        "results/published/cifar10/evidence/runs_shared.json",
    }  # fmt: skip
    assert [entity.id for entity in action["result"]] == ["paper_figures/table1.csv", "paper_figures/table1.json"]
    assert crate.get("paper_figures/table1.csv")["description"] == "Results."


def test_an_output_without_runs_is_traced_too_and_what_is_withheld_stays_out(crate: ROCrate) -> None:
    assert [entity.id for entity in crate.get("#render-tableS2")["object"]] == [
        "results/published/cifar10/evidence/runs.jsonl"
    ]
    assert crate.get(WITHHELD) is None
