"""The whole pipeline on miniature data: it runs, learns, repeats exactly, and reruns only what a change touches."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replication.report.labels import MINI_NOTE
from replication.runs.outputs import files_of_outputs
from replication.runs.record import digest, read_records
from replication.runs.settings import load_settings, runs_of_model
from support.copies import REPOSITORY, Tree, repeatable

DATA_RULES = {"make_miniature", "fetch_source", "prepare_dataset"}
TRAINING = {"train_model", "evaluate_clai", "fit_hourly_classifiers", "fit_embedding_baseline"}
RUNNING = {
    *DATA_RULES,
    *TRAINING,
    "fit_deep_kernel_gp",
    "evaluate_cross_entropy",
    "evaluate_supervised_contrastive",
    "run_cell",
    "run_predicted_cell",
}
MULTICLASS, SEPSIS = ["pathmnist", "cifar10", "sleepedf", "sleepedf-bands"], ["mimic-iv", "challenge2019"]


def metrics(miniature: Tree, dataset: str) -> pd.DataFrame:
    """Means over seeds and folds under the paper's rule: model, metric, value."""
    frame = pd.read_csv(miniature.path / "results" / "mini" / dataset / "evidence" / "metrics.csv")
    frame = frame[frame["rule"].isna() | (frame["rule"] == "printed")]
    return frame.groupby(["model", "metric"])["value"].mean()


def description(miniature: Tree, dataset: str) -> dict[str, object]:
    return dict(json.loads((miniature.path / "results/mini" / dataset / "evidence/dataset.json").read_text()))


def test_every_output_is_there_and_nothing_is_left_to_do(miniature: Tree) -> None:
    missing = [
        name
        for folder in ("paper_figures", "paper_figures/mini")
        for name in files_of_outputs(folder)
        if not (miniature.path / name).is_file()
    ]
    assert missing == []
    assert miniature.planned("all") == {}


def test_renderings_of_the_published_evidence_are_the_tracked_ones(miniature: Tree) -> None:
    tracked = [name for name in files_of_outputs("paper_figures") if (REPOSITORY / name).is_file()]
    changed = [name for name in tracked if (miniature.path / name).read_bytes() != (REPOSITORY / name).read_bytes()]
    assert changed == []


def test_numerical_checks_have_a_record_and_the_claims_show_it(miniature: Tree) -> None:
    (record,) = read_records(miniature.path / "results/mini/theory/evidence")
    settings = {"miniature": True, "threads": 1}
    assert (record["run"], record["settings"], record["data"]) == ("theory/checks/seed0", settings, {})
    assert digest(settings) == record["config_hash"]
    claims = json.loads((miniature.path / "paper_figures/mini/claims.json").read_text())
    assert record["run"] in claims["runs"]


def test_no_temporary_file_is_left(miniature: Tree) -> None:
    left = [p for p in (miniature.path / "results").rglob("*") if p.suffix == ".part" or p.name.startswith(".")]
    assert left == []
    assert not list(miniature.path.rglob("checkpoint.pt"))


@pytest.mark.parametrize("model", ["clai-m", "clai-c"])
@pytest.mark.parametrize("dataset", MULTICLASS)
def test_learned_better_than_chance_and_the_commonest_class(miniature: Tree, dataset: str, model: str) -> None:
    counts = np.array(description(miniature, dataset)["splits"]["test"]["counts"])  # type: ignore[index]
    trivial = max(1 / len(counts), counts.max() / counts.sum())
    accuracy = metrics(miniature, dataset)[model, "accuracy"]
    assert accuracy > trivial + 3 * np.sqrt(trivial * (1 - trivial) / counts.sum())
    assert accuracy < 1


@pytest.mark.parametrize("model", ["clai-m", "clai-c"])
@pytest.mark.parametrize("dataset", SEPSIS)
def test_detected_sepsis_better_than_chance(miniature: Tree, dataset: str, model: str) -> None:
    found = metrics(miniature, dataset)[model]
    assert found["auroc"] > 0.6
    assert found["auprc"] > 1.2 * found["prevalence"]


def test_miniature_outputs_say_so(miniature: Tree) -> None:
    for name in files_of_outputs("paper_figures/mini"):
        path = miniature.path / name
        if path.suffix == ".json" and path.stem not in ("table2", "tableS1"):
            assert MINI_NOTE in json.loads(path.read_text())["caption"], name
    for name in ("table1.tex", "table3.tex", "claims.md"):
        assert "miniature" in (miniature.path / "paper_figures/mini" / name).read_text().lower(), name


@contextmanager
def edited(path: Path, text: str) -> Iterator[None]:
    """A file with other text for a while; its first text comes back with a later time of change."""
    before = path.read_text()
    path.write_text(text)
    yield
    path.write_text(before)


def test_touched_module_reruns_nothing(miniature: Tree) -> None:
    for name in ("clai/kernels.py", "replication/datasets/fetch.py", "replication/report/tables/layout.py"):
        os.utime(miniature.path / "src" / name)
    assert miniature.planned("all") == {}


