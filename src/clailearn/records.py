"""Records of models, `model.json`: written, and read without trust: what a value must be, and the error for one that is not."""

import hashlib
import json
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save
from torch import Tensor

from clailearn.checkpoints import write_whole
from clailearn.errors import InputError

RECORD, WEIGHTS = "model.json", "model.safetensors"
"""Files of a model: what its weights are and how an input must look, and the weights. Neither format holds code."""
FORMAT = 1
"""Of records; a later one may mean other things by the same keys."""
ADVICE = "Restore the folder of the model as it was published."


class Check(NamedTuple):
    """What a value of a record must be: in words, and as a test."""

    expected: str
    holds: Callable[[Any], bool]


def one_of(*values: Any) -> Check:
    return Check(" or ".join(map(str, values)), lambda value: value in values)


def integer(most: int) -> Check:
    return Check(f"a whole number from 1 to {most}", lambda value: type(value) is int and 1 <= value <= most)


def number(least: float, most: float) -> Check:
    return Check(
        f"a number from {least:g} to {most:g}", lambda value: type(value) in (int, float) and least <= value <= most
    )


def list_of(items: Check, most: int, least: int = 1) -> Check:
    def holds(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(items.holds, value))

    return Check(f"a list of {least} to {most}, each {items.expected}", holds)


TEXT = Check("a text of at most 1000 characters", lambda value: isinstance(value, str) and len(value) <= 1000)
SWITCH = Check("true or false", lambda value: isinstance(value, bool))
ANY_NUMBER, POSITIVE = number(-1e30, 1e30), number(1e-30, 1e30)
SHA256 = Check("64 hexadecimal digits", lambda value: isinstance(value, str) and len(value) == 64)


def calibration_checks(classes: int) -> dict[str, Check]:
    """Return what the calibration of a record must be: a temperature, or for two classes a logistic regression."""
    if classes > 2:
        return {"calibration.temperature": POSITIVE}
    return {"calibration.slope": ANY_NUMBER, "calibration.intercept": ANY_NUMBER}


def write_model(folder: Path, record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write a model into a folder, and return its record with the checksum of its weights."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    whole = {**record, "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False, default=methodcaller("item"))  # of numpy
    write_whole(folder / WEIGHTS, content)
    write_whole(folder / RECORD, f"{text}\n".encode())
    return whole


def read_json(path: Path) -> Any:
    """Return what a record holds; raise InputError where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected the record of a model as JSON. Name the folder of a model, such as "
            f"results/published/pathmnist/models/clai-m. {ADVICE}"
        ) from None


def expect(path: Path, record: Any, checks: Mapping[str, Check]) -> None:
    """Raise InputError unless each check holds for the value at its dotted key."""
    for key, check in checks.items():
        value = record
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not check.holds(value):
            found = "nothing" if value is None else f"{value!r:.100}"
            raise InputError(f"{path}: found {found} at {key}, expected {check.expected}. {ADVICE}")
