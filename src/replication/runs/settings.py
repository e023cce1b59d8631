"""The settings of runs: read from the configuration, merged, checked, and narrowed to what a run reads.

The defaults are in config.yaml and workflow/config/. A dataset's `overrides` change them for its runs, and what its tuning
chose for a model changes them further (`tuned`). For the runs of a cell, a study's overrides and its variants do. Settings are
nested dictionaries; a dotted key such as `training.epochs` names one of a block.
"""

import copy
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from clai.errors import InputError
from replication.runs.identity import RunId
from replication.runs.models import EMBEDDING_BASELINES, MODELS
from replication.runs.tuning import corners, trial_settings, tuned_settings, tuning_studies

DEFAULTS = (
    "config.yaml",
    "workflow/config/datasets.yaml",
    "workflow/config/studies.yaml",
    "workflow/config/tuning.yaml",
    "workflow/config/baselines.yaml",
)
"""Files of the defaults, relative to the repository; no two of them set the same key."""
MINIATURE = "workflow/config/mini.yaml"
SCHEMA = "workflow/config/schema.yaml"
BENCHMARK_DATASET = "cifar10"
"""The dataset whose settings of encoder and training are measured."""

_NOT_OF_A_DATASET = ("datasets", "studies", "variants", "tuning", "tuned")
_NOT_OF_PREPARATION = ("overrides", "models", "read_outs", "needs", "limits", "credentialed", "tuned_as")


def load_settings(
    repository: Path, overrides: Mapping[str, Any] | None = None, *, mini: bool = False
) -> dict[str, Any]:
    """Return all settings, merged and checked; the tunings are among the `studies`.

    On real data the overrides win over everything. The miniature is a fixture: its settings win over the overrides, so that a
    path to real data does not reach it.

    Args:
        repository: folder that holds config.yaml.
        overrides: the user's own settings.
        mini: whether to return the settings of the miniature data.

    Raises:
        InputError: a setting is unknown, has the wrong type, names something that is not there, or contradicts another one.
    """
    last = [read_yaml(repository / MINIATURE)] if mini else []
    try:
        settings = merge(default_settings(repository), overrides or {}, *last)
        _check_values(settings, [])
    except RecursionError:
        raise InputError(
            "config: found blocks within blocks without end, expected settings; correct your own"
        ) from None
    _check_schema(_validator(schema := _schema(repository)), settings)
    _check_tunings(settings)
    settings["studies"] |= tuning_studies(settings)
    of_trials = _validator({**schema["$defs"]["overrides"], "$defs": schema["$defs"]})
    for name, tuning in settings["tuning"].items():
        for model in tuning["models"]:
            for values in corners(tuning["spaces"][model]):
                _check_schema(of_trials, values, ("tuning", name, "spaces", model))
    _check_names(settings, repository)
    _check_agreement(settings)
    return settings


def default_settings(repository: Path) -> dict[str, Any]:
    """Return the defaults of the repository, those of real data, unchecked."""
    return merge({"miniature": False}, *(read_yaml(repository / file) for file in DEFAULTS))


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the settings in a YAML file.

    Raises:
        InputError: the file is missing, is not YAML, has an alias, or holds no mapping.
    """
    if not path.exists():
        raise InputError(
            f"{path}: found no such file, expected settings as YAML; correct the path, or go to the repository"
        )
    expected = "expected settings as YAML in UTF-8, without aliases; correct the file"
    try:
        text = path.read_text(encoding="utf-8")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # A few aliases of aliases stand for more values than fit into memory.
        for event in yaml.parse(text, Loader=loader) if "*" in text else ():
            if isinstance(event, yaml.AliasEvent):
                assert event.start_mark is not None  # every event of a text has one
                raise InputError(
                    f"{path}, line {event.start_mark.line + 1}: found the alias '*{event.anchor}', {expected}"
                )
        content = yaml.load(text, Loader=loader)
    except (InputError, MemoryError):
        raise
    except RecursionError:
        raise InputError(f"{path}: found blocks within blocks without end, {expected}") from None
    except Exception as error:  # A date that is none, or bytes of another encoding, raise errors that are not YAML's.
        raise InputError(f"{path}: found text that is not YAML ({error}), {expected}") from error
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: found {type(content).__name__}, expected a mapping of settings; correct the file")
    return dict(content)


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
    """Return these settings and no others, in their blocks.

    >>> select({"seeds": [0], "training": {"epochs": 16, "samples": None}}, ["training.epochs"])
    {'training': {'epochs': 16}}

    Raises:
        InputError: a key names no setting.
    """
    result: dict[str, Any] = {}
    for dotted in keys:
        *blocks, last = dotted.split(".")
        source, target = settings, result
        for block in blocks:
            source, target = source.get(block, {}), target.setdefault(block, {})
        if last not in source:
            raise InputError(
                f"setting {dotted}: found none in the configuration, expected a default; add it to config.yaml or a file of "
                "workflow/config/"
            )
        target[last] = source[last]
    return result


def dataset_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset's runs, its overrides merged in; its own entry is under `dataset`."""
    entry = settings["datasets"][dataset]
    shared = {key: value for key, value in settings.items() if key not in _NOT_OF_A_DATASET}
    own = {key: value for key, value in entry.items() if key not in _NOT_OF_PREPARATION}
    return merge(shared, entry["overrides"]) | {"dataset": own}


