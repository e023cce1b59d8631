"""Runs of equal values in an array: the recordings in a table whose rows are hours."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def segments(values: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the first row and the length of each run of equal values (rows,), in order."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return starts, np.diff(starts, append=len(values))
