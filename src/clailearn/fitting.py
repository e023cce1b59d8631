"""What `fit` of the estimator does: it checks what it is given, holds out samples, and trains."""

import contextlib
import copy
import logging
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Number
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from clailearn.checkpoints import seeded_generators
from clailearn.computation import Computation, Inputs, as_array, fresh_modes
from clailearn.encoders import Encoder
from clailearn.errors import DivergenceError
from clailearn.inference import sample_references
from clailearn.learning import collaborative_learning
from clailearn.model import Model, build_network
from clailearn.trainer import Epoch, LazySamples, TrainingSettings
from clailearn.votes import References

# Initial weights and dropout are drawn from torch's global generators, so trainings in other threads wait.
_ALONE = threading.Lock()

Split = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to train on and rows to hold out."""
LOST = 0.01
"""Rounding of a squared distance in the exponent of the kernel from which votes and scores would be wrong."""


class PictureTrunk(nn.Module):
    """A trunk for pictures as they are stored, (N, height, width, channels), in training moved and mirrored at random.

    Args:
        trunk: takes (N, channels, height, width), normalised.
        mean, sd: of the channels.
        shift: the share of a side by which pictures move at most; beyond its border a picture is reflected.
    """

    mean: Tensor
    sd: Tensor

    def __init__(self, trunk: nn.Module, mean: Tensor, sd: Tensor, shift: float = 0.1) -> None:
        super().__init__()
        self.trunk, self.features, self.shift = trunk, trunk.features, shift
        self.register_buffer("mean", mean)
        self.register_buffer("sd", sd)

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / self.sd
        if self.training:
            rows, columns = (self._shown(len(x), side) for side in x.shape[1:3])
            columns = torch.where(torch.rand(len(x), 1) < 0.5, columns, columns.flip(1))
            x = x[torch.arange(len(x))[:, None, None], rows[:, :, None], columns[:, None, :]]
        return self.trunk(x.permute(0, 3, 1, 2))

    def _shown(self, n: int, side: int) -> Tensor:
        """Return which pixels of a side each of n pictures shows, (n, side)."""
        most = round(self.shift * side)
        pixels = (torch.arange(side) + torch.randint(-most, most + 1, (n, 1))).abs()
        return side - 1 - (side - 1 - pixels).abs()


def calibration_split(calibration: Any, y: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Split | None:
    """Return the split of the parameter `calibration`; None: without one, or because a class has one sample, with a warning."""
    if calibration is None:
        return None
    if not isinstance(calibration, Integral):
        return _first(check_cv(calibration), "calibration", y, groups)
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() == 1:
        warnings.warn(
            f"class {classes[counts.argmin()]} has one sample, and calibration needs two of each class: "
            "predict_proba stays uncalibrated; add samples, or set calibration=None",
            stacklevel=3,
        )
        return None
    folds = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = folds(_parts(min(int(calibration), int(counts.min())), groups), shuffle=True, random_state=seed)
    return _first(splitter, "calibration", y, groups)


def validation_split(fraction: float, y: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Split:
    """Return a split that holds out a fraction of the samples, or of the groups."""
    splitter: Any = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed)
    if groups is not None:
        splitter = StratifiedGroupKFold(_parts(round(1 / fraction), groups), shuffle=True, random_state=seed)
    return _first(splitter, "the part held out", y, groups)


def _parts(asked: int, groups: NDArray[Any] | None) -> int:
    """Return into how many parts samples are split: at most one a group, and at least two."""
    return max(2, asked if groups is None else min(asked, len(np.unique(groups))))


def _first(splitter: Any, parameter: str, y: NDArray[Any], groups: NDArray[Any] | None) -> Split:
    """Return the first split; raise ValueError where there is none, or it leaves no sample of a class to train on."""
    try:
        train, validation = map(np.asarray, next(iter(splitter.split(np.zeros(len(y)), y, groups))))
    except (ValueError, StopIteration) as error:
        raise ValueError(
            f"{parameter}: {str(error) or 'found no split'}; add samples or groups, or do without"
        ) from error
    if not len(validation):
        raise ValueError(f"{parameter}: found no sample to hold out, expected some; hold out more, or do without")
    if len(missing := np.setdiff1d(y, y[train])):
        raise ValueError(
            f"{parameter}: found no sample of class {missing[0]} among those to train on, expected some of each class, in "
            "several groups if there are groups; add samples or groups, hold out fewer, or do without"
        )
    return train, validation


def learn(
    own: Mapping[str, Any],
    inputs: Inputs,
    X: NDArray[Any],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    seed: int,
) -> tuple[Model, list[Epoch]]:
    """Train a network and a kernel, and return the model, whose references are samples, and the history of the training.

    own: parameters of the estimator. labels: class indices (N,).
    """
    computation = Computation(own["device"], own["precision"])
    data = LazySamples(X, torch.from_numpy(labels), computation.tensor)
    conditions = 1 if len(classes) == 2 else len(classes)
    settings = network_settings(own)
    with fresh_modes(computation.device), _ALONE, contextlib.ExitStack() as after:
        if own["trunk"] is None or isinstance(own["trunk"], PictureTrunk):
            # Sums over several threads have other roundings, and a small network gains nothing by them.
            after.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        if own["verbose"]:
            after.enter_context(logged(logging.StreamHandler(sys.stdout)))
        with seeded_generators(seed, torch.device("cpu")):
            network, kernel = build_network(settings, inputs, len(classes), seed, own["trunk"])
        assert isinstance(network, Encoder)
        assert kernel is not None
        model = Model(network, kernel, None, None, inputs, classes.tolist(), settings, device=own["device"])
        model.module.to(computation.device, computation.dtype)
        training = _training_settings(own, conditions, len(data), seed)
        history = collaborative_learning(network, kernel, data, conditions, training, dict, checkpoint=None)
        learned = _with_references(model, X, labels, own["max_references"], seed)
        _refuse_lost_distances(learned)
        return learned, history


def network_settings(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model by the parameters of the estimator."""
    trunk, parzen = own["trunk"], own["loss"] == "parzen"
    size, rule = own["embedding_size"], own["rule"]
    return {
        "embedding_size": (4 if parzen else 16) if size == "auto" else int(size),
        "encoder": {"trunk": "mlp", "width": int(own["width"]), "layers": 2}
        if trunk is None
        else {"trunk": "own", "name": type(trunk).__name__},
        "kernel": {"name": own["kernel"], "metric": "full"},
        "conditioning": own["conditioning"],
        "rule": ("parzen" if parzen else "printed") if rule == "auto" else rule,
        "precision": own["precision"],
    }


