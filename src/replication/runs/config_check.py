"""The check of the configuration by its schema, and by what no schema can say: names, and settings that contradict each other.

`snakemake.utils.validate` would stop at the first error, and does not see that `--config` brings the numbers within a list, and
`null`, as text. It takes 16.0 for a whole number, and NaN for one.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from clailearn.errors import InputError
from replication.runs import registry
from replication.runs.registry import (
    MODELS,
    NETWORK_SETTINGS,
    OUTPUTS,
    OWN,
    PREFIX,
    REPOSITORY,
    REPOSITORY_DATASETS,
    fitted_on,
    read_yaml,
)

SCHEMA = "workflow/config/schema.yaml"
SOURCES = {
    "arrays": "replication.datasets.one_file:ARRAYS",
    "challenge2019": "replication.datasets.recordings:CHALLENGE2019",
    "cifar10": "replication.datasets.images:CIFAR10",
    "feature_table": "replication.datasets.one_file:FEATURE_TABLE",
    "image_folder": "replication.datasets.images:FOLDER",
    "medmnist": "replication.datasets.images:MEDMNIST",
    "mimic_iv": "replication.datasets.mimic_iv:SOURCE",
    "sleep_edf": "replication.datasets.sleep_edf:SOURCE",
}
"""What `source` of a dataset's entry may be, and the `replication.datasets.sources.Source` that reads it."""

OF_STAYS = ("minimum_age", "minimum_hours", "maximum_hours", "minimum_onset_hours", "first_stay_only", "onset")
"""Settings of a dataset that only MIMIC-IV has."""
OF_SAMPLES = ("arrays", "cifar10", "feature_table", "image_folder", "medmnist", "sleep_edf")
UNREAD = {
    **dict.fromkeys(OF_STAYS, SOURCES.keys() - {"mimic_iv"}),
    **dict.fromkeys(("cohort", "variables", "folds", "development_share"), OF_SAMPLES),
    "classes": ("cifar10", "image_folder", "medmnist"),
}
"""Settings of a dataset that would promise something, with the sources that do not read them."""
_NO_TABLES = ("arrays", "challenge2019", "cifar10", "image_folder", "medmnist", "mimic_iv", "sleep_edf")
UNREAD_OF_OWN = UNREAD | {
    **dict.fromkeys(("label_column", "group_column", "feature_columns"), _NO_TABLES),
    **dict.fromkeys(("subjects", "nights"), ("feature_table", *_NO_TABLES[:-1])),
    "classes": _NO_TABLES[1:],
}
"""The same for a dataset of the user's own. An entry of the repository keeps its other settings where its source is replaced."""


def check(config: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse all wrong settings at once.

    Text that `--config` brought becomes the value that it stands for, in place: in the merged settings and in a user's own.
    """
    schema = _with_names(read_yaml(REPOSITORY / SCHEMA), config)
    validator = _validator(schema)
    places = [error.absolute_path for error in validator.iter_errors(config)]
    for place in places:
        for settings in (config, own):
            _unquote(settings, place)
    problems = [_message(error) for error in validator.iter_errors(config)] if places else []
    if not problems:
        problems = [*_contradictions(config), *_trials(config, schema)]
    if problems:
        raise InputError("\n".join(sorted(f"config key {problem}" for problem in problems)))


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator, validators  # slow, and reading a file needs them not

    def is_number(_: Any, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

    types = Draft202012Validator.TYPE_CHECKER.redefine("number", is_number)
    types = types.redefine("integer", lambda _, value: isinstance(value, int) and is_number(_, value))
    return validators.extend(Draft202012Validator, type_checker=types)(schema)


def _with_names(schema: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with the names of models and sources, and those that the configuration itself defines."""
    names: dict[str, Any] = {"model": MODELS, "source": SOURCES}
    blocks = {"dataset": "datasets", "variant": "variants", "tuning": "tuning", "study": "studies"}
    names |= {name: config[block] if isinstance(config[block], dict) else () for name, block in blocks.items()}
    names["study"] = [*names["study"], *(f"{PREFIX}{name}" for name in names["tuning"])]
    names["output"] = [*OUTPUTS, *(f"own/{dataset}/{output}" for dataset in names["dataset"] for output in OWN)]
    # Of a block that is no block nothing is known; its own message suffices.
    schema["$defs"] |= {name: {"enum": list(known)} if known else {} for name, known in names.items()}
    baselines = schema["$defs"]["baselines"]
    row_models = [*fitted_on("rows"), *fitted_on("embeddings")]
    baselines["properties"] = {name.replace("-", "_"): {} for name in row_models} | baselines["properties"]
    return schema


def _unquote(block: Any, place: Sequence[str | int]) -> None:
    """Turn the text at a place of the settings, if they have it, into what it stands for."""
    if not place:
        return
    *above, last = place
    try:
        for key in above:
            block = block[key]
        value = block[last]
    except (KeyError, IndexError, TypeError):
        return
    if isinstance(value, str) and value.strip():
        is_number = re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value)  # without a point text, in YAML
        value = float(value) if is_number else yaml.safe_load(value)
    block[last] = int(value) if isinstance(value, float) and value.is_integer() else value


