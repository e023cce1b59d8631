"""`snakemake verify`: what was published follows from predictions, models and trainings; what was changed is named."""

import shutil

import pandas as pd

from support.copies import Tree


def test_a_changed_table_is_named_and_fails(tree: Tree) -> None:
    table = tree.path / "paper_figures" / "table1.csv"
    frame = pd.read_csv(table)
    row = frame.index[(frame["metric"] == "accuracy") & frame["mean"].notna()][0]
    frame.loc[row, "mean"] += 1
    frame.to_csv(table, index=False, float_format="%.6g")
    run = tree.snakemake("--cores", "2", "verify")
    assert run.returncode != 0
    numbers = pd.read_csv(tree.path / "report" / "verify.csv")
    different = numbers.loc[numbers["agreement"] == "differs", "name"]
    assert list(different) == [f"{frame.loc[row, 'dataset']}, {frame.loc[row, 'model']}, accuracy: mean"]
    assert different.iloc[0] in run.stdout
    assert different.iloc[0] in (tree.path / "report" / "verify.html").read_text()


def test_miniature_follows_from_its_predictions_and_a_run_is_trained_again(miniature: Tree) -> None:
    run = miniature.snakemake("--cores", "4", "verify_mini")
    assert run.returncode == 0, run.stdout[-6000:]
    numbers = pd.read_csv(miniature.path / "report" / "mini" / "verify.csv")
    assert set(numbers["agreement"]) == {"equal", "within tolerance"}, "every dataset of the miniature has predictions"
    sources = {"pathmnist/metrics.csv", "sleepedf-bands/comparisons.csv", "mimic-iv/intervals.csv", "table1", "claims"}
    assert sources <= set(numbers["source"])
    models = list((miniature.path / "results" / "mini").glob("*/models/*/model.json"))
    assert (numbers["source"] == "models").sum() == len(models)

    run = miniature.snakemake("--dry-run", "verify_mini", "--config", "verify=train")
    assert "results/mini/" in run.stdout
    run = miniature.snakemake("--cores", "4", "verify_mini", "--config", "verify=train")
    assert run.returncode == 0, run.stdout[-6000:]
    numbers = pd.read_csv(miniature.path / "report" / "mini" / "verify.csv")
    (trained,) = numbers.loc[numbers["source"] == "training", "name"]
    folder = miniature.path / "results" / "mini" / trained.partition(",")[0]
    shutil.rmtree(folder)
    run = miniature.snakemake("--cores", "4", "verify_mini", "--config", "verify=train")
    assert run.returncode == 0, run.stdout[-6000:]
    assert (folder / "metrics.csv").exists(), "it was trained again"
