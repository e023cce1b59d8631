"""The recipes of docs/own-data.md and docs/extending.md, in the workflow: the files that they name are all that changes."""

import json
import re
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from support.copies import Tree
from support.repository import REPOSITORY

pytestmark = pytest.mark.slow

TEXT = "\n".join((REPOSITORY / "docs" / name).read_text() for name in ("own-data.md", "extending.md"))
CODE = {
    "class Laplacian": "clailearn/kernels.py",
    "class NearestCentroid": "replication/models/nearest_centroid.py",
    "Pictures as rows": "replication/datasets/csv_pictures.py",
}
"""The file in src that the page gives each block of code; to one that is there the block is appended."""


def block(mark: str) -> str:
    """The one block of the page that holds the mark."""
    blocks = re.findall(r"^ *```\w+\n(.*?)```", TEXT, flags=re.DOTALL | re.MULTILINE)
    (text,) = [text for text in blocks if mark in text]
    return textwrap.dedent(text)


def write_code(tree: Tree, *marks: str) -> list[str]:
    """Write the code that holds these marks where the page says; return the files."""
    files = [f"src/{CODE[mark]}" for mark in marks]
    for file, mark in zip(files, marks, strict=True):
        path = tree.path / file
        path.write_text(path.read_text() + "\n\n" + block(mark) if path.exists() else block(mark))
    return files


def add_models(tree: Tree) -> None:
    """The models of the recipes: their code and their entries."""
    write_code(tree, "class Laplacian", "class NearestCentroid")
    with (tree.path / "workflow" / "config" / "models.yaml").open("a") as file:
        file.write(block("clai-l:") + block("nearest-centroid:"))


def test_code_of_the_recipes_passes_the_linters(tree: Tree) -> None:
    files = write_code(tree, *CODE)
    mypy = ["mypy", "--cache-dir", str(REPOSITORY / ".mypy_cache")]  # the libraries' types take half a minute to read
    for linter in (["ruff", "check"], ["ruff", "format", "--check"], mypy):
        run = subprocess.run(
            [sys.executable, "-m", *linter, *files], cwd=tree.path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_a_kernel_and_a_baseline_run_by_their_recipes(tree: Tree) -> None:
    add_models(tree)
    targets = [f"results/mini/cifar10/{model}/seed0/metrics.csv" for model in ("clai-l", "nearest-centroid")]
    tree.run("--cores", "2", *targets)
    for target in targets:
        metrics = pd.read_csv(tree.path / target)
        assert metrics.loc[metrics["metric"] == "accuracy", "value"].max() > 0.25, "guessing reaches 0.1"


def test_a_source_is_one_module_with_a_name_and_one_entry(tree: Tree) -> None:
    (tree.path / "local.yaml").write_text(block("digits:"))
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 255, (90, 64)), columns=[f"p{i}" for i in range(64)])
    table.assign(split=np.repeat(["train", "val", "test"], 30), label=np.arange(90) % 3).to_csv(
        tree.path / "digits.csv"
    )
    target = "results/real/digits/prepared/dataset.json"
    refused = tree.snakemake(target, "--configfile", "local.yaml")
    assert "config key datasets.digits.source: 'csv_pictures' is not one of" in refused.stdout
    write_code(tree, "Pictures as rows")
    check = tree.path / "src" / "replication" / "runs" / "config_check.py"
    check.write_text(check.read_text().replace("SOURCES = {\n", "SOURCES = {\n" + block('"csv_pictures":')))
    tree.run(target, "--configfile", "local.yaml")
    info = json.loads((tree.path / target).read_text())
    assert info["splits"]["train"] == {"n": 30, "counts": [10, 10, 10]}
    assert tree.planned(target, "--configfile", "local.yaml") == {}
    (tree.path / "digits.csv").write_text((tree.path / "digits.csv").read_text().replace(",1\n", ",0\n", 1))
    again = tree.planned(target, "--configfile", "local.yaml")
    assert again == {"fetch_source": 1, "prepare_dataset": 1}, "the same size, other labels"


def test_own_data_have_their_outputs_and_change_no_other_file(tree: Tree) -> None:
    rng, y = np.random.default_rng(0), np.arange(240) % 2
    pictures = (rng.integers(0, 150, (240, 28, 28)) + 60 * y[:, None, None]).astype(np.uint8)
    for n, k in enumerate(y):
        path = tree.path / "pets" / ("cat", "dog")[k] / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pictures[n]).resize((28 + n % 5, 30)).save(path)
    own_settings = yaml.safe_load(block("of any size"))
    own_settings |= {"seeds": [0], "embedding_size": 4, "training": {"epochs": 2, "batch_size": 16}}
    own_settings["datasets"]["pets"]["models"] = ["clai-m"]
    (tree.path / "local.yaml").write_text(yaml.safe_dump(own_settings))
    own = tree.path / "paper_figures" / "own" / "pets"
    before = {path: path.read_bytes() for path in tree.path.rglob("*") if path.is_file()}
    said = tree.run("--cores", "2", "own", "--configfile", "local.yaml")
    assert "found the classes cat and dog, and no `positive`: the last one is" in said
    assert "published evidence" not in said
    end = "\n".join(said.splitlines()[-12:])
    assert "Predict: clailearn predict results/real/pets/models/clai-m pets --votes 3" in end
    assert "Positive class: dog." in (own / "table_accuracy.md").read_text()
    assert [str(path) for path, content in before.items() if path.read_bytes() != content] == []
    made = {
        path.relative_to(tree.path).parts[0] for path in tree.path.rglob("*") if path.is_file() and path not in before
    }
    assert made <= {".snakemake", "logs", "results", "paper_figures", "src"}, "src: compiled modules"
    table = pd.read_csv(own / "table_accuracy.csv").query("model == 'clai-m'").set_index("metric")["mean"]
    assert {"accuracy", "precision", "recall", "f1", "roc_auc", "auprc", "prevalence"} <= set(table.index)
    assert 100 * table["auroc"] == pytest.approx(table["roc_auc"])
    assert table["auroc"] > 0.6
    for figure in ("training", "embedding", "reliability"):
        assert len(pd.read_csv(own / f"figure_{figure}.csv")), figure
    assert tree.planned("own", "--configfile", "local.yaml") == {}


def test_own_data_and_models_change_no_output_of_the_published_evidence(tree: Tree) -> None:
    add_models(tree)
    (named,) = re.findall(r"own settings: `(.*clai-l.*)`", TEXT)
    own_settings = yaml.safe_load(block("of any size"))
    own_settings["datasets"] |= yaml.safe_load(named)["datasets"]
    (tree.path / "local.yaml").write_text(yaml.safe_dump(own_settings))
    before = {path: path.read_bytes() for path in (tree.path / "paper_figures").rglob("*") if path.is_file()}
    rules = ("render_table", "draw_figure", "judge_claims")
    tree.run("--cores", "2", "outputs", "--configfile", "local.yaml", "--forcerun", *rules)
    assert [str(path) for path, content in before.items() if path.read_bytes() != content] == []
