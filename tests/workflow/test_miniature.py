"""The whole pipeline on miniature data: it runs, learns, repeats exactly, and reruns only what a change touches."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from support.copies import Tree, repeatable
from support.repository import MINI

DATA_RULES = {"mini_fetch_source", "mini_prepare_dataset"}
TRAINING = {"mini_train_model", "mini_train_traced", "mini_run_cell", "mini_embed_study"}
SAMPLES = [
    (dataset, model)
    for dataset in MINI["run"]
    if dataset != "mimic-iv"
    for model in ("clai-m", "clai-c")
    if model in MINI["datasets"][dataset]["models"]
]


def metrics(miniature: Tree, dataset: str) -> pd.DataFrame:
    """Means over seeds and folds under the paper's rule: cell, metric, value."""
    frame = pd.read_csv(miniature.path / "results" / "mini" / dataset / "evidence" / "metrics.csv")
    frame = frame[frame["rule"].isna() | (frame["rule"] == "printed")]
    return frame.groupby(["cell", "metric"])["value"].mean()


def test_every_output_is_there_and_nothing_is_left_to_do(miniature: Tree) -> None:
    assert miniature.planned("all") == {}


def test_verdicts_stand_beside_the_published_ones_and_say_that_their_data_are_synthetic(miniature: Tree) -> None:
    page = (miniature.path / "paper_figures" / "mini.md").read_text()
    assert "Of 17 verdicts: " in page
    assert page.endswith("Miniature synthetic data: shows that the pipeline works, not how well the method does.\n")


def test_no_temporary_file_is_left(miniature: Tree) -> None:
    left = [p for p in (miniature.path / "results").rglob("*") if p.suffix == ".part" or p.name.startswith(".")]
    assert left == []
    assert not list(miniature.path.rglob("checkpoint.pt"))


@pytest.mark.parametrize(("dataset", "model"), SAMPLES)
def test_learned_better_than_chance_and_the_commonest_class(miniature: Tree, dataset: str, model: str) -> None:
    description = json.loads((miniature.path / "results/mini" / dataset / "evidence/dataset.json").read_text())
    counts = np.array(description["splits"]["test"]["counts"])
    trivial = max(1 / len(counts), counts.max() / counts.sum())
    accuracy = metrics(miniature, dataset)[model, "accuracy"]
    assert accuracy > trivial + 3 * np.sqrt(trivial * (1 - trivial) / counts.sum())
    assert accuracy < 1


@pytest.mark.parametrize("model", ["clai-m", "clai-c"])
def test_detected_sepsis_better_than_chance(miniature: Tree, model: str) -> None:
    found = metrics(miniature, "mimic-iv")[model]
    assert found["auroc"] > 0.6
    assert found["auprc"] > 1.2 * found["prevalence"]


@pytest.mark.parametrize(
    ("file", "planned", "spared"),
    [
        ("report/labels.py", {"render_table", "mini_render_table"}, {*TRAINING, *DATA_RULES, "mini_evaluate"}),
        ("metrics/classification.py", {"mini_evaluate", "mini_render_table"}, {*TRAINING, *DATA_RULES}),
        ("../clailearn/kernels.py", {"mini_train_model", "mini_evaluate"}, DATA_RULES),
        ("models/embedding.py", {"mini_train_model", "mini_evaluate"}, DATA_RULES),
        ("runs/settings.py", {"mini_prepare_dataset", "mini_train_model", "render_table"}, set()),
        (
            "datasets/miniature/__init__.py",
            {"mini_make_miniature"},
            {"render_table", "draw_figure", "mini_check_theory"},
        ),
    ],
)
def test_an_edit_reruns_its_layer(miniature: Tree, file: str, planned: set[str], spared: set[str]) -> None:
    path = miniature.path / "src" / "replication" / file
    before = path.read_text()
    path.write_text(before + "\n# another line\n")
    jobs = miniature.planned("all").keys()
    path.write_text(before)
    assert planned <= jobs
    assert not jobs & spared


@pytest.mark.slow
def test_second_run_gives_the_same_bytes(miniature: Tree) -> None:
    results = miniature.path / "results" / "mini"
    # The tests of accidents and of Slurm repeat runs on images.
    runs = [f"mimic-iv/{model}/seed0/fold0" for model in ("clai-c", "gp", "student-t-mixture")]
    folders = [results / name for name in (*runs, "mimic-iv/evidence")]
    # Predictions are of no output; other tests may have asked for them.
    made = [file for folder in folders for file in folder.iterdir() if file.suffix != ".parquet"]
    first = repeatable(miniature, made)
    for folder in folders:
        shutil.rmtree(folder)
    targets = [str(file.relative_to(miniature.path)) for file in made]
    miniature.run("--cores", "4", *targets)
    second = repeatable(miniature, made)
    assert [name for name in first if first[name] != second[name]] == []
