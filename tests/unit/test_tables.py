"""Tables show what their CSV holds, say what was not run, and are LaTeX that compiles."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.report import evidence
from replication.report.documents import readme_results, replace_block
from replication.report.evidence import Evidence
from replication.report.labels import MINI_NOTE, RULES, SHARES
from replication.report.printed_values import read_values
from replication.report.sidecars import csv_text
from replication.report.tables.layout import Sources, escape, number
from replication.report.tables.render import TABLES, Table, render
from replication.report.tables.supplement_data import setting_text
from replication.runs.outputs import evidence_behind
from replication.runs.settings import load_settings
from support.evidence_fixture import (
    EXPECTED,
    STUDIES,
    without_models,
    write_benchmark,
    write_evidence,
    write_studies,
)

WORKFLOW = Path(__file__).parents[2] / "workflow"


def sources(root: Path, name: str) -> Sources:
    settings = load_settings(WORKFLOW.parent)
    names = evidence_behind(name, settings)
    expected = {key: entry for key, entry in (EXPECTED | STUDIES).items() if key in names}
    values, choices = (
        read_values(WORKFLOW / "config" / "printed_values.csv"),
        read_values(WORKFLOW / "config" / "choices.csv"),
    )
    reported = read_values(WORKFLOW / "config" / "reported_values.csv")
    return Sources(Evidence.found(root, expected), values, reported, choices, settings)


def rendered(root: Path, name: str) -> Table:
    return render(name, sources(root, name), (WORKFLOW / "report" / f"{name}.rst").read_text())


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "published"
    write_evidence(root, ["cifar10", "challenge2019"])
    return root


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "mini"
    write_evidence(root, list(EXPECTED), seeds=1, miniature=True)
    write_studies(root, seeds=1, miniature=True)
    write_benchmark(root, miniature=True)
    return root


@pytest.mark.parametrize("left_out", [["clai-m", "clai-c"], ["clai-c"]])
def test_datasets_without_a_clai_model_have_their_rows(left_out: list[str], tmp_path: Path) -> None:
    write_evidence(tmp_path / "published", ["pathmnist", "cifar10", "sleepedf-bands", "challenge2019"])
    without_models(tmp_path / "published", left_out)
    for name in TABLES:
        frame = rendered(tmp_path / "published", name).frame
        measured = frame.dropna(subset=["mean"]) if "mean" in frame else frame
        assert not set(measured.get("model", ())) & set(left_out), name
    assert set(rendered(tmp_path / "published", "table1").frame["model"]) >= {"cross-entropy"}


@pytest.mark.parametrize("name", ["table1", "table3"])
def test_every_number_of_the_csv_stands_in_the_latex(partial: Path, name: str) -> None:
    table = rendered(partial, name)
    assert list(table.frame)[:8] == ["dataset", "model", "metric", "mean", "sd", "n", "printed", "data"]
    percent = {"accuracy", "precision", "recall", "f1", "roc_auc"} if name == "table1" else set()
    for row in table.frame.dropna(subset=["mean"]).to_dict("records"):
        assert number(row["mean"], row["sd"], 2 if row["metric"] in percent else 3) in table.tex
    for row in table.frame.dropna(subset=["printed"]).to_dict("records"):
        assert f"{row['printed']:g}".rstrip("0") in table.tex


def test_sepsis_table_has_the_intervals_by_patient_of_the_metrics_themselves(partial: Path) -> None:
    table = rendered(partial, "tableS6")
    row = table.frame.query("model == 'clai-m' and metric == 'auroc'")
    assert len(row) == 1
    assert row[["low", "high"]].to_numpy().tolist() == [[pytest.approx(0.80), pytest.approx(0.84)]]
    assert "[0.800, 0.840]" in table.tex
    assert table.frame.query("metric == 'brier'")["low"].isna().all()


def test_table1_is_in_per_cent_and_its_calibration_errors_are_fractions(partial: Path) -> None:
    frame = rendered(partial, "table1").frame.query("dataset == 'cifar10' and model == 'clai-m'").set_index("metric")
    metrics = pd.read_csv(partial / "cifar10" / "evidence" / "metrics.csv").query(
        "model == 'clai-m' and rule == 'printed'"
    )
    accuracy = metrics.query("metric == 'accuracy'")["value"]
    assert frame.loc["accuracy", "mean"] == pytest.approx(100 * accuracy.mean())
    assert frame.loc["accuracy", "sd"] == pytest.approx(100 * accuracy.std(ddof=1))
    assert frame.loc["ece", "mean"] == pytest.approx(metrics.query("metric == 'ece'")["value"].mean())
    assert frame.loc["accuracy", "printed"] == 80.46
    assert pd.isna(frame.loc["ece", "printed"])


def test_a_dataset_without_evidence_says_what_it_needs(partial: Path) -> None:
    table = rendered(partial, "table1")
    assert table.tex.count("not run: needs pathmnist.npz") == 1
    assert "Not run: PathMNIST, which needs pathmnist.npz" in table.caption
    missing = table.frame.query("dataset == 'pathmnist'")
    assert missing["mean"].isna().all()
    assert (missing["n"] == 0).all()
    assert (missing["data"] == "not run: needs pathmnist.npz (MedMNIST v2)").all()


def test_printed_values_of_sepsis_stand_in_the_rows_of_their_own_cohort_alone(partial: Path) -> None:
    frame = rendered(partial, "table3").frame
    assert set(frame.dropna(subset=["printed"])["dataset"]) == {"mimic-iv"}
    printed = frame.query("dataset == 'mimic-iv' and model == 'clai-c' and metric == 'auroc'")
    assert printed[["printed", "printed_sd"]].to_numpy().tolist() == [[0.848, 0.009]]


def test_decision_rules_are_those_of_inference() -> None:
    inference = pytest.importorskip("clai.inference")
    assert inference.RULES == RULES
    assert inference.SHARES == SHARES


def test_a_substitute_is_named_in_its_row(partial: Path) -> None:
    tex = rendered(partial, "table1").tex
    assert "\\textbf{CIFAR-10 (JPEG copy)}} \\\\\n\\quad Paper, on CIFAR-10 &" in tex


def test_band_powers_have_rows_of_their_own_with_all_their_models_and_no_printed_value(tmp_path: Path) -> None:
    write_evidence(tmp_path / "real", ["sleepedf-bands"])
    path = tmp_path / "real" / "sleepedf-bands" / "evidence" / "metrics.csv"
    metrics = pd.read_csv(path)
    boosting = metrics[metrics["model"] == "cross-entropy"].assign(model="gradient-boosting")
    pd.concat([metrics, boosting]).to_csv(path, index=False)
    table = rendered(tmp_path / "real", "table1")
    own = table.frame.query("dataset == 'sleepedf-bands'")
    assert list(own["model"].unique()) == ["clai-m", "clai-c", "cross-entropy", "gradient-boosting", "majority-class"]
    assert own["printed"].isna().all()
    raw, bands = table.tex.split(r"\textbf{SleepEDF}")[1].split(r"\textbf{Sleep-EDF, band powers}")
    assert "58.49" in raw
    assert "not run: needs the Sleep-EDF expanded recordings" in raw
    assert "Paper" not in bands
    assert "Gradient boosting" in bands
    assert {"macro_f1", "kappa"} <= set(rendered(tmp_path / "real", "tableS8").frame["metric"])


def test_the_spread_is_left_out_for_one_run(mini: Path) -> None:
    table = rendered(mini, "table1")
    assert table.frame["sd"].isna().all()
    body = table.tex.split("\\toprule")[1]
    assert not re.search(r"\d \(\d", body)


def test_miniature_data_is_marked_in_the_table_and_its_caption(mini: Path, partial: Path) -> None:
    table = rendered(mini, "table3")
    assert MINI_NOTE in table.caption
    assert r"\textbf{Miniature synthetic data}" in table.tex
    assert "Miniature" not in rendered(partial, "table3").tex


def test_runs_behind_a_table_are_those_of_the_models_it_shows(partial: Path) -> None:
    runs = {record["run"].rsplit("/", 1)[0] for record in rendered(partial, "table1").runs}
    assert runs == {"cifar10/clai-m", "cifar10/clai-c", "cifar10/cross-entropy"}


def test_rendering_twice_gives_the_same_text(partial: Path) -> None:
    for name in TABLES:
        first, second = rendered(partial, name), rendered(partial, name)
        assert (first.tex, csv_text(first.frame)) == (second.tex, csv_text(second.frame))


def test_latex_special_characters_are_escaped() -> None:
    assert escape("50 % of A & B_1 #2 {x} ~ ^ $ \\") == (
        r"50 \% of A \& B\_1 \#2 \{x\} \textasciitilde{} \textasciicircum{} \$ \textbackslash{}"
    )


@pytest.mark.parametrize("which", ["partial", "mini"])
def test_all_tables_compile(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is not installed")
    root = request.getfixturevalue(which)
    body = "".join(rendered(root, name).tex + "\\clearpage\n" for name in TABLES)
    packages = "\\usepackage{booktabs,graphicx,longtable,xcolor}\\usepackage[margin=2.2cm]{geometry}"
    text = f"\\documentclass[a4paper]{{article}}{packages}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "tables.tex").write_text(text)
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "File `" in done.stdout and "not found" in done.stdout:
        pytest.skip("a LaTeX package is not installed")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout


def test_choices_are_looked_up_with_the_overrides_of_datasets() -> None:
    settings = {"training": {"epochs": 20}, "datasets": {"a": {"overrides": {"training": {"epochs": 5}}}}}
    assert setting_text("training.epochs", settings, {}) == "20; a: 5"
    with pytest.raises(InputError, match=r"training\.epoch'"):
        setting_text("training.epoch", settings, {})


def test_choices_are_those_of_the_runs_whatever_the_settings_say_now() -> None:
    overrides: dict[str, dict[str, object]] = {"a": {"training": {"epochs": 5}}, "b": {}, "c": {}}
    settings = {"training": {"epochs": 20}, "datasets": {key: {"overrides": own} for key, own in overrides.items()}}
    ran = {key: [{"training": {"epochs": n}} for n in epochs] for key, epochs in {"a": [20, 20], "b": [40, 30]}.items()}
    assert setting_text("training.epochs", settings, ran) == "20; b: 40 or 30"
    assert setting_text("training.epochs", settings, {"a": [{"threads": 2}]}) == "20; a: 5"


def test_a_choice_that_is_a_block_is_that_of_the_runs_that_read_all_of_it() -> None:
    settings = {"gp": {"points": 64, "epochs": 10}, "datasets": {"a": {"overrides": {}}}}
    assert setting_text("gp", settings, {"a": [{"gp": {"points": 64}}]}) == "points 64, epochs 10"
    ran = [{"gp": {"points": 64}}, {"gp": {"points": 64, "epochs": 20}}]
    assert setting_text("gp", settings, {"a": ran}) == "points 64, epochs 10; a: points 64, epochs 20"


def test_every_choice_names_a_setting_that_exists(partial: Path) -> None:
    frame = rendered(partial, "tableS1").frame
    assert frame["value"].str.len().gt(0).all()
    assert frame["reason"].str.len().gt(0).all()


def test_table_s2_sets_the_papers_figures_beside_ours(partial: Path) -> None:
    tex = rendered(partial, "tableS2").tex.replace(r"\allowbreak{}", "")
    assert "60,000 images (paper: 60,000)" in tex
    assert "sha256:abababababab" in tex
    assert "unreadable: 3" in tex


def test_table_s2_states_the_papers_figures_of_what_was_not_run(partial: Path) -> None:
    rows = rendered(partial, "tableS2").frame.query("ours == 'not run'").set_index(["dataset", "quantity"])["printed"]
    assert rows["pathmnist", "Samples"] == "107,180 images"
    assert rows["sleepedf", "Recordings"] == "78 recordings"


def test_table_s2_tells_the_cohort_step_by_step_what_is_lacking_and_all_files(tmp_path: Path) -> None:
    write_evidence(tmp_path / "real", ["sleepedf", "mimic-iv"])
    further = {
        "sleepedf": {"flow": [{"step": s, "n": n, "unit": "recordings"} for s, n in (("found", 153), ("usable", 151))]},
        "mimic-iv": {"flow": [{"step": "ICU stays in the tables", "n": 94458, "unit": "stays"}], "lacking": ["PaO2"]},
    }  # fmt: skip
    files = [{"file": f"{n}.edf", "size": 10**6, "checksum": f"sha1:{n}"} for n in range(306)]
    frames = []
    for last in (files[-1], files[-1] | {"checksum": "sha1:other"}):
        for dataset, content in further.items():
            path = tmp_path / "real" / dataset / "evidence" / "dataset.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | content | {"files": [*files[:-1], last]}))
        evidence._read_description.cache_clear()
        frames.append(rendered(tmp_path / "real", "tableS2").frame.set_index(["dataset", "quantity"])["ours"])
    table, changed = frames
    assert table["sleepedf", "Recordings"] == "151 recordings"
    assert table["sleepedf", "Cohort"] == "153 recordings: found; 151 recordings: usable"
    assert table["mimic-iv", "Cohort"] == "94,458 stays: ICU stays in the tables"
    assert table["mimic-iv", "Lacking"] == "PaO2"
    assert table["sleepedf", "Files"].startswith("306 files, 306.0 MB (sha256 of their list: ")
    assert table["sleepedf", "Files"] != changed["sleepedf", "Files"], "a change of any checksum shows"


def test_table_s5_has_a_row_of_every_cell_and_the_mean_over_its_seeds(tmp_path: Path) -> None:
    root = tmp_path / "published"
    write_studies(root)
    table = rendered(root, "tableS5")
    values = pd.read_csv(root / "ablation" / "evidence" / "metrics.csv", keep_default_na=False)
    own = values[(values["model"] == "scalar_masked") & (values["rule"] == "parzen") & (values["metric"] == "accuracy")]
    row = table.frame.query(
        "dataset == 'ablation' and model == 'scalar_masked' and rule == 'parzen' and metric == 'accuracy'"
    )
    assert row["mean"].item() == pytest.approx(100 * own["value"].mean())
    assert row["low"].item() < row["mean"].item() < row["high"].item()
    training = rendered(root, "tableS11")
    above = training.frame.query("model == 'scalar_masked' and metric == 'above_floor'")["mean"].item()
    assert above == pytest.approx(1 - 0.5 - 0.1)
    assert table.tex.count(" & masked & ") == training.tex.count(" & masked & ") == 5
    assert len(table.runs) == 3 * (15 + 4)


def test_table_s7_shows_ratios_with_their_range_and_what_counting_gives(tmp_path: Path, partial: Path) -> None:
    root = tmp_path / "published"
    write_benchmark(root)
    table = rendered(root, "tableS7")
    row = table.frame.query("second == 'joint' and quantity == 'seconds'").to_dict("records")[0]
    assert 9.5 / 1.02 <= row["low"] <= row["ratio"] <= row["high"] <= 9.5 * 1.02
    assert row["counted"] == pytest.approx(9.5)
    assert f"{row['ratio']:.2f} ({row['low']:.2f}--{row['high']:.2f}) & 9.50" in table.tex
    assert "Device: cpu; threads: 2" in table.tex
    assert "Algorithm 3, the same gradient" in table.tex
    assert "as printed against sequential, all references" in table.tex
    assert [run["run"] for run in table.runs] == ["benchmark/measurements/seed0"]
    assert "not run: needs evidence=real" in rendered(partial, "tableS7").tex


def test_table_s3_counts_runs_and_their_seconds(partial: Path) -> None:
    frame = rendered(partial, "tableS3").frame.query("dataset == 'challenge2019' and model == 'gp'")
    assert frame["n"].tolist() == [5]
    assert 300 < frame["seconds"].iloc[0] < 500


def test_readme_results_go_between_the_markers(partial: Path) -> None:
    block = readme_results(Evidence.found(partial, EXPECTED), read_values(WORKFLOW / "config" / "printed_values.csv"))
    assert "| CIFAR-10 (JPEG copy) | CLaI-M | 80.46 → " in block
    assert (
        "| MIMIC-IV | not run: needs credentialed access to MIMIC-IV | 0.804 to 0.848 → -- | 0.635 to 0.714 → -- | 0 |"
        in block
    )
    assert all("→" not in line for line in block.splitlines() if line.startswith("| Challenge 2019")), "other data"
    assert max(line.count("|") for line in block.splitlines()) == 6
    readme = "a\n<!-- results:begin -->\nold\n<!-- results:end -->\nb\n"
    replaced = replace_block(readme, "results", block)
    assert "old" not in replaced
    assert replace_block(replaced, "results", block) == replaced
    with pytest.raises(InputError, match="results:begin"):
        replace_block("nothing", "results", block)


def test_studies_on_the_same_images_are_told_apart(tmp_path: Path) -> None:
    root = tmp_path / "published"
    write_studies(root)
    table = rendered(root, "tableS5")
    assert len(set(table.frame.groupby("dataset")["data"].first())) == 2
    for study in ("ablation", "decisive"):
        assert f"study {study}: encoder width 32, 20 epochs" in table.tex


def test_table_s12_has_validation_and_test_accuracy_and_the_times_of_each_method(tmp_path: Path) -> None:
    root = tmp_path / "published"
    write_studies(root)
    table = rendered(root, "tableS12")
    own = table.frame[table.frame["model"] == "supervised-contrastive"].set_index("metric")
    assert own.loc["training_minutes", "mean"] == pytest.approx(20 * 11 / 60)
    assert own.loc["validation_accuracy", "mean"] == pytest.approx(50)
    values = pd.read_csv(root / "wide" / "evidence" / "metrics.csv", keep_default_na=False)
    test = values.query("model == 'supervised-contrastive' and rule == 'printed' and metric == 'accuracy'")["value"]
    assert own.loc["accuracy", "mean"] == pytest.approx(100 * test.mean())
    assert own.loc["cpu_minutes", "mean"] == pytest.approx(11 / 60)
    assert "study wide: trunk of width 48, 20 epochs, 1 thread(s)" in table.tex
    assert "study sprint: " in table.tex
    assert len(table.runs) == 3 * (4 + 2)


def test_table_s13_has_the_best_trial_first(tmp_path: Path) -> None:
    root = tmp_path / "published"
    write_studies(root, gain=0.1)
    assert list(dict.fromkeys(rendered(root, "tableS13").frame["model"])) == ["full_zero", "full_product"]
    write_studies(root, gain=-0.1)
    evidence._read_csv.cache_clear()
    assert list(dict.fromkeys(rendered(root, "tableS13").frame["model"])) == ["full_product", "full_zero"]


def test_the_decision_rules_of_a_dataset_that_was_not_run_are_one_row(partial: Path) -> None:
    frame = rendered(partial, "tableS4").frame
    missing = frame[frame["n"] == 0]
    assert sorted(missing["dataset"]) == ["mimic-iv", "pathmnist", "sleepedf", "sleepedf-bands"]
    assert missing[["model", "rule", "metric", "mean"]].isna().all(axis=None)
    assert set(frame.query("dataset == 'cifar10'")["metric"]) == {"accuracy", "roc_auc", "ece"}


def test_comparisons_carry_intervals_and_adjusted_p_values_and_name_what_is_not_computed(tmp_path: Path) -> None:
    root = tmp_path / "published"
    write_evidence(root, ["cifar10", "pathmnist"])
    (root / "pathmnist" / "evidence" / "comparisons.csv").unlink()
    table = rendered(root, "tableS16")
    row = table.frame.query("other == 'cross-entropy' and metric == 'accuracy'")
    assert row[["value", "low", "high"]].to_numpy().tolist() == [[pytest.approx(v) for v in (-1.0, -2.5, 0.5)]]
    assert row["p_holm"].item() == pytest.approx(8 * 0.01), "two smaller p-values stand among the ten"
    assert "$-1.00$ [$-2.50$, $+0.50$]" in table.tex
    assert "adjusted for the 10 comparisons" in table.tex
    assert "$<$0.001" not in table.tex
    path = root / "cifar10" / "evidence" / "comparisons.csv"
    compared = pd.read_csv(path)
    compared["p"] = compared["p"].replace({0.01: 1.8e-118, 0.002: 0.0})
    compared.to_csv(path, index=False)
    evidence._read_csv.cache_clear()
    tex = rendered(root, "tableS16").tex
    assert tex.count("$<$0.001 & $<$0.001") == 4, "accuracy and ROC-AUC of two pairs"
    assert "e-118" not in tex
    assert {record["run"].split("/")[1] for record in table.runs} == {"clai-m", "clai-c", "cross-entropy"}
    missing = table.frame.query("dataset == 'pathmnist'")
    assert missing["data"].tolist() == ["not computed: its evidence has no comparisons.csv"]
    assert "PathMNIST}, \\emph{not computed" in table.tex


def test_every_reading_of_intensive_care_has_both_kernels_and_their_paired_difference(tmp_path: Path) -> None:
    root = tmp_path / "real"
    write_evidence(root, ["challenge2019"], gain=0.1)
    study = root / "printed-loss" / "evidence"
    shutil.copytree(root / "challenge2019" / "evidence", study)
    metrics = pd.read_csv(study / "metrics.csv", keep_default_na=False)
    metrics["model"] = metrics["model"].replace({"clai-m": "full_unweighted", "clai-c": "cosine_unweighted"})
    metrics.query("shares != 'equal'").to_csv(study / "metrics.csv", index=False)

    table = rendered(root, "tableS15")
    frame = table.frame
    readings = frame[["loss", "shares", "rule"]].drop_duplicates()
    assert len(readings) == 2 * 2 * 2
    of_metric = frame.query("loss == 'balanced' and shares == 'population' and rule == 'printed' and metric == 'ece'")
    m, c, gap = of_metric["mean"]
    assert gap == pytest.approx(m - c)
    assert of_metric["high"].iloc[2] < 0, "CLaI-M was made better"
    assert f"{gap:.3f}$^*$" in table.tex
    lacking = frame.query("loss == 'printed' and shares == 'equal'")
    assert lacking["mean"].isna().all()
    assert (lacking["n"] == 0).all()
    assert frame.query("loss == 'printed' and shares == 'population'")["mean"].notna().all()
