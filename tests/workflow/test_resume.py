"""Training that was killed goes on where it was, on the same data, and ends where it would have ended."""

import os
import signal
import subprocess
import time

from copies import Tree

RUN = "results/mini/cifar10/clai-m/seed0"
DATA = "results/mini/cifar10/prepared"
RESULTS = ("model.safetensors", "history.csv")


def test_killed_training_resumes_to_the_same_bytes(tree: Tree, miniature: Tree) -> None:
    assert tree.snakemake(f"{DATA}/dataset.json").returncode == 0
    for array in (miniature.path / DATA).glob("*.npy"):
        assert (tree.path / DATA / array.name).read_bytes() == array.read_bytes(), array.name
    arguments = ("--cores", "1", *(f"{RUN}/{name}" for name in RESULTS))
    checkpoint, log = tree.path / RUN / "checkpoint.pt", tree.path / "logs/mini/cifar10/clai-m/seed0/train_model.log"

    training = subprocess.Popen(
        tree.command(*arguments), cwd=tree.path, env=tree.environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(training.pid, signal.SIGKILL)
    training.wait()
    assert checkpoint.exists()
    assert not (tree.path / RUN / "model.safetensors").exists()

    refused = tree.snakemake(*arguments)
    assert refused.returncode != 0
    assert "unlock" in refused.stdout
    assert tree.snakemake("--unlock").returncode == 0
    resumed = tree.snakemake(*arguments)
    assert resumed.returncode == 0, resumed.stdout
    assert "resumed after epoch" in log.read_text()
    assert not list((tree.path / RUN).glob("checkpoint.pt*"))
    for name in RESULTS:
        assert (tree.path / RUN / name).read_bytes() == (miniature.path / RUN / name).read_bytes(), name
