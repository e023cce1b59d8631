"""The worked example of docs/extending.md, in the workflow: its module and its entry are all that is added."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from support.copies import REPOSITORY, Tree

pytestmark = pytest.mark.slow

TEXT = (REPOSITORY / "docs" / "extending.md").read_text()


def block(language: str, mark: str) -> str:
    (found,) = [b for b in re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL) if mark in b]
    return str(found)


def test_a_source_is_one_module_and_one_entry(tree: Tree) -> None:
    (tree.path / "local.yaml").write_text(block("yaml", "digits:") + "run: [digits]\nevidence: real\n")
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 255, (90, 64)), columns=[f"p{i}" for i in range(64)])
    table.assign(split=np.repeat(["train", "val", "test"], 30), label=np.arange(90) % 3).to_csv(
        tree.path / "digits.csv"
    )
    target = "results/real/digits/prepared/dataset.json"
    refused = tree.snakemake(target, "--configfile", "local.yaml")
    assert "config key datasets.digits.source: 'csv_pictures' is not one of" in refused.stdout
    (tree.path / "src" / "replication" / "datasets" / "csv_pictures.py").write_text(block("python", "Pictures as rows"))
    run = tree.snakemake(target, "--configfile", "local.yaml")
    assert run.returncode == 0, run.stdout
    info = json.loads((tree.path / target).read_text())
    assert info["splits"]["train"] == {"n": 30, "counts": [10, 10, 10]}
    assert tree.planned(target, "--configfile", "local.yaml") == {}
    (tree.path / "digits.csv").write_text((tree.path / "digits.csv").read_text().replace(",2\n", ",1\n"))
    again = tree.planned(target, "--configfile", "local.yaml")
    assert again == {"fetch_source": 1, "prepare_dataset": 1}, "the same size, other labels"
    planned = tree.planned("paper_figures/supplement/tableS11.csv", "--configfile", "local.yaml")
    assert {"train_model", "evaluate", "render_table"} <= planned.keys()


def test_a_set_of_medmnist_is_one_entry(tree: Tree) -> None:
    (tree.path / "local.yaml").write_text(block("yaml", "bloodmnist:") + "run: [bloodmnist]\nevidence: real\n")
    planned = tree.planned("results/real/bloodmnist/prepared/dataset.json", "--configfile", "local.yaml")
    assert planned == {"fetch_source": 1, "prepare_dataset": 1}