def model_settings(settings: Mapping[str, Any], dataset: str, *models: str) -> dict[str, Any]:
    """Return the settings of a dataset's runs with what its tuning chose for these models."""
    return merge(dataset_settings(settings, dataset), *(tuned_settings(settings, dataset, model) for model in models))


def cells(settings: Mapping[str, Any], study: str) -> dict[str, dict[str, str]]:
    """Return the cells of a study: by name, such as full_zero, the variant of each factor."""
    return {
        "_".join(variants): dict(zip(combination, variants, strict=True))
        for combination in settings["studies"][study]["combine"]
        for variants in itertools.product(*combination.values())
    }


def study_settings(settings: Mapping[str, Any], study: str) -> dict[str, Any]:
    """Return what the cells of a study share: its dataset's settings, then the study's overrides."""
    return _of_study(settings, study, {})


def _of_study(settings: Mapping[str, Any], study: str, tuned: Mapping[str, Any]) -> dict[str, Any]:
    entry = settings["studies"][study]
    own = {"scored_on": entry["scored_on"]}
    return merge(dataset_settings(settings, entry["dataset"]), tuned, entry["overrides"], own)


def cell_settings(settings: Mapping[str, Any], study: str, cell: str) -> dict[str, Any]:
    """Return the settings of a cell's runs: those of its study, then its variants or its trial; with `model`.

    In a study with `tuned: true`, what the tuning of the dataset chose for the model goes before the study's overrides.
    """
    entry = settings["studies"][study]
    variants = (
        [trial_settings(settings, study, cell)]
        if "trials" in entry
        else [settings["variants"][name] for name in cell.split("_")]
    )
    own = merge({"model": "clai-m"}, *variants)
    tuned = tuned_settings(settings, entry["dataset"], own["model"]) if entry.get("tuned") else {}
    return merge(_of_study(settings, study, tuned), own)


def runs_of_model(settings: Mapping[str, Any], dataset: str, model: str) -> list[RunId]:
    """Return the runs of a model on a dataset: one a seed, and one a fold where the dataset has folds."""
    overrides = settings["datasets"][dataset]["overrides"]
    of_models = settings["model_seeds"] | overrides.get("model_seeds", {})
    seeds = of_models.get(model, seeds_of(settings, dataset))
    return [RunId(dataset, model, seed, fold) for seed in seeds for fold in folds_of(settings, dataset)]


def seeds_of(settings: Mapping[str, Any], dataset: str) -> Sequence[int]:
    """Return the seeds of a dataset's runs, save those of models with `model_seeds`."""
    own: Sequence[int] = settings["datasets"][dataset]["overrides"].get("seeds", settings["seeds"])
    return own


def runs_of_study(settings: Mapping[str, Any], study: str) -> list[RunId]:
    """Return the runs of all cells of a study: one a seed and, where its dataset has folds, one a fold.

    Development patients are in no fold. A tuning names its folds. The seeds are the study's, or the cell's where it has seeds of
    its own.
    """
    entry = settings["studies"][study]
    development = entry["scored_on"] == "development"
    folds = entry.get("folds", [None] if development else folds_of(settings, entry["dataset"]))
    own = entry.get("cell_seeds", {})
    return [
        RunId(study, cell, seed, fold)
        for cell in cells(settings, study)
        for seed in own.get(cell, entry["seeds"])
        for fold in folds
    ]


def folds_of(settings: Mapping[str, Any], dataset: str) -> Sequence[int | None]:
    """Return the numbers of a dataset's test folds; None alone for a dataset without folds."""
    folds = settings["datasets"][dataset].get("folds")
    return [None] if folds is None else range(2 if folds == "hospitals" else folds)


def is_sepsis(settings: Mapping[str, Any], dataset: str) -> bool:
    """Return whether a dataset holds recordings with a binary label, which have folds; the others are multiclass."""
    return "folds" in settings["datasets"][dataset]


