"""Trials: the same number for every model, drawn from its space alone, the settings of today first; the best ones are in use."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from replication.report.tables.render import trials as table_of_trials
from replication.runs.registry import PREFIX
from replication.runs.settings import (
    cell_settings,
    cells,
    dataset_settings,
    load_settings,
    merge,
    model_settings,
    runs_of_study,
    trial_settings,
    trials,
)
from support.published import PUBLISHED, copy_evidence, evidence_for, without_models
from support.repository import REAL, REPOSITORY, flat

SPACE = {
    "training.learning_rate": {"loguniform": [0.001, 0.1]},
    "baselines.student_t_mixture.components": {"choice": [[1], [2, 4]]},
}


def test_trials_repeat_and_stay_inside_their_space() -> None:
    drawn = trials(SPACE, 40, 1)
    assert drawn == trials(SPACE, 40, 1) != trials(SPACE, 40, 2)
    assert (len(drawn), drawn[0]) == (40, {})
    for trial in map(flat, drawn[1:]):
        assert trial.keys() == SPACE.keys()
        assert 0.001 <= trial["training.learning_rate"] <= 0.1
        assert trial["baselines.student_t_mixture.components"] in ([1], [2, 4])
    # Half of a log-uniform draw lies below the geometric mean, where of a uniform one a tenth would.
    assert 10 <= sum(flat(trial)["training.learning_rate"] < 0.01 for trial in drawn[1:]) <= 30


@pytest.mark.parametrize("name", REAL["tuning"])
def test_every_model_has_as_many_trials_which_differ_in_its_space_alone(name: str) -> None:
    tuning, study = REAL["tuning"][name], PREFIX + name
    of = tuning.get("dataset", name)
    of_study = cells(REAL, study)
    assert len(of_study) == len(tuning["spaces"]) * tuning["trials"]
    for model in tuning["spaces"]:
        settings = [flat(cell_settings(REAL, study, f"{model}_trial{n}")) for n in range(tuning["trials"])]
        assert [s["model"] for s in settings] == [model] * tuning["trials"]
        assert settings[0] == flat(merge(dataset_settings(REAL, of), tuning["overrides"])) | {
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
    assert load_settings(REPOSITORY, own, "mini")["tuned"] is None


@cache
def best_trials() -> pd.DataFrame:
    return table_of_trials(evidence_for("supplement/tableS3"), []).query("chosen == True")


def test_a_trial_that_is_missing_leaves_the_choice_among_the_others(tmp_path: Path) -> None:
    root = copy_evidence(tmp_path, "tuning-sleepedf-bands")
    without_models(root, ["gradient-boosting_trial1"])
    table = table_of_trials(evidence_for("supplement/tableS3", root), [])
    table = table[table["cell"].str.startswith("gradient-boosting")].set_index("cell")
    assert table.index[table["chosen"].astype(bool)].tolist() == [table["mean"].idxmax()]


@pytest.mark.parametrize("dataset", REAL["tuning"])
def test_runs_have_the_settings_of_the_best_published_trials(dataset: str) -> None:
    tuning = PREFIX + dataset
    best = best_trials().query("study == @tuning").set_index("model")["trial"].to_dict()
    if not (PUBLISHED / tuning).exists():
        pytest.skip(f"no evidence of {tuning} is published")
    assert best
    assert best.keys() <= REAL["tuning"][dataset]["spaces"].keys()  # published trials may be of some models alone
    drawn = {m: trial_settings(REAL, tuning, f"{m}_{trial}") for m, trial in best.items()}
    chosen = {m: {k: v for k, v in trial.items() if k != "model"} for m, trial in drawn.items()}
    assert (REAL["tuned"] or {}).get(dataset, {}) == {m: settings for m, settings in chosen.items() if settings}
