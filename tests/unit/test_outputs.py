"""The table of outputs: each output has its caption and its drawing, and rests on evidence that can be computed or is there."""

from pathlib import Path

import pytest

from replication.report.figures import render as figures
from replication.report.tables import render as tables
from replication.runs.outputs import (
    CLAIMS,
    FIGURES,
    OUTPUTS,
    OWN,
    TABLES,
    all_evidence,
    available,
    evidence_behind,
    evidence_files,
    evidence_inputs,
    own_outputs,
)
from replication.runs.settings import load_settings
from replication.runs.tuning import PREFIX
from support.repository import REAL, REPOSITORY


def test_every_output_has_a_caption_and_is_drawn() -> None:
    folder = REPOSITORY / "workflow" / "report"
    captions = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.rst")}
    own = {f"own/{output}" for outputs in OWN.values() for output in outputs}
    assert captions - {"workflow", "output"} == {*OUTPUTS, *own}
    assert set(tables.TABLES) == {*TABLES, "own/table_accuracy"}
    assert set(figures.FIGURES) == {*FIGURES, *own} - {"own/table_accuracy"}


def test_a_dataset_of_ones_own_has_outputs_of_its_own_and_a_part_in_no_other() -> None:
    entries = {"pets": dict(REAL["datasets"]["cifar10"]), "ward": dict(REAL["datasets"]["challenge2019"])}
    settings = load_settings(
        REPOSITORY, {"datasets": entries, "studies": {"breeds": REAL["studies"]["wide"] | {"dataset": "pets"}}}
    )
    assert own_outputs(REAL) == []
    own = [f"own/pets/{output}" for output in OWN["samples"]] + [f"own/ward/{output}" for output in OWN["recordings"]]
    assert own_outputs(settings) == own
    assert evidence_inputs(own[0], "results/real", settings) == evidence_files("results/real", "pets", settings)
    for output in OUTPUTS:
        assert evidence_behind(output, settings) == evidence_behind(output, REAL)


def test_evidence_depends_on_the_kind_of_data() -> None:
    assert "results/real/cifar10/evidence/similarity.csv" in evidence_files("results/real", "cifar10", REAL)
    assert "results/real/challenge2019/evidence/latent.csv" in evidence_files("results/real", "challenge2019", REAL)
    assert not any("reliability" in file for file in evidence_files("results/real", "wide", REAL))
    assert evidence_inputs("table2", "results/real", REAL) == []
    shown = {file for file in all_evidence("results/real", REAL) if not file.endswith(".parquet")}
    judged = {file for file in shown if f"/{PREFIX}" not in file}
    assert set(evidence_inputs(CLAIMS, "results/real", REAL)) == judged


def test_published_evidence_is_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results" / "published" / "mimic-iv" / "evidence"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert available("results/published", REAL) == ["mimic-iv"]
    assert evidence_inputs("table3", "results/published", REAL) == ["results/published/mimic-iv/evidence/metrics.csv"]


@pytest.mark.parametrize("dataset", ["sleepedf-20", "sleepedf-bands", "mimic-iv"])
def test_a_dataset_without_a_download_is_computed_once_it_has_a_path(dataset: str) -> None:
    entry = REAL["datasets"][dataset] | {"path": "a/copy"}
    with_path = REAL | {"datasets": REAL["datasets"] | {dataset: entry}}
    assert dataset not in available("results/real", REAL)
    assert dataset in available("results/real", with_path)
