"""Trials: the same number for every model, drawn from its space alone, the settings of today first; the best ones are in use."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.evidence import Evidence
from replication.report.tables.layout import Sources
from replication.report.tables.render import render
from replication.report.tables.supplement_studies import best_trials
from replication.runs.record import read_records, write_records
from replication.runs.settings import (
    cell_settings,
    cells,
    dataset_settings,
    load_settings,
    merge,
    model_settings,
    runs_of_study,
)
from replication.runs.tuning import PREFIX, trial_settings, trials
from support.evidence_fixture import write_evidence

REPOSITORY = Path(__file__).parents[2]
REAL = load_settings(REPOSITORY)
SPACE = {
    "training.learning_rate": {"loguniform": [0.001, 0.1]},
    "training.warmup": {"uniform": [0.1, 0.3]},
    "baselines.student_t_mixture.components": {"choice": [[1], [2, 4]]},
}


def flat(settings: dict, above: str = "") -> dict:
    """Return settings by dotted key."""
    result = {}
    for key, value in settings.items():
        result |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return result


def test_trials_repeat_and_stay_inside_their_space() -> None:
    drawn = trials(SPACE, 40, 1)
    assert drawn == trials(SPACE, 40, 1) != trials(SPACE, 40, 2)
    assert (len(drawn), drawn[0]) == (40, {})
    for trial in map(flat, drawn[1:]):
        assert trial.keys() == SPACE.keys()
        assert 0.001 <= trial["training.learning_rate"] <= 0.1
        assert 0.1 <= trial["training.warmup"] <= 0.3
        assert trial["baselines.student_t_mixture.components"] in ([1], [2, 4])
    # Half of a log-uniform draw lies below the geometric mean, where of a uniform one a tenth would.
    assert 10 <= sum(flat(trial)["training.learning_rate"] < 0.01 for trial in drawn[1:]) <= 30


def test_range_with_whole_ends_gives_whole_numbers() -> None:
    drawn = [flat(trial)["training.epochs"] for trial in trials({"training.epochs": {"uniform": [4, 20]}}, 9, 0)[1:]]
    assert {type(epochs) for epochs in drawn} == {int}
    assert 4 <= min(drawn) < max(drawn) <= 20


def test_space_with_fewer_combinations_than_trials_is_refused() -> None:
    space = {"training.epochs": {"choice": [1, 2]}, "training.batch_size": {"choice": [8, 16, 32]}}
    assert len(trials(space, 7, 0)) == 7
    with pytest.raises(InputError, match="found 6 combinations, expected at least 7 for 8 trials"):
        trials(space, 8, 0)


def test_range_with_its_ends_exchanged_is_refused() -> None:
    with pytest.raises(InputError, match=r"loguniform of training\.learning_rate: found \[0\.1, 0\.001\], expected"):
        trials({"training.learning_rate": {"loguniform": [0.1, 0.001]}}, 2, 0)


@pytest.mark.parametrize("dataset", REAL["tuning"])
def test_every_model_has_as_many_trials_which_differ_in_its_space_alone(dataset: str) -> None:
    tuning, study = REAL["tuning"][dataset], PREFIX + dataset
    of_study = cells(REAL, study)
    assert len(of_study) == len(tuning["models"]) * tuning["trials"]
    for model in tuning["models"]:
        settings = [flat(cell_settings(REAL, study, f"{model}_trial{n}")) for n in range(tuning["trials"])]
        assert [s["model"] for s in settings] == [model] * tuning["trials"]
        assert settings[0] == flat(merge(dataset_settings(REAL, dataset), tuning["overrides"])) | {
            "model": model,
            "scored_on": tuning["scored_on"],
        }
        changed = {key for s in settings for key in s if s[key] != settings[0][key]}
        assert changed == tuning["spaces"][model].keys()


def test_recordings_are_tuned_on_development_patients_or_on_their_first_fold_alone() -> None:
    own = {"tuning": {"challenge2019": {"scored_on": "validation"}}}
    assert {run.fold for run in runs_of_study(REAL, "tuning-challenge2019")} == {None}
    assert {run.fold for run in runs_of_study(load_settings(REPOSITORY, own), "tuning-challenge2019")} == {0}


def test_tuned_settings_are_those_of_one_model_and_of_no_trial() -> None:
    own = {"tuned": {"cifar10": {"clai-c": {"training": {"learning_rate": 0.0077}}}}}
    tuned = load_settings(REPOSITORY, own)
    assert model_settings(tuned, "cifar10", "clai-c")["training"]["learning_rate"] == 0.0077
    assert model_settings(tuned, "cifar10", "clai-m") == model_settings(REAL, "cifar10", "clai-m")
    for cell in cells(REAL, "tuning-cifar10"):
        assert cell_settings(tuned, "tuning-cifar10", cell) == cell_settings(REAL, "tuning-cifar10", cell)
    assert load_settings(REPOSITORY, own, mini=True)["tuned"] is None


def test_a_dataset_is_tuned_as_one_with_the_same_development_patients() -> None:
    other, own = (dict(REAL["datasets"][name]) for name in ("challenge2019", "challenge2019-hospitals"))
    differing = {key for key in other | own if other.get(key) != own.get(key)}
    assert differing == {"title", "folds", "models", "raw_of", "tuned_as"}
    for model in own["models"]:
        runs = [flat(model_settings(REAL, name, model)) for name in ("challenge2019", "challenge2019-hospitals")]
        assert {key for key in runs[0] if not key.startswith("dataset.") and runs[0][key] != runs[1][key]} == set()


def test_a_study_of_another_reading_has_the_tuned_settings_of_the_models_own_runs() -> None:
    cell, runs = cell_settings(REAL, "printed-loss", "full_unweighted"), model_settings(REAL, "challenge2019", "clai-m")
    differing = {key for key, value in flat(runs).items() if flat(cell)[key] != value}
    assert differing == {"training.pair_weighting"}
    assert cell["training"]["batch_size"] == REAL["tuned"]["challenge2019"]["clai-m"]["training"]["batch_size"]


SCORES = {"clai-m": (0.7, 0.8, 0.8), "clai-c": (0.75, 0.7, 0.6)}
RATES = (0.002, 0.005, 0.001)
BEST_RATES = {"clai-m": 0.005, "clai-c": 0.002}


def write_tuning(root: Path, seeds: int = 3, rates: Mapping[str, float] = BEST_RATES) -> Evidence:
    """Write evidence of a tuning of two models with three trials each, and of the dataset's runs, with these learning rates."""
    folder = root / "tuning-cifar10" / "evidence"
    folder.mkdir(parents=True)
    rows, records = [], []
    for model, scores in SCORES.items():
        for n, (score, rate) in enumerate(zip(scores, RATES, strict=True)):
            cell = f"{model}_trial{n}"
            rows.append(("tuning-cifar10", cell, 0, "", "printed", "population", "accuracy", score))
            records.append({
                "run": f"tuning-cifar10/{cell}/seed0", "commit": "0" * 40, "dirty": False, "data": {}, "seed": 0, "fold": None,
                "settings": {"threads": 1, "training": {"learning_rate": rate, "batch_size": 64}}, "threads": 1,
                "device": "cpu", "hardware": "test, 1 core", "versions": {}, "wall_seconds": 70.0, "cpu_seconds": 60.0,
                "peak_memory_mb": 1, "pairs": None, "command": "snakemake x",
            })  # fmt: skip
    columns = ["dataset", "model", "seed", "fold", "rule", "shares", "metric", "value"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "metrics.csv", index=False)
    write_records(folder, records)
    description = {"title": "CIFAR-10", "licence": "MIT", "dataset": "cifar10", "miniature": False}
    (folder / "dataset.json").write_text(json.dumps(description))
    write_evidence(root, ["cifar10"], seeds=seeds)
    runs = read_records(root / "cifar10" / "evidence")
    for run in runs:
        rate = rates.get(run["run"].split("/")[1])
        run["settings"] = {**run["settings"], "training": {"learning_rate": rate, "batch_size": 64}}
    write_records(root / "cifar10" / "evidence", runs)
    names = ("tuning-cifar10", "tuning-pathmnist", "cifar10")
    expected = {name: {"title": name, "needs": "data"} for name in names}
    return Evidence.found(root, expected)


