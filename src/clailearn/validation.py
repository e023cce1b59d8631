"""Which samples of a fit are held out of training, to calibrate on or to stop by."""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit, check_cv

Split = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to train on and rows to hold out."""


def calibration_split(calibration: Any, y: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Split | None:
    """Return the split of a calibration; None: without one, or because a class has one sample, with a warning.

    Args:
        calibration: parts, a splitter, an iterable of splits, or None, as `CLaIClassifier` takes it.
    """
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
    splitter = folds(min(int(calibration), int(counts.min())), shuffle=True, random_state=seed)
    return _first(splitter, "calibration", y, groups)


def validation_split(fraction: float, y: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Split:
    """Return the split of early stopping, which holds out a fraction of the samples, or of the groups."""
    splitter: Any = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed)
    if groups is not None:
        splitter = StratifiedGroupKFold(max(2, round(1 / fraction)), shuffle=True, random_state=seed)
    return _first(splitter, "validation_fraction", y, groups)


def _first(splitter: Any, parameter: str, y: NDArray[Any], groups: NDArray[Any] | None) -> Split:
    """Return the first split; raise ValueError where there is none, or it leaves no sample of a class to train on."""
    try:
        train, validation = next(iter(splitter.split(np.zeros(len(y)), y, groups)))
    except (ValueError, StopIteration) as error:
        raise ValueError(
            f"{parameter}: {str(error) or 'found no split'}; add samples or groups, or do without"
        ) from error
    if len(missing := np.setdiff1d(y, y[train])):
        raise ValueError(
            f"{parameter}: found no sample of class {missing[0]} among those to train on, expected some of each class, in "
            "several groups if there are groups; add samples or groups, hold out fewer, or do without"
        )
    return train, validation
