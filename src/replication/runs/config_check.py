"""A second look at the configuration, for what `snakemake.utils.validate` cannot say.

`validate` stops at the first error, knows no names that other settings define, and sees neither a key that stands twice in a
file nor that `--config` brings the numbers within a list, and `null`, as text. It takes 16.0 for a whole number, and NaN for one.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from clailearn.errors import InputError
from replication.runs.models import MODELS, fitted_on
from replication.runs.tuning import PREFIX, corners

SOURCES = {
    "arrays": "replication.datasets.arrays:SOURCE",
    "challenge2019": "replication.datasets.challenge2019:SOURCE",
    "cifar10": "replication.datasets.images:CIFAR10",
    "feature_table": "replication.datasets.feature_table:SOURCE",
    "image_folder": "replication.datasets.images:FOLDER",
    "medmnist": "replication.datasets.images:MEDMNIST",
    "mimic_iv": "replication.datasets.mimic_iv:SOURCE",
    "sleep_edf": "replication.datasets.sleep_edf:SOURCE",
}
"""What `source` of a dataset's entry may be, and the `replication.datasets.sources.Source` that reads it."""
_ROOT = Path(__file__).parents[3]
SCHEMA = "workflow/config/schema.yaml"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses a key that stands twice, and numbers that YAML reads in base 8 or 60."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        places = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=True) for key in places]
        for key, place in zip(keys, places, strict=True):
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=place.start_mark)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        if re.match(r"[-+]?0\d|.*:", node.value):
            problem = f"YAML reads {node.value} as {number}: put a name in quotes, and write a number without 0 before it or :"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Return the settings in a YAML file; raise InputError for one that is missing, damaged, or has a key twice."""
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except Exception as error:  # An invalid date, or bytes of another encoding, raise errors that are not YAML's.
        raise InputError(f"{path}: {error}; expected settings as YAML in UTF-8. Correct the file or its path") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: found {type(content).__name__}, expected a mapping of settings; correct the file")
    return content


def check(config: dict[str, Any]) -> None:
    """Turn text that `--config` brought into the values that it stands for, in place, and refuse all wrong settings at once."""
    schema = _with_names(read_yaml(_ROOT / SCHEMA), config)
    validator = _validator(schema)
    _unquote(config, [error.absolute_path for error in validator.iter_errors(config)])
    problems = [_message(error) for error in validator.iter_errors(config)]
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
    schema["$defs"] |= {name: {"enum": list(known)} for name, known in names.items()}
    baselines = schema["$defs"]["baselines"]
    of_rows = [*fitted_on("rows"), *fitted_on("embeddings")]
    baselines["properties"] = {name.replace("-", "_"): {} for name in of_rows} | baselines["properties"]
    baselines["additionalProperties"] = False
    return schema


def _unquote(config: Any, places: list[Any]) -> None:
    for place in places:
        *above, last = place or [None]
        block = config
        for key in above:
            block = block[key]
        if place and isinstance(block[last], str) and block[last].strip():
            is_number = re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", block[last])  # without a point text, in YAML
            block[last] = float(block[last]) if is_number else yaml.safe_load(block[last])
        if place and isinstance(block[last], float) and block[last].is_integer():
            block[last] = int(block[last])


def _message(error: Any) -> str:
    key = ".".join(str(part) for part in error.absolute_path) or "(top)"
    name = isinstance(error.instance, bool) and error.validator == "type"
    hint = "; YAML takes yes, no, on and off for truth values: put a name in quotes" if name else ""
    found = ", or ".join(inner.message for inner in error.context) or error.message
    return f"{key}: {found}{hint}; correct it ({SCHEMA} says what is allowed)"


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong between settings that are right by themselves."""
    datasets = config["datasets"]
    others = [*config["studies"], *(f"{PREFIX}{name}" for name in config["tuning"]), "benchmark", "theory"]
    for name in datasets.keys() & set(others):
        yield f"datasets.{name}: a study or control has this name, and its results the same folder; rename the dataset"
    for name, entry in datasets.items():
        classes = [str(of_class).strip() for of_class in entry.get("classes") or ()]
        if len({*classes}) < len(classes):
            yield f"datasets.{name}.classes: found a class twice among {', '.join(classes)}, expected each once"
        if "raw_of" in entry and entry["path"] is not None:
            owner = entry["raw_of"]
            yield f"datasets.{name}.path: its raw files are those of {owner}. Set datasets.{owner}.path instead"
        if (first := entry.get("minimum_onset_hours")) is not None and first < entry["label_hours_before"]:
            yield (
                f"datasets.{name}.minimum_onset_hours: found {first}, expected at least the label_hours_before of "
                f"{entry['label_hours_before']}, because the label of an earlier onset begins before the stay"
            )
    of_datasets = {f"datasets.{name}.models": (name, entry["models"]) for name, entry in datasets.items()}
    tunings = config["tuning"].items()
    of_tuning = {f"tuning.{name}.spaces": (entry.get("dataset", name), entry["spaces"]) for name, entry in tunings}
    for key, (name, models) in (of_datasets | of_tuning).items():
        if "folds" not in datasets[name] and (wrong := [m for m in models if MODELS[m].recordings_only]):
            yield f"{key}: found {', '.join(wrong)}, which need recordings, and the dataset has no `folds`; remove them"
    for name, study in config["studies"].items():
        if (
            name in config["run_studies"]
            and study["scored_on"] == "development"
            and datasets[study["dataset"]].get("development_share") is None
        ):
            yield f"studies.{name}.scored_on: {study['dataset']} has no development patients; set its development_share"


def _trials(config: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the spaces of tunings, whose values are settings."""
    validator = _validator({**schema["$defs"]["overrides"], "$defs": schema["$defs"]})
    for name, tuning in config["tuning"].items():
        for model, space in tuning["spaces"].items():
            for values in corners(space):
                yield from (f"tuning.{name}.spaces.{model}.{_message(e)}" for e in validator.iter_errors(values))
            for setting in space:
                if not any(f"{setting}.".startswith(f"{read}.") for read in MODELS[model].settings):
                    yield f"tuning.{name}.spaces.{model}: found '{setting}', expected a setting that {model} reads"
            most = math.prod(len(entry["choice"]) if "choice" in entry else math.inf for entry in space.values())
            if most < tuning["trials"] - 1:  # the first trial has none of them
                yield f"tuning.{name}.spaces.{model}: found {most} combinations, too few for {tuning['trials']} trials"
