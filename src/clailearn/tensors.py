"""Files of tensors (safetensors): models and embeddings, read without trust. The format holds no code."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from clailearn.errors import InputError

_ADVICE = "Restore the file as it was published, or compute its run again."


def load_tensors(path: str | Path, sha256: str | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU.

    Raises InputError, naming the file, where it is damaged, has another checksum than `sha256`, or where a number is not finite.
    """
    try:
        if sha256 is not None:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != sha256:
                raise ValueError(f"found sha256 {found}, its record says {sha256}")
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: cannot be read ({error}), expected tensors as safetensors. {_ADVICE}") from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.float().isfinite().all():
            raise InputError(f"{path}: found a number in '{name}' that is not finite, expected finite ones. {_ADVICE}")
    return tensors


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
            f"{found.get(first, 'missing')}, expected {expected.get(first, 'none of this name')}. {_ADVICE}"
        )
    module.load_state_dict(tensors, assign=True)
