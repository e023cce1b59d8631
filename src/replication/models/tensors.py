"""Files of tensors (safetensors): models and embeddings, read without trust. The format holds no code."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from clai.errors import InputError

_ADVICE = "Delete the file and compute its run again."


def load_tensors(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU.

    Raises InputError, naming the file, where it is damaged, or where a number is not finite.
    """
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: cannot be read ({error}), expected tensors as safetensors. {_ADVICE}") from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.float().isfinite().all():
            raise InputError(f"{path}: found a number in '{name}' that is not finite, expected finite ones. {_ADVICE}")
    return tensors


def fill_module(module: nn.Module, path: str | Path) -> None:
    """Give a module the parameters and buffers of a file.

    Raises InputError, naming file and tensor, where the file lacks one, has another, or has one of another shape or type.
    """
    tensors, own = load_tensors(path), module.state_dict()
    if names := sorted(tensors.keys() ^ own.keys()):
        raise InputError(
            f"{path}: found {len(tensors)} tensors, of which some are missing or unknown ({', '.join(names[:3])}), expected the "
            f"{len(own)} of the run's model. Check the run's settings, or compute it again."
        )
    for name, tensor in tensors.items():
        if (tensor.shape, tensor.dtype) != (own[name].shape, own[name].dtype):
            raise InputError(
                f"{path}: found {tensor.dtype} {list(tensor.shape)} in '{name}', expected {own[name].dtype} "
                f"{list(own[name].shape)} as the run's settings have it. Check them, or compute the run again."
            )
    module.load_state_dict(tensors)
