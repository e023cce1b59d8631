"""Tables show what their CSV and the evidence hold, say what was not run, and are LaTeX that compiles."""

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

from replication.metrics.intervals import holm
from replication.report.labels import MINI_NOTE, Metric
from replication.report.tables.layout import Best, Block, Group, Layout, number, pivot, to_latex, to_markdown
from replication.report.tables.render import Table, render
from replication.runs.outputs import declared
from replication.runs.registry import TABLES
from support.published import PUBLISHED, caption, change, copy_evidence, describe, evidence_for, without_models
from support.repository import REPOSITORY

ONE_OF_EACH = ("pathmnist", "sleepedf-bands", "challenge2019")


def rendered(name: str, root: Path = PUBLISHED) -> Table:
    return render(name, declared(name), evidence_for(name, root), caption(name))


@pytest.mark.parametrize("name", ["table1", "table3"])
def test_cells_are_mean_and_sd_of_the_runs_and_stand_in_both_forms(name: str) -> None:
    table = rendered(name)
    shown = table.frame.dropna(subset=["mean"])
    shown = shown[shown["other"].isna()] if "other" in shown else shown
    assert len(shown)
    percent = {"accuracy", "precision", "recall", "f1", "roc_auc"} if name == "table1" else set()
    finer = {"ece_calibrated": 5, "log_loss_calibrated": 4}
    for row in shown.to_dict("records"):
        of_study = name == "table3" and isinstance(row["study"], str)
        of, cell = (row["study"], row["cell"]) if of_study else (row["dataset"], row["model"])
        metrics = pd.read_csv(PUBLISHED / of / "evidence" / "metrics.csv", keep_default_na=False)
        own = metrics[(metrics["cell"] == cell) & (metrics["metric"] == row["metric"])]
        own = own[own["rule"].isin(["printed", ""]) & own["shares"].isin(["population", ""])]
        scale, digits = (100, 2) if row["metric"] in percent else (1, finer.get(row["metric"], 3))
        values = scale * own.groupby("fold" if name == "table3" else "seed")["value"].mean()
        assert row["mean"] == pytest.approx(values.mean())
        assert row["sd"] == pytest.approx(values.std(ddof=1), nan_ok=True)
        assert row["n"] == len(values)
        cell = number(row["mean"], Metric("", "", digits=digits), row["sd"])
        assert cell in table.tex
        assert cell in table.md
    for row in table.frame.dropna(subset=["printed"]).to_dict("records"):
        assert f"{row['printed']:g}".rstrip("0") in table.tex


def test_the_two_forms_show_the_same_texts_each_in_its_own_spelling() -> None:
    groups = [Group("Ours", [["a|b_c", "−1.00*"]]), Group("Theirs", [], "not run: needs R&D")]
    layout = Layout(["Model", "Share (%)"], groups)
    text = "Caption.\nA note."
    latex, markdown = to_latex([layout], text, "tab:t", miniature=False), to_markdown([layout], text)
    assert r"\quad a\textbar{}b\_c & $-$1.00* \tabularnewline" in latex
    assert r"\textbf{Theirs}, \emph{not run: needs R\&D}" in latex
    assert markdown.splitlines()[2:7] == [
        "| Model | Share (%) |", "| --- | ---: |", "| **Ours** |  |", r"| a\|b_c | −1.00\* |",
        "| **Theirs**: not run: needs R&D |  |",
    ]  # fmt: skip
    assert markdown.endswith("|  |\n\nA note.\n")


def test_a_new_table_is_an_entry_as_the_recipe_has_it() -> None:
    text = (REPOSITORY / "docs" / "extending.md").read_text()
    (block,) = re.findall(r"```yaml\n(supplement/table.*?)```", text, flags=re.DOTALL)
    ((name, entry),) = yaml.safe_load(block).items()
    table = render(name, entry, evidence_for("table1"), "Accuracy by rule.")
    metrics = pd.read_csv(PUBLISHED / "cifar10" / "evidence" / "metrics.csv")
    means = 100 * metrics.query("cell == 'clai-c' and metric == 'accuracy'").groupby("rule")["value"].mean()
    own = table.frame.query("dataset == 'cifar10' and model == 'clai-c' and metric == 'accuracy'")
    assert own.set_index("rule")["mean"][means.index].to_numpy() == pytest.approx(means.to_numpy())
    of_cifar10 = table.md.partition("**CIFAR-10**")[2]
    rows = [of_cifar10.index(f"| {rule} | {means[rule]:.2f}") for rule in ("printed", "centred", "balanced", "parzen")]
    assert rows == sorted(rows)