def _training_settings(own: Mapping[str, Any], conditions: int, samples: int, seed: int) -> TrainingSettings:
    return TrainingSettings(
        epochs=int(own["epochs"]),  # torch takes no integers of numpy
        batch_size=int(min(own["batch_size"], samples // 2)),
        optimiser="adamw",
        learning_rate=own["learning_rate"],
        momentum=0.0,
        weight_decay=own["weight_decay"],
        learning_rate_schedule="one_cycle",
        warmup=0.25,
        precision=own["precision"],
        schedule="joint",
        references=1,
        reference_reduction="mean",
        pair_weighting="none",
        samples_per_class=None,
        target="product" if conditions == 1 else own["target"],
        conditioning="class" if conditions == 1 else own["conditioning"],
        seed=seed,
        loss=own["loss"],
    )


def _with_references(model: Model, X: NDArray[Any], labels: NDArray[np.int64], most: int | None, seed: int) -> Model:
    """Return a model whose references are samples of a fit: all, or a draw."""
    y = torch.from_numpy(labels)
    items, population = torch.arange(len(y)), torch.bincount(y)
    if most is not None:
        items, population = sample_references(y, most, seed)
    z = model.outputs(X[items.numpy()])[0]
    return replace(model, references=References(z, y[items].to(z.device), items, population.to(z.device)))


def _refuse_lost_distances(model: Model) -> None:
    """Raise DivergenceError where embeddings lie so far apart that roundings decide the distances between near ones."""
    assert model.kernel is not None
    assert model.references is not None
    with torch.no_grad():
        z = model.kernel.coordinates(model.references.z)
        rounding = torch.finfo(z.dtype).eps * float((z - z.mean(-2, keepdim=True)).square().sum(-1).max())
    if not rounding <= LOST:
        raise DivergenceError(
            f"training diverged: squared distances of embeddings are rounded by {rounding:.2g}, expected at most {LOST}; lower "
            "learning_rate or weight_decay"
        )


@contextlib.contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Let a handler have what a training logs after each epoch."""
    logger = logging.getLogger("clailearn")
    with contextlib.ExitStack() as after:
        after.callback(logger.setLevel, logger.level)
        after.callback(logger.removeHandler, handler)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        yield


def check_device(computation: Computation) -> None:
    """Raise ValueError for a device where torch cannot compute."""
    try:
        torch.zeros(1, device=computation.device, dtype=computation.dtype).cpu()
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(
            f"device is {computation.device!r}, where torch cannot compute; expected 'cpu', or 'cuda' with a GPU and its driver"
        ) from error


@torch.no_grad()
def check_trunk(computation: Computation, trunk: Any, X: NDArray[Any]) -> None:
    """Raise ValueError unless the trunk maps these samples to as many vectors of the length that it names."""
    features = getattr(trunk, "features", None)
    try:
        with computation.modes(), computation.rounding():
            copied = copy.deepcopy(trunk).to(computation.device, computation.dtype).eval()
            found: Any = tuple(copied(computation.tensor(X)).shape)
    except Exception as error:  # A trunk of one's own can raise almost any error.
        found = error
    if type(features) is not int or found != (len(X), features):
        raise ValueError(
            f"trunk: {type(trunk).__name__} maps samples of shape {X.shape} to {found!r} and has features={features!r:.100}, "
            "expected an output of shape (samples, features) and its length as features, a whole number; bring X into the "
            "shape that the trunk takes, flatten its output, or set trunk.features"
        )


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
    array = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if np.ma.is_masked(labels) or (array.dtype.kind in "mM" and np.isnat(array).any()):
        raise ValueError(f"{name} holds missing values, expected none; leave out or fill what is missing")
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
    fitted, fit = estimator._fitted, bool(y)
    nd = fitted["trunk"] is not None
    y, X = tuple(labels_of_one_type(labels, "y") for labels in y), as_array(X)
    try:
        checked = validate_data(estimator, X, *y, reset=fit, dtype="numeric", allow_nd=nd, ensure_2d=not nd)
        samples = checked[0] if fit else checked
        if samples.dtype.kind in "mM":
            raise ValueError(f"X holds times ({samples.dtype}), expected numbers; convert them")
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
    if not fit:
        return
    if lost.any():
        found = (
            f"{precision} rounds away differences between samples in {lost.sum()} of {lost.size} inputs of X; {remedy}"
        )
    elif 0 < span.max() < 0.01:
        found = f"no input of X spans more than {span.max():.3g}, which may be too little; {scaling}"
    elif X.ndim == 2 and span.max() > 1000 * (smallest := span[span > 0].min(initial=np.inf)):
        found = f"an input of X spans {span.max():.3g}, another {smallest:.3g}, which will hardly count; {scaling}"
    else:
        return
    warnings.warn(found, stacklevel=5)
