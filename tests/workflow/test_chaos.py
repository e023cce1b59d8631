"""Whatever happens to the workflow, the same command, given again, ends with the outputs of an undisturbed run to the byte.

A failure names the seed and its accident.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.chaos import FOLDERS, KINDS, TARGET, Chaos, outcome
from support.copies import Tree

pytestmark = pytest.mark.chaos

RUN = "results/mini/cifar10/clai-c/seed0"
RESULTS = [f"{RUN}/{name}" for name in ("model.safetensors", "history.csv")]


@pytest.fixture
def disturbed(undisturbed: Tree, tmp_path: Path) -> Tree:
    """A copy of the undisturbed one, for an accident."""
    return Tree(Path(shutil.copytree(undisturbed.path, tmp_path / "copy")))


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_outputs_are_equal_to_the_byte_after_an_accident(seed: int, undisturbed: Tree, disturbed: Tree) -> None:
    chaos = Chaos(disturbed, seed)
    if chaos.draw.randrange(2):  # half of the seeds begin at the beginning
        for folder in (*FOLDERS, "logs", ".snakemake"):
            shutil.rmtree(disturbed.path / folder)
    chaos.accident()
    chaos.give_command()
    expected = outcome(undisturbed)
    # Snakemake removes what a job left before it runs it again. If that is cut short and no later job needs the files, they
    # stay away until somebody asks for them. The target has been asked for.
    if absent := sorted(expected.keys() - outcome(disturbed).keys()):
        assert TARGET not in absent, chaos
        chaos.give_command(*absent)
    found = outcome(disturbed)
    assert sorted(found) == sorted(expected), chaos
    assert [name for name in expected if found[name] != expected[name]] == [], chaos


def test_killed_workflow_asks_for_unlocking_and_resumes_from_the_checkpoint(undisturbed: Tree, disturbed: Tree) -> None:
    shutil.rmtree(disturbed.path / RUN)
    command, checkpoint = disturbed.command("--cores", "1", *RESULTS), disturbed.path / RUN / "checkpoint.pt"
    running = subprocess.Popen(command, cwd=disturbed.path, env=disturbed.environment(), start_new_session=True)
    while not checkpoint.exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (disturbed.path / RESULTS[0]).exists()

    refused = disturbed.snakemake("--cores", "1", *RESULTS)
    assert refused.returncode != 0
    assert "unlock" in refused.stdout
    assert disturbed.snakemake("--unlock").returncode == 0
    resumed = disturbed.snakemake("--cores", "1", *RESULTS)
    assert resumed.returncode == 0, resumed.stdout
    assert "resumed after" in (disturbed.path / "logs/mini/cifar10/clai-c/seed0/train_model.log").read_text()
    assert not list(checkpoint.parent.glob("*checkpoint.pt*"))
    for name in RESULTS:
        assert (disturbed.path / name).read_bytes() == (undisturbed.path / name).read_bytes(), name