@pytest.mark.parametrize("left_out", [["clai-m", "clai-c"], ["clai-c"]])
def test_datasets_without_a_clai_model_have_their_rows(left_out: list[str], tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "published", *ONE_OF_EACH)
    without_models(root, left_out)
    for name in TABLES:
        frame = rendered(name, root).frame
        measured = frame.dropna(subset=["mean"]) if "mean" in frame else frame
        assert not set(measured.get("model", ())) & set(left_out), name
    assert set(rendered("table1", root).frame["model"]) >= {"cross-entropy"}


def test_a_dataset_without_evidence_says_what_it_needs(tmp_path: Path) -> None:
    table = rendered("table1", copy_evidence(tmp_path / "published", "pathmnist"))
    missing = table.frame.query("dataset == 'cifar10'")
    assert missing["mean"].isna().all()
    assert (missing["n"] == 0).all()
    (reason,) = missing["data"].unique()
    assert reason.startswith("not run: needs ")
    assert reason in table.tex
    assert "Not run: CIFAR-10, which needs" in table.caption


def test_the_spread_is_left_out_for_one_run_and_miniature_data_are_marked(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path / "real", *ONE_OF_EACH)
    change(root, "pathmnist", "metrics.csv", lambda metrics: metrics[metrics["seed"] == 0])
    change(root, "sleepedf-bands", "metrics.csv", lambda metrics: metrics[metrics["seed"] == 0])
    describe(root, "pathmnist", miniature=True)
    table = rendered("table1", root)
    assert table.frame["sd"].isna().all()
    assert not re.search(r"\d \(\d", table.tex.split("\\toprule")[1])
    assert MINI_NOTE in table.caption
    assert r"\textbf{Miniature synthetic data}" in table.tex
    assert "Miniature" not in rendered("table3", root).tex


@pytest.mark.parametrize("datasets", [ONE_OF_EACH, ()])
def test_all_tables_compile(datasets: tuple[str, ...], tmp_path: Path) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is not installed")
    root = copy_evidence(tmp_path / "mini", *datasets) if datasets else PUBLISHED
    body = "".join(rendered(name, root).tex + "\\clearpage\n" for name in TABLES)
    packages = "\\usepackage{booktabs,graphicx,xcolor}\\usepackage[margin=2.2cm]{geometry}"
    text = f"\\documentclass[a4paper]{{article}}{packages}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "tables.tex").write_text(text)
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if re.search(r"File `[^']+\.(sty|cls|def)' not found", done.stdout):
        pytest.skip("a LaTeX package is not installed")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout


def test_comparisons_have_p_values_adjusted_for_all_of_the_table_and_name_what_is_not_computed(tmp_path: Path) -> None:
    frame = rendered("supplement/tableS2").frame.dropna(subset=["p"])
    assert frame["p_holm"].tolist() == holm(frame["p"].to_numpy()).tolist()
    compared = pd.read_csv(PUBLISHED / "cifar10" / "evidence" / "comparisons.csv")
    row = compared.query("cell == 'clai-m' and other == 'clai-c' and metric == 'accuracy'")
    shown = frame.query("dataset == 'cifar10' and model == 'clai-m' and other == 'clai-c' and metric == 'accuracy'")
    names = ["value", "low", "high"]
    assert shown[["mean", "low", "high"]].to_numpy() == pytest.approx(100 * row[names].to_numpy())
    root = copy_evidence(tmp_path / "published", "cifar10")
    (root / "cifar10" / "evidence" / "comparisons.csv").unlink()
    missing = rendered("supplement/tableS2", root).frame.query("dataset == 'cifar10'")
    assert missing["data"].tolist() == ["not computed: its evidence has no comparisons.csv"]


