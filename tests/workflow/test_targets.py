"""A plan has the runs that are left and no data that are not at hand, a table needs its evidence alone, damage is named."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from replication.report.plan import runs_left
from replication.runs.registry import OUTPUTS
from support.copies import Tree
from support.repository import REAL


@pytest.mark.slow
def test_the_plan_counts_the_runs_that_a_login_node_without_torch_plans(shared_tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('torch is not on this login node')")
    real = REAL | {"run": ["pathmnist", "challenge2019"], "run_studies": ["product-pathmnist"]}
    chosen = ["evidence=real", "run=[pathmnist,challenge2019]", "run_studies=[product-pathmnist]"]
    profile = ["--workflow-profile", "profiles/slurm", "--config", *chosen]
    said = shared_tree.run("--dry-run", "all", "evidence", *profile, before=[tmp_path])
    made = set(re.findall(r"results/real/[^ ,]+/seed[^ ,]+metrics\.csv", said))
    left = runs_left(shared_tree.path, real)
    assert {f"results/real/{run}/metrics.csv" for run in left} == made


@pytest.mark.parametrize("path", ["mimic", None])
def test_datasets_without_raw_files_at_hand_are_left_out(shared_tree: Tree, tmp_path: Path, path: str | None) -> None:
    """Also one of the raw files of another."""
    second = REAL["datasets"]["mimic-iv"] | {"raw_of": "mimic-iv", "models": ["clai-m"]}
    own = {"run": ["mimic-iv-all"], "datasets": {"mimic-iv": {"path": path}, "mimic-iv-all": second}}
    (tmp_path / "local.yaml").write_text(yaml.safe_dump(own))
    planned = shared_tree.planned("evidence", "--configfile", str(tmp_path / "local.yaml"), "--config", "evidence=real")
    assert planned.get("train_own", 0) == (second["folds"] if path else 0), "it is the user's own"


def test_one_table_needs_no_cores_and_only_its_own_evidence(tree: Tree) -> None:
    for folder in (tree.path / "results" / "published").glob("*/evidence"):
        if folder.parent.name not in OUTPUTS["table3"]["names"]:
            shutil.rmtree(folder)
    for file in (tree.path / "paper_figures").glob("table3.*"):
        file.unlink()
    assert tree.planned("paper_figures/table3.tex") == {"render_table": 1}
    tree.run("paper_figures/table3.tex")
    assert "\\begin{tabular}" in (tree.path / "paper_figures" / "table3.tex").read_text()


def test_a_rendering_that_fails_brings_tracked_files_back_and_is_still_to_be_done(tree: Tree) -> None:
    for command in (["git", "init", "-q"], ["git", "add", "paper_figures/table3.*"]):
        subprocess.run(command, cwd=tree.path, check=True)
    before = {path: path.read_bytes() for path in (tree.path / "paper_figures").glob("table3.*")}
    (tree.path / "results" / "published" / "challenge2019" / "evidence" / "metrics.csv").write_text("")
    run = tree.snakemake("paper_figures/table3.tex")
    assert run.returncode != 0, run.stdout
    end = "\n".join(run.stdout.splitlines()[-5:])
    assert "challenge2019/evidence/metrics.csv: cannot be read" in end, "the message is the last thing said"
    assert before == {path: path.read_bytes() for path in (tree.path / "paper_figures").glob("table3.*")}
    assert tree.planned("paper_figures/table3.tex") == {"render_table": 1}


def test_damaged_settings_of_matplotlib_change_no_figure(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "matplotlibrc").write_bytes(b"font.size: \xff")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "none")
    before = (tree.path / "paper_figures" / "figure4.pdf").read_bytes()
    tree.run("paper_figures/figure4.pdf", "--forcerun", "draw_figure")
    assert (tree.path / "paper_figures" / "figure4.pdf").read_bytes() == before


def test_another_working_directory_is_refused(tree: Tree, tmp_path: Path) -> None:
    run = tree.snakemake("--snakefile", str(tree.path / "Snakefile"), "--directory", str(tmp_path), "outputs", "-n")
    assert run.returncode != 0
    assert f"found the working directory {tmp_path}, expected {tree.path}" in run.stdout