def test_table_s17_has_every_trial_the_best_of_each_method_and_its_test_score(tmp_path: Path) -> None:
    evidence = write_tuning(tmp_path / "published")
    assert best_trials(evidence, "tuning-cifar10") == {"clai-m": 1, "clai-c": 0}
    sources = Sources(evidence, pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), {})
    table = render("tableS17", sources, (REPOSITORY / "workflow/report/tableS17.rst").read_text())
    trials_of = table.frame[table.frame["trial"].notna()]
    assert trials_of["mean"].tolist() == pytest.approx([100 * s for scores in SCORES.values() for s in scores])
    assert trials_of.loc[trials_of["chosen"], "model"].tolist() == ["clai-m_trial1", "clai-c_trial0"]
    assert trials_of["settings"].tolist() == [f"learning_rate {rate}" for rate in RATES] * 2
    test = evidence.metrics("cifar10").query("model == 'clai-m' and metric == 'accuracy'")["value"]
    tested = table.frame[table.frame["trial"].isna()].set_index("model")
    assert tested.loc["clai-m", "mean"] == pytest.approx(100 * test.mean())
    assert tested.loc["clai-m", "low"] < 100 * test.mean() < tested.loc["clai-m", "high"]
    assert "CLaI-M & 3 & 80.00 & \\raggedright learning\\_rate 0.005 & 3.0 &" in table.tex
    assert "not run: needs data" in table.tex
    assert len(table.runs) == 6 + 3 * 2