def test_differences_from_cross_entropy_are_those_over_samples_where_cells_were_compared_so(tmp_path: Path) -> None:
    root, name = copy_evidence(tmp_path / "published", "votes-bands"), "supplement/tableS9"
    (root / "votes-bands" / "evidence" / "comparisons.csv").unlink()
    over_seeds = rendered(name, root).frame.set_index(["model", "metric"])
    text = (
        "cell,other,samples,seeds,draws,metric,value,low,high,p\n"
        "cross-entropy,parzen-vote,16,5,1000,log_loss,0.01,0.005,0.02,0.01\n"
    )
    (root / "votes-bands" / "evidence" / "comparisons.csv").write_text(text)
    over_samples, columns = rendered(name, root).frame.set_index(["model", "metric"]), ["mean", "low", "high"]
    assert over_samples.loc[("parzen-vote", "log_loss_less"), columns].tolist() == [-0.01, -0.02, -0.005]
    assert ("clai-m", "log_loss_less") in over_seeds.index
    assert ("clai-m", "log_loss_less") not in over_samples.index


def test_a_table_of_own_data_has_only_blocks_whose_first_metric_is_known_and_a_label_of_its_own() -> None:
    table = rendered("own/table_accuracy")
    (layout,) = table.layouts
    assert layout.heads[1] == "Accuracy"
    assert r"\label{tab:table_accuracy_pathmnist}" in table.tex


def test_a_reason_stands_in_the_first_block_that_may_show_its_data(tmp_path: Path) -> None:
    name = "supplement/tableS6"
    layouts = rendered(name, copy_evidence(tmp_path / "published", *ONE_OF_EACH)).layouts
    absent = [[group.title.split(" (")[0] for group in layout.groups if group.reason] for layout in layouts]
    of_samples, of_hours = map(set, absent)
    assert "CIFAR-10" in of_samples - of_hours
    assert "MIMIC-IV" in of_hours - of_samples
    assert len(rendered("table3", tmp_path / "published").layouts) == 1, "no difference was measured"


@pytest.mark.parametrize(("train", "accuracy", "recall"), [([1, 3], 75, 100), ([3, 1], 25, 0), ([1, 1, 2], 60, 60)])
def test_recall_of_the_majority_is_that_of_the_positive_class_where_there_are_two(
    tmp_path: Path, train: list[int], accuracy: float, recall: float
) -> None:
    root, test = copy_evidence(tmp_path / "published", "pathmnist"), [1, 3] if len(train) == 2 else [1, 1, 3]
    describe(root, "pathmnist", splits={"train": {"counts": train}, "test": {"counts": test}})
    found = rendered("own/table_accuracy", root).frame.query("model == 'majority-class'").set_index("metric")["mean"]
    assert (found["accuracy"], found["recall"]) == (accuracy, recall)


def test_the_best_of_our_values_is_bold_and_no_other() -> None:
    frame = pd.DataFrame({
        "dataset": "cifar10", "study": None, "cell": None, "model": ["Paper", "clai-m", "clai-c", "constant"],
        "metric": "ece", "mean": [0.001, 0.2, 0.1004, 0.0],
    })  # fmt: skip
    evidence = evidence_for("table1")
    layout = pivot(frame, Block(["ece"], best=True), evidence)
    assert [isinstance(row[1], Best) for row in layout.groups[0].rows] == [False, False, True, False]
    alone = pivot(frame[frame["model"].isin(["Paper", "clai-m"])], Block(["ece"], best=True), evidence)
    assert not any(isinstance(row[1], Best) for row in alone.groups[0].rows)
    kernels = frame.replace({"model": {"clai-m": "full", "clai-c": "cosine"}})
    of_study = kernels.assign(study="votes-bands", cell=kernels["model"], model=frame["model"])
    (group,) = pivot(of_study, Block(["ece"], best=True), evidence_for("supplement/tableS9")).groups
    assert [isinstance(row[1], Best) for row in group.rows] == [False, False, True, False]
    assert "**0.100**" in to_markdown([layout], "A caption.")
    assert r"\textbf{0.100}" in to_latex([layout], "A caption.", "tab:a", miniature=False)
