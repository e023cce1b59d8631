"""What docs/running.md says of results of another machine: they are taken over without computing."""

import json
import os
import shutil
import time

import pytest

from replication.runs.outputs import evidence_files, prediction_files
from support.copies import Tree
from support.repository import MINI

pytestmark = pytest.mark.slow

OWN = ["--config", "evidence=real", "run=[cifar10]", "run_studies=[]"]
RENDERING = ("render_", "draw_", "judge_")
TAKE_OVER = ["--touch", "--forceall", "evidence"]


def test_evidence_is_taken_over_without_computing_anything(tree: Tree, miniature: Tree) -> None:
    """A fresh copy is given somebody's evidence of a dataset and of the numerical checks, and nothing else."""
    evidence = [file for files in (evidence_files, prediction_files) for file in files("results/mini", "cifar10", MINI)]
    miniature.run("--cores", "2", *evidence)
    for name in ("cifar10", "theory"):
        source = miniature.path / "results" / "mini" / name / "evidence"
        shutil.copytree(source, tree.path / "results" / "real" / name / "evidence")
        for file in (tree.path / "results" / "real" / name / "evidence").iterdir():
            os.utime(file, (time.time() - 10 * 365 * 86400,) * 2)
    assert "train_model" in tree.planned("outputs", *OWN)
    before = {file: file.read_bytes() for file in (tree.path / "results").rglob("*") if file.is_file()}
    tree.run(*TAKE_OVER, *OWN)
    planned = tree.planned("outputs", *OWN)
    assert [name for name in planned if not name.startswith(RENDERING) and name != "outputs"] == []
    assert {"render_table", "judge_claims", "draw_figure"} <= planned.keys()
    tree.run("paper_figures/table1.tex", *OWN)
    content = json.loads((tree.path / "paper_figures" / "table1.json").read_text())
    assert content["evidence"] == "real"
    assert content["data"] == ["CIFAR-10 (miniature synthetic)"]
    assert {file: file.read_bytes() for file in before} == before
