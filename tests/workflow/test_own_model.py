"""The kernel and the baseline of docs/extending.md, in the workflow: the files that the recipes name are all that changes."""

import re
import textwrap

import pandas as pd
import pytest

from support.copies import REPOSITORY, Tree

pytestmark = pytest.mark.slow

TEXT = (REPOSITORY / "docs" / "extending.md").read_text()


def block(mark: str) -> str:
    """The one block of the page that holds the mark."""
    blocks = re.findall(r"^ *```\w+\n(.*?)```", TEXT, flags=re.DOTALL | re.MULTILINE)
    (text,) = [text for text in blocks if mark in text]
    return textwrap.dedent(text)


@pytest.fixture
def extended(tree: Tree) -> Tree:
    """A copy with the kernel, the baseline and their entries."""
    library = tree.path / "src"
    with (library / "clai" / "kernels.py").open("a") as file:
        file.write("\n\n" + block("class Laplacian"))
    (library / "replication" / "models" / "nearest_centroid.py").write_text(block("class NearestCentroid"))
    with (tree.path / "workflow" / "config" / "models.yaml").open("a") as file:
        file.write(block("clai-l:") + block("nearest-centroid:"))
    return tree


def test_a_kernel_and_a_baseline_run_by_their_recipes(extended: Tree) -> None:
    targets = [f"results/mini/cifar10/{model}/seed0/metrics.csv" for model in ("clai-l", "nearest-centroid")]
    run = extended.snakemake("--cores", "2", *targets)
    assert run.returncode == 0, run.stdout[-20000:]
    for target in targets:
        metrics = pd.read_csv(extended.path / target)
        assert metrics.loc[metrics["metric"] == "accuracy", "value"].max() > 0.25, "guessing reaches 0.1"
