"""Where and how networks compute, and how arrays become their input: the same for training and for predictions."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from clailearn.encoders import Hourly
from clailearn.errors import InputError
from clailearn.trainer import Precision, precision_context

BLOCK = 512
"""Samples whose output is computed at once: few, as a trunk may need much memory for each."""


@dataclass(frozen=True)
class Computation:
    """Where and how to compute: device and precision."""

    device: str
    precision: Precision

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of encoder input and of weights."""
        return torch.float64 if self.precision == "float64" else torch.float32

    def tensor(self, x: NDArray[Any]) -> Tensor:
        """Return samples as encoder input."""
        return torch.tensor(np.ascontiguousarray(x, dtype=np.float64), dtype=self.dtype, device=self.device)

    @contextlib.contextmanager
    def modes(self) -> Iterator[None]:
        """Compute without gradients and in torch's modes of a fresh process, whatever modes the caller's thread is in."""
        with fresh_modes(self.device), torch.no_grad():
            yield

    def rounding(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context for passes through a network."""
        return precision_context(torch.device(self.device), self.precision)


@contextlib.contextmanager
def fresh_modes(device: str) -> Iterator[None]:
    """Put torch into the modes of a fresh process, for this thread."""
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))  # and with gradients
        modes.enter_context(torch.autocast(torch.device(device).type, enabled=False))
        if torch.get_default_device().type != "cpu":  # This mode slows each operation down.
            modes.enter_context(torch.device("cpu"))
        yield


class Normalisation:
    """Centres and scales the channels of samples by statistics of training samples.

    Args:
        kind: `images` (N, height, width, channels), `signals` (N, channels, samples) or `features` (N, channels), which
            have units of any size and are scaled in 64 bits.
        mean, sd: of the channels.
    """

    def __init__(
        self, kind: str, mean: Sequence[float], sd: Sequence[float], device: torch.device | str = "cpu"
    ) -> None:
        dtype = torch.float64 if kind == "features" else torch.float32
        statistics = (torch.tensor(values, dtype=dtype, device=device) for values in (mean, sd))
        self.mean, self.sd = (values.unsqueeze(1) if kind == "signals" else values for values in statistics)

    def __call__(self, x: Tensor) -> Tensor:
        """Return samples as float32, in the same layout."""
        return ((x.to(self.mean.dtype) - self.mean) / self.sd).float()


@dataclass(frozen=True)
class Inputs:
    """What a model takes, and how it becomes the input of its network.

    Attributes:
        kind: `images`, `signals`, `features`, `recordings`, or `samples` for what an estimator was fitted on, used as it is.
        shape: of a sample; () for any, which a trunk of one's own takes.
        names: of features or channels.
        mean, sd: of the channels in training samples, for `Normalisation`; of recordings those of their variables, which
            `hourly_inputs` takes.
        mirror: whether the mirror image of an image votes too.
        resized: whether pictures of any size are resized to `shape`, as those of training were.
        variables: of recordings, before their hourly inputs.
    """

    kind: str
    shape: Sequence[int]
    names: Sequence[str] = ()
    mean: Sequence[float] = ()
    sd: Sequence[float] = ()
    mirror: bool = False
    resized: bool = False
    variables: Sequence[str] = ()

    @property
    def channels(self) -> int:
        """Return the number of channels or variables that a trunk takes; 0 if it takes any shape."""
        if not self.shape:
            return 0
        return self.shape[-1] if self.kind == "images" else self.shape[0]

    def blocks(self, x: ArrayLike, computation: Computation) -> Iterator[Any]:
        """Yield the input of the network in blocks; a recording stays whole. Raises InputError for another form of x."""
        array = self._checked(x)
        if self.kind == "recordings":
            hours = torch.from_numpy(array.astype(np.float32)).to(computation.device)
            yield Hourly(hours, torch.tensor([len(array)]))
            return
        normalised = Normalisation(self.kind, self.mean, self.sd, computation.device)
        for start in range(0, len(array), BLOCK):
            block = array[start : start + BLOCK]
            if self.kind == "samples":
                yield computation.tensor(block)
            elif self.kind == "images":
                yield normalised(torch.tensor(block, device=computation.device)).permute(0, 3, 1, 2)
            else:
                wide = block.astype(np.float32 if self.kind == "signals" else np.float64)  # in any order of bytes
                yield normalised(torch.from_numpy(wide).to(computation.device))

    def _checked(self, x: ArrayLike) -> NDArray[Any]:
        """Return inputs as an array; columns of a data frame in the order of `names`, whatever their own is."""
        kind, named = self.kind, bool(self.names) and self.kind in ("features", "samples") and hasattr(x, "columns")
        array = self._columns(x) if named else np.ascontiguousarray(as_array(x))
        allowed: tuple[type, ...] = (np.uint8,) if kind == "images" else (np.integer, np.floating)
        if kind == "samples":
            allowed += (np.bool_,)
        shaped = array.ndim > 1 and (array.shape[1:] == tuple(self.shape) or not self.shape)
        if not shaped or not len(array) or not issubclass(array.dtype.type, allowed):
            unit = "uint8" if kind == "images" else "numbers"
            rows = "hours" if kind == "recordings" else "samples"
            raise InputError(
                f"x: found {array.dtype} {list(array.shape)}, expected {unit} of shape ({rows}, "
                f"{', '.join(map(str, self.shape)) or '...'}). Bring the {kind} into this form; a single sample is an array of "
                "one."
            )
        if not np.isfinite(array).all():
            raise InputError(
                f"x: found a number that is not finite, expected {kind} without gaps. Leave such samples out."
            )
        return array

    def _columns(self, x: Any) -> NDArray[Any]:
        if missing := [name for name in self.names if name not in x.columns]:
            raise InputError(
                f"x: found no column {', '.join(missing[:5])}, expected {', '.join(self.names)}. Give the columns these names"
            )
        try:
            return np.ascontiguousarray(x[list(self.names)], dtype=np.float64)
        except (TypeError, ValueError) as error:  # of texts, or what pandas has for a missing value
            raise InputError(f"x: found no numbers ({error}), expected columns of numbers. Correct them") from error


def as_array(X: Any) -> Any:
    """Return a tensor as an array, and an array without the numbers that its mask hides; leave other inputs as they are."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    # A data frame may have a column with the name that numpy looks for.
    hides = isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X)
    return np.ma.filled(X.astype(np.float64), np.nan) if hides else X
