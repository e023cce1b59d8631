"""What docs/rerunning.md says: a table needs tracked evidence alone, and others' results are taken over without computing."""

import json
import os
import shutil
import time

import pytest

from replication.runs.outputs import prediction_files
from replication.runs.settings import load_settings
from support.copies import Tree

pytestmark = pytest.mark.slow

OWN = ["--config", "evidence=real", "run=[pathmnist]", "run_studies=[]", "run_benchmark=False"]
RENDERING = ("render_", "draw_")


TAKE_OVER = ["--touch", "--forceall", "evidence"]


@pytest.fixture(params=["older than the code", "younger than the code"])
def adopted(request: pytest.FixtureRequest, tree: Tree, miniature: Tree) -> Tree:
    """A fresh copy that was given somebody's evidence of a dataset and of the numerical checks, and nothing else."""
    predictions = prediction_files("results/mini", "pathmnist", load_settings(miniature.path, mini=True))
    assert miniature.snakemake("--cores", "2", *predictions).returncode == 0
    for name in ("pathmnist", "theory"):
        source = miniature.path / "results" / "mini" / name / "evidence"
        shutil.copytree(source, tree.path / "results" / "real" / name / "evidence")
        for file in (tree.path / "results" / "real" / name / "evidence").iterdir():
            age = 10 * 365 * 86400 if request.param.startswith("older") else 0
            os.utime(file, (time.time() - age,) * 2)
    return tree


def test_evidence_is_taken_over_without_computing_anything(adopted: Tree, request: pytest.FixtureRequest) -> None:
    if "older" in request.node.callspec.id:
        assert "train_model" in adopted.planned("outputs", *OWN)
    before = {file: file.read_bytes() for file in (adopted.path / "results").rglob("*") if file.is_file()}
    touched = adopted.snakemake(*TAKE_OVER, *OWN)
    assert touched.returncode == 0, touched.stdout
    assert adopted.planned("evidence", *OWN) == {}
    planned = adopted.planned("outputs", *OWN)
    assert [name for name in planned if not name.startswith(RENDERING) and name != "outputs"] == []
    assert {"render_table1", "render_claims", "draw_figure3"} <= planned.keys()
    run = adopted.snakemake("paper_figures/table1.tex", *OWN)
    assert run.returncode == 0, run.stdout
    content = json.loads((adopted.path / "paper_figures" / "table1.json").read_text())
    assert content["evidence"] == "real"
    assert content["data"] == ["PathMNIST (miniature synthetic)"]
    assert {file: file.read_bytes() for file in before} == before


def test_evidence_that_was_taken_over_follows_the_settings_from_then_on(adopted: Tree) -> None:
    assert adopted.snakemake(*TAKE_OVER, *OWN).returncode == 0
    (adopted.path / "own.yaml").write_text("training: {batch_size: 32}\n")
    assert "train_model" in adopted.planned("evidence", "--configfile", "own.yaml", *OWN)


def test_a_table_is_rendered_from_tracked_evidence_alone(tree: Tree) -> None:
    tracked = (tree.path / "paper_figures" / "table1.csv").read_bytes()
    for file in (tree.path / "paper_figures").glob("table1.*"):
        file.unlink()
    assert tree.planned("paper_figures/table1.tex") == {"render_table1": 1}
    run = tree.snakemake("paper_figures/table1.tex")
    assert run.returncode == 0, run.stdout
    assert (tree.path / "paper_figures" / "table1.csv").read_bytes() == tracked
    assert not (tree.path / "data").exists()
    assert tree.planned("paper_figures/table1.tex") == {}
