"""The settings of runs: merged from the configuration, and narrowed to what a run reads.

The defaults are in config.yaml and workflow/config/. A dataset's `overrides` change them for its runs, then what its tuning
chose for a model (`tuned`), then a user's `own` overrides. For the runs of a cell, a study's overrides and its variants come
last. Settings are nested dictionaries; a dotted key such as `training.epochs` names one of a block.
"""

import copy
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from clailearn.errors import InputError
from replication.runs.config_check import check, nested
from replication.runs.registry import (
    BENCHMARK,
    MODELS,
    NETWORK_SETTINGS,
    PREFIX,
    REPOSITORY_DATASETS,
    SPLIT_SETTINGS,
    read_yaml,
)
from replication.runs.run import RunId

DEFAULTS = (
    "config.yaml",
    "workflow/config/datasets.yaml",
    "workflow/config/studies.yaml",
    "workflow/config/tuning.yaml",
    "workflow/config/baselines.yaml",
)
"""Files of the defaults, relative to the repository; no two of them set the same key."""
MINIATURE, AFTERNOON = "workflow/config/mini.yaml", "workflow/config/afternoon.yaml"
USES = {"real": None, "mini": MINIATURE, "afternoon": AFTERNOON}
"""The uses of the pipeline, which name their folders below results/, and the file whose settings win over all others."""
OWN_DEFAULTS = "workflow/config/own.yaml"

SEEDS = ("seeds", "model_seeds", "variant_seeds")
_NOT_OF_A_DATASET = ("datasets", "studies", "variants", "tuning", "tuned", "own", "pathvars")
_NOT_OF_PREPARATION = (
    "overrides", "models", "needs", "limits", "credentialed", "substitute_for", "class_labels",
)  # fmt: skip


def load_settings(repository: Path, own: Mapping[str, Any] | None = None, use: str = "real") -> dict[str, Any]:
    """Return the settings of all files, merged with a user's own and checked, and the tunings among the `studies`.

    On real data the user's win over everything; text among them becomes what it stands for. Miniature and afternoon are
    fixtures: their settings win over the user's. What these say of the repository's datasets, such as paths, reaches the
    afternoon, as does a `run` that leaves datasets out, and not the miniature.

    use: a key of `USES`.
    """
    own = merge(own or {})
    # The miniature's data have the form that the repository's files say.
    if use == "mini" and isinstance(own.get("datasets"), dict):
        own["datasets"] = {name: e for name, e in own["datasets"].items() if name not in REPOSITORY_DATASETS}
    models = {"variants": {name: {"model": name} for name in MODELS}}
    defaults = [{"miniature": False} | models, *(read_yaml(repository / file) for file in DEFAULTS)]
    fixture = USES[use]
    settings = merge(*defaults, own)
    complete(settings, own, read_yaml(repository / OWN_DEFAULTS))
    settings = merge(settings, read_yaml(repository / fixture) if fixture else {})
    if fixture == AFTERNOON and isinstance(own.get("run"), list):
        settings["run"] = [name for name in settings["run"] if name in own["run"]]
    check(settings, own)
    settings |= {"use": use, "own": {} if fixture else own, "pathvars": folders(use, settings["evidence"])}
    overrides = [entry["overrides"] for entry in settings["datasets"].values()]
    for block in (settings, *overrides, *settings["studies"].values()):
        block |= {key: _moved(block[key], settings["seed_base"]) for key in SEEDS if key in block}
    settings["studies"] |= tuning_studies(settings)
    if settings["run_studies"] == "all":
        settings["run_studies"] = [*settings["studies"], BENCHMARK]
    return settings


def folders(use: str, evidence: str) -> dict[str, str]:
    """Return the folders of a use of the pipeline, by the names that rules give them, such as `<results>`."""
    below = "" if use == "real" else f"/{use}"
    return {
        "results": f"results/{use}",
        "evidence": f"results/{evidence if use == 'real' else use}",
        "figures": f"paper_figures{below}",
        "report": f"report{below}",
        "logs": f"logs/{use}",
    }


def _moved(seeds: Any, base: int) -> Any:
    """Return seeds, or those by model or variant, with `base` added to each."""
    if isinstance(seeds, dict):
        return {key: _moved(own, base) for key, own in seeds.items()}
    return seeds if seeds is None else [seed + base for seed in seeds]


