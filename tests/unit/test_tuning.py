"""Trials: the same number for every model, drawn from its space alone, the settings of today first; the best ones are in use."""

from pathlib import Path

import pytest

from clai.errors import InputError
from clai.runs.settings import (
    cell_settings,
    cells,
    dataset_settings,
    load_settings,
    merge,
    model_settings,
    runs_of_study,
)
from clai.runs.tuning import PREFIX, trials

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


def test_space_with_fewer_combinations_than_trials_is_refused() -> None:
    space = {"training.epochs": {"choice": [1, 2]}, "training.batch_size": {"choice": [8, 16, 32]}}
    assert len(trials(space, 7, 0)) == 7
    with pytest.raises(InputError, match="found 6 combinations, expected at least 7 for 8 trials"):
        trials(space, 8, 0)


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
            "scored_on": "validation",
        }
        changed = {key for s in settings for key in s if s[key] != settings[0][key]}
        assert changed == tuning["spaces"][model].keys()


def test_recordings_are_tuned_on_their_first_fold_alone() -> None:
    assert {run.fold for run in runs_of_study(REAL, "tuning-challenge2019")} == {0}
    assert {run.fold for run in runs_of_study(REAL, "tuning-cifar10")} == {None}


def test_tuned_settings_are_those_of_one_model_and_of_no_trial() -> None:
    own = {"tuned": {"cifar10": {"clai-c": {"training": {"learning_rate": 0.0077}}}}}
    tuned = load_settings(REPOSITORY, own)
    assert model_settings(tuned, "cifar10", "clai-c")["training"]["learning_rate"] == 0.0077
    assert model_settings(tuned, "cifar10", "clai-m") == model_settings(REAL, "cifar10", "clai-m")
    for cell in cells(REAL, "tuning-cifar10"):
        assert cell_settings(tuned, "tuning-cifar10", cell) == cell_settings(REAL, "tuning-cifar10", cell)
    assert load_settings(REPOSITORY, own, mini=True)["tuned"] is None
