"""Compute with encoders on arrays of a user: types, checks, and torch's modes, whatever modes the caller's thread is in."""

import contextlib
import copy
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clailearn.encoders import Encoder
from clailearn.trainer import Precision, Vectors, precision_context

# Samples that one pass embeds; few, as a trunk may need much memory for each.
_BLOCK = 256
# Initial weights and dropout are drawn from torch's global generators, so trainings in other threads wait.
_ALONE = threading.Lock()


class Samples(Vectors):
    """Samples in the type that they were given in; a batch alone becomes encoder input, which may take eight times as much."""

    def __init__(self, x: Any, labels: Tensor, to_input: Callable[[Any], Tensor]) -> None:
        super().__init__(x, labels)
        self.to_input = to_input

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        x = self.to_input(self.x[items.numpy()])
        return x, self.labels[items].to(x.device)


@dataclass(frozen=True)
class Computation:
    """Where and how to compute: device, precision, and whether training takes a single thread."""

    device: str
    precision: Precision
    one_thread: bool

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of encoder input and of weights."""
        return torch.float64 if self.precision == "float64" else torch.float32

    def tensor(self, X: NDArray[Any]) -> Tensor:
        """Return samples as encoder input."""
        return torch.tensor(np.ascontiguousarray(X, dtype=np.float64), dtype=self.dtype, device=self.device)

    def embed(self, encoder: Encoder, X: NDArray[Any]) -> Tensor:
        """Return embeddings (K, N, L) of samples."""
        encoder.eval()
        with self.modes(), torch.no_grad(), precision_context(torch.device(self.device), self.precision):
            blocks = [encoder(self.tensor(X[n : n + _BLOCK])) for n in range(0, len(X), _BLOCK)]
            return torch.cat(blocks, dim=1)

    @contextlib.contextmanager
    def modes(self, training: bool = False) -> Iterator[None]:
        """Compute in torch's modes of a fresh process, whatever modes the caller's thread is in."""
        with contextlib.ExitStack() as modes:
            modes.enter_context(fresh_modes(self.device))
            if training:
                modes.enter_context(_ALONE)
            if training and self.one_thread:
                # Sums over several threads have other roundings, and a small network gains nothing by them.
                modes.callback(torch.set_num_threads, torch.get_num_threads())
                torch.set_num_threads(1)
            yield

    def check_device(self) -> None:
        """Raise ValueError for a device where torch cannot compute."""
        try:
            torch.zeros(1, device=self.device, dtype=self.dtype).cpu()
        except (AssertionError, RuntimeError, TypeError) as error:
            raise ValueError(
                f"device is {self.device!r}, where torch cannot compute; expected 'cpu', or 'cuda' with a GPU and its driver"
            ) from error

    @torch.no_grad()
    def check_trunk(self, trunk: Any, X: NDArray[Any]) -> None:
        """Raise ValueError unless the trunk maps these samples to as many vectors of the length that it names."""
        features = getattr(trunk, "features", None)
        found: Any
        try:
            with self.modes(), precision_context(torch.device(self.device), self.precision):
                found = tuple(copy.deepcopy(trunk).to(self.device, self.dtype).eval()(self.tensor(X)).shape)
        except Exception as error:  # A trunk of one's own can raise almost any error.
            found = error
        if type(features) is not int or found != (len(X), features):
            raise ValueError(
                f"trunk: {type(trunk).__name__} maps samples of shape {X.shape} to {found!r} and has features={features!r:.100}, "
                "expected an output of shape (samples, features) and its length as features, a whole number; bring X into the "
                "shape that the trunk takes, flatten its output, or set trunk.features"
            )


@contextlib.contextmanager
def fresh_modes(device: str) -> Iterator[None]:
    """Put torch into the modes of a fresh process, for this thread."""
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))  # and with gradients
        modes.enter_context(torch.autocast(torch.device(device).type, enabled=False))
        if torch.get_default_device().type != "cpu":  # This mode slows each operation down.
            modes.enter_context(torch.device("cpu"))
        yield


@contextlib.contextmanager
def unchanged_by_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was where its fit fails or is interrupted."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextlib.contextmanager
def printed_log(wanted: bool) -> Iterator[None]:
    """Print what training logs after each epoch, if wanted."""
    if not wanted:
        yield
        return
    logger, handler = logging.getLogger("clailearn"), logging.StreamHandler(sys.stdout)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def as_array(X: Any) -> Any:
    """Return a tensor as an array, and an array without the numbers that its mask hides; leave other inputs as they are."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    return np.ma.filled(X.astype(np.float64), np.nan) if np.ma.is_masked(X) else X


