"""Trainings as jobs of a real Slurm with two nodes, through the profile as it stands: one runs to the end, one is
cancelled, one loses its node."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from support.copies import Tree, copy_of_repository, repeatable
from support.slurm_cluster import GPU_NODE, Cluster, Job, cluster, missing

FINISHED, CANCELLED, ORPHANED = "cifar10/clai-c/seed0", "cifar10/clai-m/seed0", "breastmnist/clai-m/seed0"
# Nothing of the profile is changed but how long Snakemake waits between questions: here is no queue to wait in.
HERE = ["--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "3"]
STARTS_SECONDS = 180  # of a job beyond its record

Submitted = tuple[Tree, Cluster]
"""A tree in which trainings ran on the cluster."""


def rule_of(run: str) -> str:
    """How the executor names the training of a run to Slurm."""
    return f"rule_mini_{training_of(run)}_wildcards_{run.replace('/', '_')}"


def training_of(run: str) -> str:
    """The rule that trains it: that of a user's own dataset evaluates it, too."""
    return "train_own" if run.startswith("breastmnist/") else "train_model"


def files_of(run: str) -> list[str]:
    return [f"results/mini/{run}/{name}" for name in ("model.safetensors", "history.csv", "run.json")]


def held(tree: Tree, running: Cluster, run: str) -> Job:
    """The job of a run, stopped in its work once it has a checkpoint."""
    checkpoint = tree.path / "results/mini" / run / "checkpoint.pt"
    running.wait(checkpoint.exists, 600)
    job = running.of(rule_of(run))[-1]
    for process in running.processes(job):
        os.kill(process, signal.SIGSTOP)
    return job


def submit(tree: Tree, running: Cluster, targets: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        tree.command(*HERE, "--", *targets), cwd=tree.path, env=tree.environment() | running.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submitted]:
    """Two trainings through the profile; one of them is cancelled by somebody on the way."""
    if reason := missing():
        pytest.skip(f"no Slurm here: {reason}")
    tree = copy_of_repository(tmp_path_factory.mktemp("slurm") / "copy")
    with tempfile.TemporaryDirectory(prefix="slurm") as folder, cluster(Path(folder), cpus=4, gpus=3) as running:

        def cancel() -> None:
            running.command("scancel", held(tree, running, CANCELLED).number)

        snakemake = submit(tree, running, files_of(FINISHED) + files_of(CANCELLED))
        somebody = threading.Thread(target=cancel, daemon=True)
        somebody.start()
        said, _ = snakemake.communicate()
        assert snakemake.returncode == 0, said[-20000:]
        somebody.join(1)
        assert not somebody.is_alive()
        yield tree, running


def assert_same_training(tree: Tree, other: Tree, run: str) -> None:
    folder = Path("results/mini") / run
    assert not (tree.path / folder / "checkpoint.pt").exists()
    for name in ("model.safetensors", "history.csv"):
        here, there = (repeatable(one, [one.path / folder / name]) for one in (tree, other))
        assert here == there, name


def log_of(tree: Tree, run: str) -> str:
    """What the last attempt said."""
    return (tree.path / "logs/mini" / run / f"{training_of(run)}.log").read_text()


@pytest.mark.slow
def test_a_training_runs_to_its_end_on_the_node_with_gpus(submitted: Submitted, miniature: Tree) -> None:
    tree, running = submitted
    (job,) = running.of(rule_of(FINISHED))
    assert (job.state, job.node, job.gpus) == ("COMPLETED", GPU_NODE, "gres:gpu:1")
    assert (job.memory, job.limit) == ("4000M", "30:00")
    record = json.loads((tree.path / "results/mini" / FINISHED / "run.json").read_text())
    elapsed = datetime.fromisoformat(job.end) - datetime.fromisoformat(job.begin)
    assert -1 <= elapsed.total_seconds() - record["wall_seconds"] <= STARTS_SECONDS
    assert_same_training(tree, miniature, FINISHED)


@pytest.mark.slow
def test_a_cancelled_training_is_retried_with_more_and_resumes(submitted: Submitted, miniature: Tree) -> None:
    tree, running = submitted
    first, second = running.of(rule_of(CANCELLED))
    assert (first.state, second.state) == ("CANCELLED", "COMPLETED")
    assert (second.memory, second.limit) == ("8000M", "1:00:00")
    assert "resumed after" in log_of(tree, CANCELLED)
    assert_same_training(tree, miniature, CANCELLED)


@pytest.mark.slow
def test_node_that_dies_in_the_middle_of_a_training_is_survived(submitted: Submitted, miniature: Tree) -> None:
    tree, running = submitted
    snakemake = submit(tree, running, files_of(ORPHANED))
    job = held(tree, running, ORPHANED)
    running.kill(GPU_NODE)
    running.wait(lambda: running.state(GPU_NODE).startswith("down"), 120)
    running.power_on(GPU_NODE)
    said, _ = snakemake.communicate()
    assert snakemake.returncode == 0, said[-20000:]
    first, *again = (one for one in running.jobs() if int(one.number) >= int(job.number))
    last = again[-1] if again else first
    # Slurm puts the job back into the queue, or the step reports its end first and Snakemake submits another.
    assert (last.state, last.node, bool(again) or int(last.restarts) > 0) == ("COMPLETED", GPU_NODE, True)
    assert "resumed after" in log_of(tree, ORPHANED)
    assert_same_training(tree, miniature, ORPHANED)
