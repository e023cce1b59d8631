"""`snakemake verify`: what was published follows from predictions and models; what was changed is named."""

import pandas as pd
import pytest

from support.copies import Tree

pytestmark = pytest.mark.slow


def test_a_changed_number_is_named_and_fails(tree: Tree) -> None:
    file = tree.path / "results" / "published" / "pathmnist" / "evidence" / "metrics.csv"
    frame = pd.read_csv(file)
    row = frame.index[(frame["metric"] == "accuracy") & (frame["rule"] == "printed")][0]
    frame.loc[row, "value"] += 0.01
    frame.to_csv(file, index=False)
    run = tree.snakemake("--cores", "2", "verify")
    assert run.returncode != 0
    numbers = pd.read_csv(tree.path / "report" / "verify.csv")
    different = numbers.loc[numbers["agreement"] == "differs", "name"]
    assert list(different) == [f"{frame.loc[row, 'cell']}, {frame.loc[row, 'seed']}, printed, population, accuracy"]
    assert different.iloc[0] in run.stdout


def test_miniature_follows_from_its_predictions(miniature: Tree) -> None:
    miniature.run("--cores", "2", "results/mini/breastmnist/models/cross-entropy/model.json")
    run = miniature.snakemake("--cores", "4", "mini_verify")
    numbers = pd.read_csv(miniature.path / "report" / "mini" / "verify.csv")
    # The test sets are so small that rounded scores move areas and bins by whole digits.
    assert run.returncode == int((numbers["agreement"] == "differs").any()), run.stdout[-6000:]
    models = numbers["source"] == "models"
    exact = (numbers["source"] == "claims") | numbers["name"].str.endswith((", accuracy", ", f1"))
    assert set(numbers.loc[exact & ~models, "agreement"]) <= {"equal", "within tolerance"}
    # Weights are published in float16. A prediction that this changes is half a per cent of the smallest test set.
    assert (
        numbers.loc[models, "published"].astype(float) - numbers.loc[models, "here"].astype(float)
    ).abs().max() < 0.02
    roc = numbers[numbers["name"].str.endswith(", roc_auc") & numbers["source"].str.endswith("/metrics.csv")]
    assert (roc["published"].astype(float) - roc["here"].astype(float)).abs().max() < 0.005
    sources = {"cifar10/metrics.csv", "sleepedf-bands/comparisons.csv", "mimic-iv/metrics.csv", "claims"}
    assert sources <= set(numbers["source"])
    assert models.sum() == len(list((miniature.path / "results" / "mini").glob("*/models/*/model.json")))
