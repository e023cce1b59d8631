"""A workflow that is stopped, killed or short of room goes on where it was and ends where it would have ended."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.copies import Tree, copy_of_repository

pytestmark = pytest.mark.slow

RUN = "results/mini/cifar10/clai-m/seed0"
DATA = "results/mini/cifar10/prepared"
RESULTS = ("model.safetensors", "history.csv")
ARGUMENTS = ("--cores", "1", *(f"{RUN}/{name}" for name in RESULTS))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy with the data prepared. Each test here leaves it with a training that has begun; the last one ends it."""
    tree = copy_of_repository(tmp_path_factory.mktemp("resume") / "copy")
    assert tree.snakemake(f"{DATA}/dataset.json").returncode == 0
    return tree


def checkpoint(tree: Tree) -> Path:
    return tree.path / RUN / "checkpoint.pt"


def log(tree: Tree) -> str:
    path = tree.path / "logs/mini/cifar10/clai-m/seed0/train_model.log"
    return path.read_text() if path.exists() else ""


def start(tree: Tree, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        tree.command(*arguments), cwd=tree.path, env=tree.environment(), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def wait(running: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Wait until something is so; fail if the workflow ends before."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.01)


def training(tree: Tree, *settings: str) -> subprocess.Popen[str]:
    """A workflow, with these arguments more on its command line, whose training has saved its state since it started."""
    state = checkpoint(tree)
    before = state.stat().st_mtime_ns if state.exists() else 0
    running = start(tree, *ARGUMENTS, *settings)
    wait(running, lambda: state.exists() and state.stat().st_mtime_ns != before)
    return running


def test_killed_workflow_resumes_to_the_same_bytes(tree: Tree, miniature: Tree) -> None:
    running = training(tree)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert checkpoint(tree).exists()
    assert not (tree.path / RUN / "model.safetensors").exists()

    refused = tree.snakemake(*ARGUMENTS)
    assert refused.returncode != 0
    assert "unlock" in refused.stdout
    assert tree.snakemake("--unlock").returncode == 0
    resumed = tree.snakemake(*ARGUMENTS)
    assert resumed.returncode == 0, resumed.stdout
    assert "resumed after" in log(tree)
    assert not list((tree.path / RUN).glob("*checkpoint.pt*"))
    for name in RESULTS:
        assert (tree.path / RUN / name).read_bytes() == (miniature.path / RUN / name).read_bytes(), name