def raw_dataset(settings: Mapping[str, Any], dataset: str) -> str:
    """Return the dataset that owns the raw files: the one that `raw_of` names, or the dataset itself."""
    return str(settings["datasets"][dataset].get("raw_of", dataset))


def source_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings of a dataset that decide which raw files it has; a change of another one verifies nothing again."""
    deciding = ("source", "path", "medmnist_flag", "medmnist_size", "subjects", "nights", "options")
    return {key: value for key, value in settings["datasets"][dataset].items() if key in deciding}


def preparation_settings(settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return the settings that decide a dataset's prepared form; `memory_gb` only bounds memory."""
    apart = (*_NOT_OF_PREPARATION, "memory_gb")
    return {key: value for key, value in settings["datasets"][dataset].items() if key not in apart}


def benchmark_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the benchmark reads: how the models of `BENCHMARK_DATASET` are trained."""
    merged = dataset_settings(settings, BENCHMARK_DATASET)
    keys = [
        "device",
        "threads",
        "embedding_size",
        "encoder",
        "kernel",
        "target",
        "training",
        "miniature",
        "baselines.supervised_contrastive.temperature",
    ]
    return select(merged, keys)


def effective_settings(settings: Mapping[str, Any], name: str, model: str) -> dict[str, Any]:
    """Return what decides the runs of a model on a dataset, or of a cell of a study.

    Args:
        name: key of a dataset or a study.
        model: key of a model of that dataset, or a cell of that study.

    Raises:
        InputError: the configuration has no such dataset, study, model or cell.
    """
    if name in settings["studies"]:
        _expect(model, list(cells(settings, name)), f"cells of the study {name}")
        merged = cell_settings(settings, name, model)
        runs = [run for run in runs_of_study(settings, name) if run.model == model]
        key = str(merged["model"])
    else:
        _expect(name, [*settings["datasets"], *settings["studies"]], "datasets and studies")
        _expect(model, settings["datasets"][name]["models"], f"models of the dataset {name}")
        merged = model_settings(settings, name, model) | {"model": model}
        runs = runs_of_model(settings, name, model)
        key = model
    shown = {"runs": [str(run) for run in runs], **select(merged, ["model", "dataset", "split_seed"])}
    return shown | select(merged, MODELS[key].reads)


def settings_text(repository: Path, name: str, model: str, configfiles: Iterable[Path] = (), mini: bool = False) -> str:
    """Return the effective settings of a run as YAML.

    Args:
        repository: folder that holds config.yaml.
        name: key of a dataset or a study.
        model: key of a model, or a cell of the study.
        configfiles: files of the user's own settings; later ones win.
        mini: whether to show the run on miniature data.

    Raises:
        InputError: a setting is wrong, or there is no such dataset, study, model or cell.
    """
    overrides = merge(*(read_yaml(file) for file in configfiles))
    shown = effective_settings(load_settings(repository, overrides, mini=mini), name, model)
    return str(yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True))


def _expect(name: str, names: Iterable[str], kind: str, key: str | None = None) -> None:
    """Refuse a name that is none of `names`; `key` is the setting that holds it."""
    if name not in (known := list(names)):
        where = f"config key {key}: " if key else ""
        raise InputError(f"{where}found '{name}', expected one of the {kind}: {', '.join(known)}; correct the name")


def _expect_models_of_kind(settings: Mapping[str, Any], dataset: str, key: str, models: Iterable[str]) -> None:
    """Refuse models of recordings on a dataset without; `key` is the setting that names them."""
    if wrong := [m for m in models if MODELS[m].recordings_only and not is_sepsis(settings, dataset)]:
        raise InputError(
            f"config key {key}: found {', '.join(wrong)}, models of recordings alone, expected others, "
            "because the entry has no `folds`, so it holds no recordings; remove them"
        )


def _check_values(value: Any, place: Sequence[str]) -> None:
    """Refuse keys that are no text and numbers that are not finite: no rule of the schema catches either."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                where = f"config key {'.'.join(place)}" if place else "config"
                raise InputError(f"{where}: found the key {key!r}, expected a text; put it into quotation marks")
            _check_values(inner, [*place, key])
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, place)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"config key {'.'.join(place)}: found {value}, expected a finite number; correct it")