def test_runs_with_other_settings_than_the_best_trial_are_no_test_of_it(tmp_path: Path) -> None:
    evidence = write_tuning(tmp_path / "published", rates=BEST_RATES | {"clai-c": 0.001})
    sources = Sources(evidence, pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), {})
    table = render("tableS17", sources, "")
    assert table.frame.loc[table.frame["trial"].isna(), "model"].tolist() == ["clai-m"]
    assert "CLaI-C & 3 & 75.00 & \\raggedright learning\\_rate 0.002 & 3.0 & --" in table.tex


def test_a_test_score_of_one_seed_has_the_interval_over_test_samples(tmp_path: Path) -> None:
    evidence = write_tuning(tmp_path / "published", seeds=1)
    path = evidence.path("cifar10", "comparisons.csv")
    row = ("clai-m", "", "accuracy", 0.8, 0.79, 0.82, None, 10000, 1, 1000)
    compared = pd.read_csv(path)
    pd.concat([compared, pd.DataFrame([row], columns=compared.columns)]).to_csv(path, index=False)
    sources = Sources(evidence, pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), {})
    table = render("tableS17", sources, "")
    tested = table.frame[table.frame["trial"].isna()].set_index("model")
    assert tested.loc["clai-m", ["low", "high"]].tolist() == pytest.approx([79.0, 82.0])
    assert tested.loc["clai-c", ["low", "high"]].isna().all(), "its comparisons have no such row"
    assert "[79.00, 82.00]" in table.tex


@pytest.mark.parametrize(("best", "chosen"), [(0.705, 0), (0.72, 1)])
def test_settings_of_the_dataset_stay_within_one_standard_error_of_the_best(
    tmp_path: Path, best: float, chosen: str
) -> None:
    evidence = write_tuning(tmp_path / "published")
    path = evidence.path("tuning-cifar10", "metrics.csv")
    first = pd.read_csv(path).query("model.str.startswith('clai-m')").assign(value=[0.7, best, 0.6])
    # Each trial has a standard deviation of 0.0141 over two seeds, and its mean an error of 0.01.
    pd.concat([first.assign(seed=n, value=first["value"] + shift) for n, shift in ((0, 0.01), (1, -0.01))]).to_csv(path)
    assert best_trials(evidence, "tuning-cifar10") == {"clai-m": chosen}


@pytest.mark.parametrize("dataset", REAL["tuning"])
def test_runs_have_the_settings_of_the_best_published_trials(dataset: str) -> None:
    tuning = PREFIX + dataset
    evidence = Evidence.found(REPOSITORY / "results" / "published", {tuning: {"title": tuning, "needs": ""}})
    if not evidence.has(tuning):
        pytest.skip(f"no evidence of {tuning} is published")
    best = best_trials(evidence, tuning)
    assert best.keys() == set(REAL["tuning"][dataset]["models"])
    drawn = {m: trial_settings(REAL, tuning, f"{m}_trial{trial}") for m, trial in best.items()}
    chosen = {m: {k: v for k, v in trial.items() if k != "model"} for m, trial in drawn.items()}
    assert (REAL["tuned"] or {}).get(dataset, {}) == {m: settings for m, settings in chosen.items() if settings}