def refuse_columns(X: Any) -> None:
    """Raise ValueError for the first column of a data frame that holds no numbers."""
    for name in getattr(X, "columns", ()):
        try:
            column = np.asarray(X[name])
            np.result_type(column, np.float64)  # which refuses times
            column.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X holds no numbers in column {name!r} ({error!s:.100}); encode the column, or leave it out"
            ) from None


def labels_of_one_type(labels: Any, name: str) -> Any:
    """Return labels or groups, numbers without objects; raise ValueError where they are of several types, or missing."""
    array = np.asarray(labels, dtype=object if isinstance(labels, list) else None)
    if array.dtype != object or array.ndim != 1 or not len(array):
        return labels
    kinds = [next((kind for kind in (str, Number) if isinstance(label, kind)), type(label)) for label in array]
    if odd := next((n for n, kind in enumerate(kinds) if kind is not kinds[0]), 0):
        raise ValueError(
            f"{name} holds {array[0]!r} in row 0 and {array[odd]!r} in row {odd}, expected values of one type, none missing; "
            "convert them, and leave out or fill what is missing"
        )
    return labels if kinds[0] is str else np.array(array.tolist())


def validated(estimator: Any, X: Any, y: tuple[Any, ...]) -> Any:
    """Return samples, or samples and labels, as scikit-learn validates them, by the parameters of the fit."""
    from sklearn.utils.validation import validate_data  # slow; published models do without it

    fitted, fit = estimator._fitted, bool(y)
    nd = fitted["trunk"] is not None
    y, X = tuple(labels_of_one_type(labels, "y") for labels in y), as_array(X)
    try:
        checked = validate_data(estimator, X, *y, reset=fit, dtype="numeric", allow_nd=nd, ensure_2d=not nd)
        samples = checked[0] if fit else checked
        if samples.ndim < 2:
            raise ValueError(
                f"X has the shape {samples.shape}, expected (samples, ...). Reshape it: a single sample is an array of one"
            )
        if samples.dtype.kind == "f" or not np.can_cast(samples.dtype, np.float32):
            check_range(samples, "float64" if fitted["precision"] == "float64" else "float32", fit)
    except (TypeError, ValueError):
        refuse_columns(X)
        raise
    return checked


def check_range(X: NDArray[Any], precision: Literal["float64", "float32"], fit: bool) -> None:
    """Raise ValueError for numbers whose squares exceed a precision; in a fit, warn of inputs whose differences are lost."""
    least, most = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    largest = np.maximum(np.abs(least), np.abs(most))
    scaling = "standardise X, for instance by sklearn.preprocessing.StandardScaler"
    remedy = scaling if precision == "float64" else f"{scaling}, or set precision='float64'"
    if largest.max() > np.sqrt(np.finfo(precision).max):  # Normalisation layers square them.
        raise ValueError(f"X holds {largest.max():.3g}, whose square is beyond the largest {precision}; {remedy}")
    span = most - least
    lost = (span > 0) & (span < 100 * np.spacing(largest.astype(precision)))
    if fit and lost.any():
        warnings.warn(
            f"{precision} rounds away differences between samples in {lost.sum()} of {lost.size} inputs of X; {remedy}",
            stacklevel=5,
        )
    elif fit and 0 < span.max() < 0.01:
        warnings.warn(
            f"no input of X spans more than {span.max():.3g}, which may be too little; {scaling}", stacklevel=5
        )
    elif fit and X.ndim == 2 and span.max() > 1000 * span[span > 0].min(initial=np.inf):
        warnings.warn(
            f"an input of X spans {span.max():.3g}, another {span[span > 0].min():.3g}, which will hardly count; {scaling}",
            stacklevel=5,
        )