def complete(settings: dict[str, Any], own: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Fill in, in place, what the entries of a user's own datasets do not say."""
    entries = own.get("datasets")
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if name not in REPOSITORY_DATASETS and isinstance(entry, dict):
            title = str(name).replace("-", " ").capitalize()
            told = {"title": title, "needs": f"{title} (set datasets.{name}.path)"}
            given = merge(defaults["all"], defaults.get(str(entry.get("source")), {}), told)
            everywhere = {key: own[key] for key in given["overrides"] if key in own}
            settings["datasets"][name] = merge(given, {"overrides": everywhere}, entry)


def merge(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested dictionaries laid over one another, the last one on top.

    >>> merge({"training": {"epochs": 16, "samples": 1000}}, {"training": {"samples": None}})
    {'training': {'epochs': 16, 'samples': None}}
    """
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            below = result.get(key)
            if isinstance(value, dict):  # Mapping, which yaml never makes, would take ten times as long to ask for.
                result[key] = merge(below if isinstance(below, dict) else {}, value)
            else:
                result[key] = copy.deepcopy(value) if isinstance(value, list) else value
    return result


def select(settings: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return these settings and no others, in their blocks; raise InputError for a key that names none.

    >>> select({"seeds": [0], "training": {"epochs": 16, "samples": None}}, ["training.epochs"])
    {'training': {'epochs': 16}}
    """
    found: dict[str, Any] = {}
    for dotted in keys:
        value: Any = settings
        for key in dotted.split("."):
            if key not in value:
                raise InputError(
                    f"setting {dotted}: found none in the configuration, expected a default; add it to config.yaml or a file "
                    "of workflow/config/"
                )
            value = value[key]
        found[dotted] = value
    return nested(found)


class Settings(dict[str, Any]):
    """The settings that a rule passes on to a job. Reading another one is an error that names its key and the rule."""

    def __init__(self, settings: Mapping[str, Any], rule: str, block: str = "") -> None:
        parts = {
            key: Settings(value, rule, f"{block}{key}.") if isinstance(value, dict) else value
            for key, value in settings.items()
        }
        super().__init__(parts)
        self.rule, self.block = rule, block

    def __missing__(self, key: str) -> Any:
        raise InputError(
            f"setting {self.block}{key}: the rule {self.rule} does not pass it on, expected it among the settings of its params. "
            "Add it there or, if one model alone reads it, to the `reads` of this model in workflow/config/models.yaml"
        )


def pass_on(settings: Mapping[str, Any], model: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return these settings, the model's name and what it reads beyond them, by its entry in the registry.

    `registry` is what that entry says of its class and kernel: another class or kernel is another run.
    """
    entry = MODELS[model]
    return {
        **select({**settings, "model": model}, ["model", *keys, *entry.reads]),
        "registry": [entry.fit, entry.kernel],
    }


def dataset_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset's runs, its overrides merged in; its own entry is under `dataset`."""
    entry = settings["datasets"][dataset]
    shared = {key: value for key, value in settings.items() if key not in _NOT_OF_A_DATASET}
    own = {key: value for key, value in entry.items() if key not in _NOT_OF_PREPARATION}
    return merge(shared, entry["overrides"]) | {"dataset": own}


def model_settings(settings: Mapping[str, Any], dataset: str, model: str) -> dict[str, Any]:
    """Return the settings of a model's runs on a dataset: its defaults, what its tuning chose, a user's own overrides."""
    return merge(dataset_settings(settings, dataset), *_chosen(settings, dataset, dataset, model))


def _chosen(
    settings: Mapping[str, Any], tuning: str, dataset: str, model: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what the trials of a tuning chose for a model, and a user's own overrides of the dataset, which win over it."""
    tuned = (settings["tuned"] or {}).get(tuning, {}).get(model, {})
    return tuned, settings["own"].get("datasets", {}).get(dataset, {}).get("overrides", {})


def cells(settings: Mapping[str, Any], study: str) -> dict[str, dict[str, str]]:
    """Return the cells of a study: by name, such as full_zero, the variant of each factor."""
    return {
        "_".join(variants): dict(zip(combination, variants, strict=True))
        for combination in settings["studies"][study]["combine"]
        for variants in itertools.product(*combination.values())
    }


def study_settings(settings: Mapping[str, Any], study: str, *chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the cells of a study share: its dataset's settings, those `chosen` for a model, then the study's overrides."""
    entry = settings["studies"][study]
    scored = {"scored_on": entry["scored_on"]}
    return merge(dataset_settings(settings, entry["dataset"]), *chosen, entry.get("overrides", {}), scored)


def cell_settings(settings: Mapping[str, Any], study: str, cell: str) -> dict[str, Any]:
    """Return the settings of a cell's runs, with `model`: its study's, `tuned` ones first, then its variants' or trial's."""
    entry = settings["studies"][study]
    if "tuning" in entry:
        variants = [trial_settings(settings, study, cell)]
    else:
        variants = [settings["variants"][name] for name in cells(settings, study)[cell].values()]
    varied = merge({"model": "clai-m"}, *variants)
    chosen = _chosen(settings, entry["tuned"], entry["dataset"], varied["model"]) if "tuned" in entry else ()
    return merge(study_settings(settings, study, *chosen), varied)


# Tunings: for each model of a dataset the same number of trials, drawn from a stated space, as the cells of a study


def trials(space: Mapping[str, Mapping[str, Any]], number: int, seed: int) -> list[dict[str, Any]]:
    """Return the settings of each trial, in their blocks; those of the first are empty.

    space: by dotted setting its distribution, `loguniform: [low, high]`, rounded to two significant digits, or `choice: values`.

    >>> trials({"training.learning_rate": {"loguniform": [0.001, 0.1]}}, 3, 0)
    [{}, {'training': {'learning_rate': 0.013}}, {'training': {'learning_rate': 0.027}}]
    """
    # The imports are slow, and most of what reads the settings draws nothing.
    from scipy import stats
    from sklearn.model_selection import ParameterSampler

    distributions = {
        setting: entry["choice"] if "choice" in entry else stats.loguniform(*entry["loguniform"])
        for setting, entry in space.items()
    }
    drawn = [
        {key: value if "choice" in space[key] else float(f"{value:.2g}") for key, value in sorted(trial.items())}
        for trial in ParameterSampler(distributions, number - 1, random_state=seed)
    ]
    return [{}, *map(nested, drawn)]


def tuning_studies(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the studies that the tunings are, by name; `tuning` is its key."""
    studies = {}
    for name, tuning in settings["tuning"].items():
        studies[f"{PREFIX}{name}"] = {
            "dataset": tuning.get("dataset", name),
            "tuning": name,
            **{key: tuning[key] for key in ("scored_on", "seeds", "overrides")},
            "combine": [{"model": list(tuning["spaces"]), "trial": [f"trial{n}" for n in range(tuning["trials"])]}],
        }
    return studies


def trial_settings(settings: Mapping[str, Any], study: str, cell: str) -> dict[str, Any]:
    """Return the model of a trial and, in their blocks, the settings that it draws."""
    model, _, number = cell.rpartition("_trial")
    tuning = settings["tuning"][settings["studies"][study]["tuning"]]
    return {"model": model, **trials(tuning["spaces"][model], tuning["trials"], tuning["seeds"][0])[int(number)]}


# Runs


def runs_of_model(settings: Mapping[str, Any], dataset: str, model: str) -> list[RunId]:
    """Return the runs of a model on a dataset: one a seed, and one a fold where the dataset has folds."""
    overrides = settings["datasets"][dataset]["overrides"]
    own_seeds = settings["model_seeds"] | overrides.get("model_seeds", {})
    seeds = own_seeds.get(model, seeds_of(settings, dataset))
    return [RunId(dataset, model, seed, fold) for seed in seeds for fold in folds_of(settings, dataset)]


def seeds_of(settings: Mapping[str, Any], dataset: str) -> Sequence[int]:
    """Return the seeds of a dataset's runs, save those of models with `model_seeds`."""
    return settings["datasets"][dataset]["overrides"].get("seeds", settings["seeds"])


def runs_of_study(settings: Mapping[str, Any], study: str) -> list[RunId]:
    """Return the runs of all cells of a study: one a seed and, where it is scored on folds, one a fold."""
    entry = settings["studies"][study]
    own_seeds = entry.get("variant_seeds") or {}
    folds = [None] if entry["scored_on"] == "development" else folds_of(settings, entry["dataset"])
    folds = folds[:1] if "tuning" in entry else folds  # trials have the first alone
    return [
        RunId(study, cell, seed, fold)
        for cell, variants in cells(settings, study).items()
        for seed in next((own_seeds[name] for name in variants.values() if name in own_seeds), entry["seeds"])
        for fold in folds
    ]


def folds_of(settings: Mapping[str, Any], dataset: str) -> Sequence[int | None]:
    """Return the numbers of a dataset's test folds; None alone for a dataset without folds."""
    folds = settings["datasets"][dataset].get("folds")
    return [None] if folds is None else range(folds)


def has_recordings(settings: Mapping[str, Any], dataset: str) -> bool:
    """Return whether a dataset holds recordings, which alone have folds; the others hold samples of two classes or more."""
    return "folds" in settings["datasets"][dataset]


def raw_dataset(settings: Mapping[str, Any], dataset: str) -> str:
    """Return the dataset that owns the raw files: the one that `raw_of` names, or the dataset itself."""
    return str(settings["datasets"][dataset].get("raw_of", dataset))


def data_of(settings: Mapping[str, Any], name: str) -> str:
    """Return the dataset that a dataset or study is trained on."""
    return str(settings["studies"][name]["dataset"] if name in settings["studies"] else name)


def training_samples(settings: Mapping[str, Any], name: str) -> int | None:
    """Return the number of training samples that the runs of a dataset or study draw; None for all."""
    own = study_settings(settings, name) if name in settings["studies"] else dataset_settings(settings, name)
    return own["training"]["samples"]


def source_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset that decide which raw files it has; a change of another one verifies nothing again."""
    deciding = ("source", "path", "medmnist_flag", "medmnist_size", "subjects", "nights", "options")
    return {key: value for key, value in settings["datasets"][dataset].items() if key in deciding}


def preparation_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings that decide a dataset's prepared form; `memory_gb` only bounds memory."""
    apart = (*_NOT_OF_PREPARATION, "memory_gb")
    return {key: value for key, value in settings["datasets"][dataset].items() if key not in apart}


def effective_settings(settings: Mapping[str, Any], name: str, model: str) -> dict[str, Any]:
    """Return what decides the runs of a model on a dataset, or of a cell (`model`) of a study (`name`)."""
    if name in settings["studies"]:
        _expect(model, cells(settings, name), f"cells of the study {name}")
        merged = cell_settings(settings, name, model)
        runs = [run for run in runs_of_study(settings, name) if run.cell == model]
    else:
        _expect(name, [*settings["datasets"], *settings["studies"]], "datasets and studies")
        _expect(model, settings["datasets"][name]["models"], f"models of the dataset {name}")
        merged = {**model_settings(settings, name, model), "model": model}
        runs = runs_of_model(settings, name, model)
    read = NETWORK_SETTINGS if MODELS[merged["model"]].of == "samples" else ("training.samples",)
    keys = ["dataset", "split_seed", "threads", *SPLIT_SETTINGS, *read]
    return {"runs": [str(run) for run in runs], **pass_on(merged, merged["model"], keys)}


def _expect(name: str, names: Collection[str], kind: str) -> None:
    if name not in names:
        raise InputError(f"found '{name}', expected one of the {kind}: {', '.join(names)}; correct the name")


def chosen_trial(means: Sequence[float], error: float) -> int:
    """Return the number of the trial that is chosen: the one with the best mean score, the first of equals.

    Where the dataset's own settings, those of trial 0, are within one standard error of it, they stay.

    >>> chosen_trial([0.70, 0.72, 0.72], error=0.01), chosen_trial([0.70, 0.705], error=0.01)
    (1, 0)
    >>> chosen_trial([0.70, 0.705, 0.705], error=float("nan"))  # one seed has no error
    1
    """
    best = max(means)
    return 0 if means[0] >= best - (0.0 if isnan(error) else error) else list(means).index(best)
