"""The recipes of docs/extending.md, in the workflow: the files that they name are all that changes."""

import json
import re
import textwrap

import numpy as np
import pandas as pd
import pytest

from support.copies import REPOSITORY, Tree

pytestmark = pytest.mark.slow

TEXT = (REPOSITORY / "docs" / "extending.md").read_text()


SMALL = """overrides:
      seeds: [0]
      embedding_size: 4
      encoder: {trunk: resnet2d, width: 4, blocks: [1]}
      training: {epochs: 1, batch_size: 8}
      inference: {validation_references: 20}"""


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


def test_a_source_is_one_module_and_one_entry_and_of_two_classes_it_has_evidence(tree: Tree) -> None:
    entry = block("digits:").replace('["0", "1", "2"]', '["0", "1"]')
    entry = entry.replace("models: [clai-m]", "models: [clai-m, cross-entropy]").replace("overrides: {}", SMALL)
    whole = f"{entry}run: [digits]\nrun_studies: []\nrun_benchmark: false\nevidence: real\n"
    (tree.path / "local.yaml").write_text(whole)
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 255, (90, 64)), columns=[f"p{i}" for i in range(64)])
    table.assign(split=np.repeat(["train", "val", "test"], 30), label=np.arange(90) % 2).to_csv(
        tree.path / "digits.csv"
    )
    target = "results/real/digits/prepared/dataset.json"
    refused = tree.snakemake(target, "--configfile", "local.yaml")
    assert "config key datasets.digits.source: 'csv_pictures' is not one of" in refused.stdout
    (tree.path / "src" / "replication" / "datasets" / "csv_pictures.py").write_text(block("Pictures as rows"))
    run = tree.snakemake(target, "--configfile", "local.yaml")
    assert run.returncode == 0, run.stdout
    info = json.loads((tree.path / target).read_text())
    assert info["splits"]["train"] == {"n": 30, "counts": [15, 15]}
    assert tree.planned(target, "--configfile", "local.yaml") == {}
    (tree.path / "digits.csv").write_text((tree.path / "digits.csv").read_text().replace(",1\n", ",0\n", 1))
    again = tree.planned(target, "--configfile", "local.yaml")
    assert again == {"fetch_source": 1, "prepare_dataset": 1}, "the same size, other labels"
    evidence, table = tree.path / "results" / "real" / "digits" / "evidence", "paper_figures/supplement/tableS10.csv"
    files = [f"{evidence.relative_to(tree.path)}/{name}" for name in ("samples.parquet", "predictions_clai-m.parquet")]
    run = tree.snakemake("--cores", "2", "--configfile", "local.yaml", "--", "evidence", table, *files)
    assert run.returncode == 0, run.stdout
    for name in ("metrics", "comparisons"):
        measured = pd.read_csv(evidence / f"{name}.csv")
        assert set(measured.loc[measured["metric"] == "accuracy", "model"]) == {"clai-m", "cross-entropy"}
    assert "accuracy" in set(pd.read_csv(tree.path / table).query("dataset == 'digits'")["metric"])


def test_a_set_of_medmnist_is_one_entry(tree: Tree) -> None:
    (tree.path / "local.yaml").write_text(block("bloodmnist:") + "run: [bloodmnist]\nevidence: real\n")
    planned = tree.planned("results/real/bloodmnist/prepared/dataset.json", "--configfile", "local.yaml")
    assert planned == {"fetch_source": 1, "prepare_dataset": 1}
