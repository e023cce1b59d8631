"""Tunings: for each model of a dataset the same number of trials, drawn from a stated space, as the cells of a study.

The trials of a model differ in the settings of its space alone. The first has the dataset's own settings, so that these compete;
the others are draws (`sklearn.model_selection.ParameterSampler`). All are known before anything runs. workflow/config/tuning.yaml
holds the spaces and, under `tuned`, the settings of the best trials, which the runs of a model on the dataset then have.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, sqrt
from typing import Any

PREFIX = "tuning-"
"""Before the key of a tuning, its name among the studies. The key is that of its dataset, unless it names one."""

_DIGITS = 2


def trials(space: Mapping[str, Mapping[str, Any]], number: int, seed: int) -> list[dict[str, Any]]:
    """Return the settings of each trial, in their blocks; those of the first are empty.

    space: by dotted setting its distribution, one of `loguniform: [low, high]`, `uniform: [low, high]` and `choice: values`.
    Numbers of the first two are rounded to two significant digits, and to whole numbers where both ends are whole.

    >>> trials({"training.learning_rate": {"loguniform": [0.001, 0.1]}}, 3, 0)
    [{}, {'training': {'learning_rate': 0.013}}, {'training': {'learning_rate': 0.027}}]
    """
    # The imports are slow, and most of what reads the settings draws nothing.
    from scipy import stats
    from sklearn.model_selection import ParameterSampler

    continuous = {"loguniform": stats.loguniform, "uniform": lambda low, high: stats.uniform(low, high - low)}
    distributions = {}
    for setting, ((name, values),) in ((setting, entry.items()) for setting, entry in space.items()):
        # Values may be lists, which an array of choices would take apart: their places are drawn.
        distributions[setting] = range(len(values)) if name == "choice" else continuous[name](*values)
    drawn = ParameterSampler(distributions, number - 1, random_state=seed)
    return [{}, *(_nested({key: _value(space[key], value) for key, value in trial.items()}) for trial in drawn)]


def corners(space: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return settings, in their blocks, that together have each choice and each end of a range."""
    values = {setting: next(iter(entry.values())) for setting, entry in space.items()}
    most = max(map(len, values.values()))
    return [_nested({setting: own[min(n, len(own) - 1)] for setting, own in values.items()}) for n in range(most)]


def _value(distribution: Mapping[str, Any], drawn: Any) -> Any:
    if "choice" in distribution:
        return distribution["choice"][int(drawn)]
    (ends,) = distribution.values()
    number = float(f"{float(drawn):.{_DIGITS}g}")
    return round(number) if all(isinstance(end, int) for end in ends) else number


def _nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted settings in their blocks."""
    result: dict[str, Any] = {}
    for key, value in sorted(dotted.items()):
        *blocks, last = key.split(".")
        target = result
        for block in blocks:
            target = target.setdefault(block, {})
        target[last] = value
    return result


def tuning_studies(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the studies that the tunings are, by name; `tuning` is its key, `trials` the model and number of each cell."""
    studies = {}
    for name, tuning in settings["tuning"].items():
        dataset, numbers = tuning.get("dataset", name), range(tuning["trials"])
        of_folds = "folds" in settings["datasets"][dataset] and tuning["scored_on"] != "development"
        studies[f"{PREFIX}{name}"] = {
            "dataset": dataset,
            "tuning": name,
            **{key: tuning[key] for key in ("scored_on", "seeds", "overrides")},
            "folds": [0] if of_folds else [None],
            "combine": [{"model": list(tuning["spaces"]), "trial": [f"trial{n}" for n in numbers]}],
            "trials": {f"{model}_trial{n}": (model, n) for model in tuning["spaces"] for n in numbers},
        }
    return studies


def trial_settings(settings: Mapping[str, Any], study: str, cell: str) -> dict[str, Any]:
    """Return the model of a trial and, in their blocks, the settings that it draws."""
    entry = settings["studies"][study]
    model, number = entry["trials"][cell]
    tuning = settings["tuning"][entry["tuning"]]
    return {"model": model, **trials(tuning["spaces"][model], tuning["trials"], tuning["seeds"][0])[number]}


def tuned_models(settings: Mapping[str, Any], dataset: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the settings that the trials of a dataset chose, by model."""
    tuned: Mapping[str, Any] = settings["tuned"] or {}
    return tuned.get(dataset, {})


def standard_error(deviations: Iterable[float], seeds: int) -> float:
    """Return the standard error of a trial's mean over seeds, the variance pooled over trials; nan for one seed."""
    squares = [deviation**2 for deviation in deviations]
    return sqrt(sum(squares) / len(squares) / seeds)


def chosen_trial(means: Sequence[float], error: float) -> int:
    """Return the number of the trial that is chosen: the one with the best mean score, the first of equals.

    Where the dataset's own settings, those of trial 0, are within one standard error of it, they stay.

    >>> chosen_trial([0.70, 0.72, 0.72], error=0.01), chosen_trial([0.70, 0.705], error=0.01)
    (1, 0)
    """
    best = max(means)
    return 0 if means[0] >= best - (0.0 if isnan(error) else error) else list(means).index(best)