def _message(error: Any) -> str:
    key = ".".join(str(part) for part in error.absolute_path) or "(top)"
    name = isinstance(error.instance, bool) and error.validator == "type"
    hint = "; YAML takes yes, no, on and off for truth values: put a name in quotes" if name else ""
    return f"{key}: {_found(error)}{hint}; correct it ({SCHEMA} says what is allowed)"


def _found(error: Any) -> str:
    return ", or ".join(map(_found, error.context)) or error.message


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong between settings that are right by themselves."""
    datasets = config["datasets"]
    if lost := [name for name, entry in config["tuning"].items() if entry.get("dataset", name) not in datasets]:
        yield f"tuning.{lost[0]}: found no dataset of this name, expected the key of one; name it, or set `dataset`"
        return
    others = [*(f"{PREFIX}{name}" for name in config["tuning"]), registry.BENCHMARK, registry.THEORY]
    for block, taken in (("studies", others), ("datasets", [*others, *config["studies"]])):
        for name in config[block].keys() & set(taken):
            yield f"{block}.{name}: a study or control has this name, and its results the same folder; rename it"
    for name, entry in datasets.items():
        classes = [str(label).strip() for label in entry.get("classes") or ()]
        if len({*classes}) < len(classes):
            yield f"datasets.{name}.classes: found a class twice among {', '.join(classes)}, expected each once"
        if "raw_of" in entry:
            owner = entry["raw_of"]
            if entry["path"] is not None:
                yield f"datasets.{name}.path: its raw files are those of {owner}. Set datasets.{owner}.path instead"
            if "raw_of" in datasets[owner] or datasets[owner]["source"] != entry["source"]:
                yield f"datasets.{name}.raw_of: expected a dataset of source {entry['source']} with raw files of its own"
        unread = UNREAD if name in REPOSITORY_DATASETS or config["miniature"] else UNREAD_OF_OWN
        for key in [key for key in entry if entry["source"] in unread.get(key, ()) and entry[key] is not None]:
            yield f"datasets.{name}.{key}: found it for {entry['source']}, which does not read it; remove it"
    listed = {f"datasets.{name}.models": (name, entry["models"]) for name, entry in datasets.items()}
    tunings = config["tuning"].items()
    tuned = {f"tuning.{name}.spaces": (entry.get("dataset", name), entry["spaces"]) for name, entry in tunings}
    studies = config["studies"].items()
    combined = {f"studies.{name}.combine": (entry["dataset"], _models(entry, config)) for name, entry in studies}
    for key, (name, models) in (listed | tuned | combined).items():
        if "folds" not in datasets[name] and (wrong := [m for m in models if MODELS[m].recordings_only]):
            yield f"{key}: found {', '.join(wrong)}, which need recordings, and the dataset has no `folds`; remove them"
    scored = [(f"studies.{name}", name, entry["dataset"], entry["scored_on"]) for name, entry in studies]
    scored += [(f"tuning.{n}", f"{PREFIX}{n}", entry.get("dataset", n), entry["scored_on"]) for n, entry in tunings]
    computed = config["run_studies"]
    for key, name, dataset, scored_on in scored:
        lacking = datasets[dataset].get("development_share") is None
        of = "recordings" if "folds" in datasets[dataset] else f"samples of {scored_on}"
        if config["studies"].get(name, {}).get("predictions") and of != "samples of test":
            yield f"{key}.predictions: found it for {of}, expected it of test samples alone; remove it"
        if scored_on == "development" and lacking and (computed == "all" or name in computed):
            yield f"{key}.scored_on: {dataset} has no development patients; set its development_share"


def _models(study: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return the models that the variants of a study name."""
    variants = [config["variants"][name] for block in study["combine"] for name in itertools.chain(*block.values())]
    return [variant["model"] for variant in variants if "model" in variant]


def _trials(config: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the spaces of tunings, whose values are settings."""
    validator = _validator({**schema["$defs"]["overrides"], "$defs": schema["$defs"]})
    for name, tuning in config["tuning"].items():
        for model, space in tuning["spaces"].items():
            network = NETWORK_SETTINGS if MODELS[model].of == "samples" else ()
            for setting, distribution in space.items():
                (values,) = distribution.values()
                if "loguniform" in distribution and values[0] >= values[1]:
                    yield f"tuning.{name}.spaces.{model}.{setting}: found {values}, expected the lower limit first"
                errors = [error for value in values for error in validator.iter_errors(nested({setting: value}))]
                yield from (f"tuning.{name}.spaces.{model}.{_message(error)}" for error in errors)
                if not any(f"{setting}.".startswith(f"{read}.") for read in (*MODELS[model].reads, *network)):
                    yield f"tuning.{name}.spaces.{model}: found '{setting}', expected a setting that {model} reads"
            most = math.prod(len(entry["choice"]) if "choice" in entry else math.inf for entry in space.values())
            if most < tuning["trials"] - 1:  # the first trial has none of them
                yield f"tuning.{name}.spaces.{model}: found {most} combinations, too few for {tuning['trials']} trials"


def nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted settings in their blocks."""
    result: dict[str, Any] = {}
    for key, value in dotted.items():
        *blocks, last = key.split(".")
        target = result
        for block in blocks:
            target = target.setdefault(block, {})
        target[last] = value
    return result