def _schema(repository: Path) -> dict[str, Any]:
    """Return the schema with the registry's names of models."""
    schema = read_yaml(repository / SCHEMA)
    schema["$defs"] |= {"model": {"enum": list(MODELS)}}
    blocks = schema["$defs"]["shared"]["baselines"]["properties"]
    for name in EMBEDDING_BASELINES:
        blocks.setdefault(name.replace("-", "_"), {"type": "object"})  # a new one's fit checks its settings
    return schema


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return what checks settings by a schema; an integer is one as written, not 3.0."""
    from jsonschema import Draft202012Validator, validators  # slow, and `default_settings` needs it nowhere

    kinds = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return validators.extend(Draft202012Validator, type_checker=kinds)(schema)


def _check_schema(validator: Any, settings: Mapping[str, Any], above: Sequence[str] = ()) -> None:
    """Refuse settings that the schema does not allow; `above` are the keys that hold them."""
    from jsonschema.exceptions import best_match

    if (error := best_match(validator.iter_errors(settings))) is None:
        return
    key = ".".join([*above, *(str(part) for part in error.absolute_path)])
    where = f"config key {key}" if key else "config"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = ", ".join(f"'{name}'" for name in error.instance if name not in known)
        raise InputError(
            f"{where}: found unknown keys {unknown}, expected some of {', '.join(known)}; correct or remove them"
        )
    raise InputError(f"{where}: {error.message}; correct it ({SCHEMA} says what is allowed)")


def _check_tunings(settings: Mapping[str, Any]) -> None:
    """Refuse tunings whose names are not there: their datasets, models and the settings of their spaces."""
    for name in settings["tuned"] or {}:
        _expect(name, settings["tuning"], "datasets of `tuning`", "tuned")
    for name, tuning in settings["tuning"].items():
        _expect(name, settings["datasets"], "datasets", "tuning")
        _expect_models_of_kind(settings, name, f"tuning.{name}.models", tuning["models"])
        for model in tuning["models"]:
            _expect(model, tuning["spaces"], "models with a space", f"tuning.{name}.models")
            read = select(settings, MODELS[model].reads)
            for setting in tuning["spaces"][model]:
                try:
                    select(read, [setting])
                except InputError:
                    raise InputError(
                        f"config key tuning.{name}.spaces.{model}: found '{setting}', expected a setting that {model} reads, "
                        "with dots; correct it (replication.runs.models lists them)"
                    ) from None


def _check_names(settings: Mapping[str, Any], repository: Path) -> None:
    """Refuse settings that name a dataset, study, variant or source that is not there."""
    datasets, studies, variants = settings["datasets"], settings["studies"], settings["variants"]
    for name in settings["run"]:
        _expect(name, datasets, "datasets", "run")
    for name in settings["run_studies"]:
        _expect(name, studies, "studies", "run_studies")
    for name, study in studies.items():
        _expect(study["dataset"], datasets, "datasets", f"studies.{name}.dataset")
        if study["scored_on"] == "development" and datasets[study["dataset"]].get("development_share") is None:
            raise InputError(
                f"config key studies.{name}.scored_on: found development, but {study['dataset']} has no development patients, "
                f"expected test or validation; change it, or set datasets.{study['dataset']}.development_share"
            )
        for combination in [] if "trials" in study else study["combine"]:
            for variant in itertools.chain.from_iterable(combination.values()):
                _expect(variant, variants, "variants", f"studies.{name}.combine")
    for name, entry in datasets.items():
        owner = raw_dataset(settings, name)
        _expect(owner, datasets, "datasets", f"datasets.{name}.raw_of")
        if owner != name and entry["path"] is not None:
            raise InputError(
                f"config key datasets.{name}.path: found '{entry['path']}', expected null, because its raw files are those of "
                f"{owner}. Set datasets.{owner}.path instead, and this one to null."
            )
        _expect_models_of_kind(settings, name, f"datasets.{name}.models", entry["models"])
        module = repository / "src" / "replication" / "datasets" / entry["source"]
        if not (module.with_suffix(".py").exists() or (module / "__init__.py").exists()):
            raise InputError(
                f"config key datasets.{name}.source: there is no src/replication/datasets/{entry['source']}.py; add that module, "
                "or name one of those in src/replication/datasets"
            )
    for model in MODELS.values():
        select(settings, model.reads)


def _check_agreement(settings: Mapping[str, Any]) -> None:
    """Refuse settings of a dataset that contradict each other."""
    for name, entry in settings["datasets"].items():
        earliest, before = (entry.get(key) for key in ("minimum_onset_hours", "label_hours_before"))
        if earliest is not None and before is not None and earliest < before:
            raise InputError(
                f"config key datasets.{name}.minimum_onset_hours: found {earliest}, expected at least the label_hours_before of "
                f"{before}, because the label of an earlier onset begins before the stay. Raise minimum_onset_hours or lower "
                "label_hours_before"
            )
