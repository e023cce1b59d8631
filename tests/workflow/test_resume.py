"""A workflow that is killed goes on where it was, after the unlocking that it asks for, and ends where it would have ended."""

import os
import signal
import subprocess
import time

import pytest

from support.copies import Tree

pytestmark = pytest.mark.slow

RUN = "results/mini/cifar10/clai-m/seed0"
RESULTS = [f"{RUN}/{name}" for name in ("model.safetensors", "history.csv")]


def test_killed_workflow_resumes_to_the_same_bytes(tree: Tree, miniature: Tree) -> None:
    assert tree.snakemake("results/mini/cifar10/prepared/dataset.json").returncode == 0
    command, checkpoint = tree.command("--cores", "1", *RESULTS), tree.path / RUN / "checkpoint.pt"
    running = subprocess.Popen(command, cwd=tree.path, env=tree.environment(), start_new_session=True)
    while not checkpoint.exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (tree.path / RESULTS[0]).exists()

    refused = tree.snakemake("--cores", "1", *RESULTS)
    assert refused.returncode != 0
    assert "unlock" in refused.stdout
    assert tree.snakemake("--unlock").returncode == 0
    resumed = tree.snakemake("--cores", "1", *RESULTS)
    assert resumed.returncode == 0, resumed.stdout
    assert "resumed after" in (tree.path / "logs/mini/cifar10/clai-m/seed0/train_model.log").read_text()
    assert not list(checkpoint.parent.glob("*checkpoint.pt*"))
    for name in RESULTS:
        assert (tree.path / name).read_bytes() == (miniature.path / name).read_bytes(), name