def test_edited_kernel_reruns_training_and_what_follows_but_no_data(miniature: Tree) -> None:
    path = miniature.path / "src" / "clai" / "kernels.py"
    with edited(path, path.read_text() + "\n# another kernel\n"):
        planned = miniature.planned("all")
    assert planned.keys() >= {*TRAINING, "summarise_dataset", "project_embeddings", "render_table1", "draw_figure2"}
    assert not planned.keys() & DATA_RULES
    assert miniature.planned("all") == {}


def test_edited_caption_redraws_its_output_only(miniature: Tree) -> None:
    path = miniature.path / "workflow" / "report" / "table1.rst"
    with edited(path, path.read_text() + "One more sentence.\n"):
        assert miniature.planned("all").keys() <= {"all", "render_table1"}
        assert miniature.planned("all")["render_table1"] == 2


def test_setting_of_one_dataset_reruns_no_other(miniature: Tree) -> None:
    path = miniature.path / "workflow" / "config" / "mini.yaml"
    mini = yaml.safe_load(path.read_text())
    mini["datasets"]["sleepedf"]["overrides"]["training"] = {"weight_decay": 0.1}
    with edited(path, yaml.safe_dump(mini)):
        planned = miniature.planned("results/mini/sleepedf/evidence/metrics.csv")
        others = miniature.planned("results/mini/cifar10/evidence/metrics.csv")
    models = load_settings(miniature.path)["datasets"]["sleepedf"]["models"]
    whole = load_settings(miniature.path, mini=True)
    assert planned["train_model"] == sum(len(runs_of_model(whole, "sleepedf", model)) for model in models)
    assert others == {}


@pytest.fixture
def planned_with(miniature: Tree, tmp_path: Path) -> Callable[[str], dict[str, int]]:
    """What is planned of the miniature pipeline with a setting of the user's own that mini.yaml leaves open."""

    def planned(setting: str) -> dict[str, int]:
        (tmp_path / "own.yaml").write_text(setting)
        jobs = miniature.planned("mini", "--configfile", str(tmp_path / "own.yaml"))
        return {rule: count for rule, count in jobs.items() if rule in RUNNING}

    return planned


@pytest.mark.parametrize("setting", ["datasets: {mimic-iv: {memory_gb: 5.5}}"])
def test_setting_that_decides_no_result_runs_nothing_again(
    setting: str, planned_with: Callable[[str], dict[str, int]]
) -> None:
    assert planned_with(setting) == {}


def test_setting_of_the_vote_leaves_the_others_alone(planned_with: Callable[[str], dict[str, int]]) -> None:
    planned = planned_with("inference: {references: 150}")
    assert {"train_model", "evaluate_clai"} <= planned.keys()  # it decides the validation figures, too
    assert not planned.keys() & {"evaluate_cross_entropy", "fit_hourly_classifiers", "fit_deep_kernel_gp", *DATA_RULES}


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("logistic_regression: {inverse_penalty: [0.1]}", "fit_hourly_classifiers"),
        ("gp: {learning_rate: 0.02}", "fit_hourly_classifiers"),
        ("student_t_mixture: {variance: 0.9}", "fit_embedding_baseline"),
    ],
)
def test_setting_of_a_baseline_reruns_no_other(
    setting: str, rule: str, planned_with: Callable[[str], dict[str, int]]
) -> None:
    planned = planned_with(f"baselines: {{{setting}}}")
    assert planned.keys() == {rule}


def test_setting_of_a_baseline_reruns_it_on_datasets_and_in_studies(
    planned_with: Callable[[str], dict[str, int]],
) -> None:
    planned = planned_with("baselines: {supervised_contrastive: {temperature: 0.2}}")
    # The cells of two studies that are trained with that loss; one of them keeps its predictions.
    assert planned.keys() == {"train_model", "evaluate_supervised_contrastive", "run_cell", "run_predicted_cell"}
    assert planned["run_cell"] == planned["run_predicted_cell"] == 1


@pytest.mark.slow
def test_second_run_gives_the_same_bytes(miniature: Tree) -> None:
    results, drawn = miniature.path / "results" / "mini", miniature.path / "paper_figures" / "mini"
    runs = ["cifar10/clai-m/seed0", "challenge2019/clai-c/seed0/fold0", "mimic-iv/gp/seed0/fold0"]
    runs += ["mimic-iv/student-t-mixture/seed0/fold0"]

    def content() -> dict[str, bytes]:
        # Predictions are of no output; other tests may have asked for them.
        evidence = [file for file in results.glob("*/evidence/*") if file.suffix != ".npz"]
        files = [*evidence, *(file for run in runs for file in (results / run).iterdir())]
        return repeatable(miniature, [*files, *drawn.iterdir()])

    first = content()
    for folder in [*(results / run for run in runs), *results.glob("*/evidence"), drawn]:
        shutil.rmtree(folder)
    planned = miniature.planned("mini")
    assert planned["train_model"] == planned["evaluate_clai"] == 2
    assert not planned.keys() & DATA_RULES
    repeated = miniature.snakemake("--cores", "4", "mini")
    assert repeated.returncode == 0, repeated.stdout[-20000:]
    second = content()
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
