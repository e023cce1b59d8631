"""The two files of a model, written, and read without trust: neither format holds code.

`model.json` says what the weights are and how an input must look. `model.safetensors` has the weights and the references.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from clailearn.checkpoints import write_whole
from clailearn.errors import InputError
from clailearn.limits import LARGEST_TEXT, check_file

RECORD, WEIGHTS = "model.json", "model.safetensors"
"""Names of the files."""
OF_RECORD = "record_sha256"
"""Key of the checksum of the record itself."""
ADVICE = "Restore the folder of the model as it was published."
_ADVICE_ON_TENSORS = "Restore the file as it was published, or compute its run again."


class Check(NamedTuple):
    """What a value of a record must be: in words, and as a test."""

    expected: str
    holds: Callable[[Any], bool]


def one_of(*values: Any) -> Check:
    # To Python True is 1, and 1.0 is.
    known = [(type(value), value) for value in values]
    return Check(" or ".join(map(str, values)), lambda value: (type(value), value) in known)


def integer(most: int) -> Check:
    return Check(f"a whole number from 1 to {most}", lambda value: type(value) is int and 1 <= value <= most)


def number(least: float, most: float) -> Check:
    return Check(
        f"a number from {least:g} to {most:g}", lambda value: type(value) in (int, float) and least <= value <= most
    )


def list_of(items: Check, most: int, least: int) -> Check:
    def holds(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(items.holds, value))

    return Check(f"a list of {least} to {most}, each {items.expected}", holds)


def optional(check: Check) -> Check:
    return Check(f"nothing or {check.expected}", lambda value: value is None or check.holds(value))


TEXT = Check("a text of at most 1000 characters", lambda value: isinstance(value, str) and len(value) <= 1000)
SWITCH = Check("true or false", lambda value: isinstance(value, bool))
MAPPING = Check("a mapping", lambda value: isinstance(value, dict))
ANY_NUMBER, POSITIVE = number(-1e30, 1e30), number(1e-30, 1e30)
SHA256 = Check(
    "64 hexadecimal digits", lambda value: isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None
)


def write_model(
    folder: Path, record: Mapping[str, Any], tensors: Mapping[str, Tensor], checks: Mapping[str, Check]
) -> dict[str, Any]:
    """Write a model into a folder, and return its record with the checksums of its weights and of itself.

    Raises InputError for a record that is too large to be read again or fails a check, and for tensors that are not finite.
    """
    _refuse_infinite(
        folder / WEIGHTS, tensors, "Nothing was written: register such a buffer with persistent=False, and fit again."
    )
    # Tensors of a trunk may share memory, which the format does not allow.
    content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    given = {**record, "sha256": hashlib.sha256(content).hexdigest()}
    # As it will be read; numbers may be of numpy.
    whole = json.loads(json.dumps(given, default=methodcaller("item")))
    whole[OF_RECORD] = checksum_of_record(whole)
    expect(folder / RECORD, whole, checks, "Nothing was written: correct it, and fit again.")
    text = f"{json.dumps(whole, indent=1, sort_keys=True, allow_nan=False)}\n".encode()
    if len(text) > LARGEST_TEXT:
        raise InputError(
            f"{folder / RECORD}: found {len(text):,} bytes of names, expected at most {LARGEST_TEXT:,}. Shorten them."
        )
    write_whole(folder / WEIGHTS, content)
    write_whole(folder / RECORD, text)
    return whole


def checksum_of_record(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a record says, however its text is laid out; its own entry is left out."""
    rest = {key: value for key, value in record.items() if key != OF_RECORD}
    try:
        return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    except RecursionError:  # of a hostile record
        return "none, as they are nested too deeply"


def read_json(path: Path) -> Any:
    """Return what a record holds; raise InputError where it cannot be read."""
    try:
        check_file(path, LARGEST_TEXT)
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected the record of a model as JSON. Name the folder of a model, such as "
            f"results/published/pathmnist/models/clai-m. {ADVICE}"
        ) from None


def expect(path: Path, record: Any, checks: Mapping[str, Check], advice: str = ADVICE) -> None:
    """Raise InputError unless each check holds for the value at its dotted key."""
    for key, check in checks.items():
        value = record
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not check.holds(value):
            found = "nothing" if value is None else f"{value!r:.100}"
            raise InputError(f"{path}: found {found} at {key}, expected {check.expected}. {advice}")


def load_tensors(path: str | Path, sha256: str | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU.

    Raises InputError, naming the file, where it is damaged, has another checksum than `sha256`, or where a number is not finite.
    """
    try:
        check_file(path)
        content = Path(path).read_bytes()  # a mapped file could change under a model that has been checked
        if sha256 is not None and (found := hashlib.sha256(content).hexdigest()) != sha256:
            raise ValueError(f"found sha256 {found}, its record says {sha256}")
        tensors = load(content)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected tensors as safetensors. {_ADVICE_ON_TENSORS}"
        ) from error
    try:
        _refuse_infinite(path, tensors, _ADVICE_ON_TENSORS)
    except NotImplementedError as error:
        raise InputError(
            f"{path}: found numbers of a type that torch cannot read ({error}). {_ADVICE_ON_TENSORS}"
        ) from error
    return tensors


def _refuse_infinite(path: str | Path, tensors: Mapping[str, Tensor], advice: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.double().isfinite().all():
            raise InputError(f"{path}: found a number in '{name}' that is not finite, expected finite ones. {advice}")


def fill_module(module: nn.Module, tensors: Mapping[str, Tensor], path: str | Path) -> None:
    """Give a module the parameters and buffers that a file held.

    Raises InputError, naming file and tensors, where one is missing, unknown, or of another shape or type.
    """
    own = module.state_dict()
    found, expected = ({name: (t.dtype, *t.shape) for name, t in state.items()} for state in (tensors, own))
    if odd := sorted(name for name in {**found, **expected} if found.get(name) != expected.get(name)):
        first = odd[0]
        raise InputError(
            f"{path}: found {len(odd)} tensors that are not those of the network, such as '{first}': "
            f"{found.get(first, 'missing')}, expected {expected.get(first, 'none of this name')}. {_ADVICE_ON_TENSORS}"
        )
    module.load_state_dict(tensors, assign=True)
