"""Inputs of the encoder, and of the classifiers that CLaI is compared with, at each hour of a recording.

They summarise this hour and the earlier hours of the same recording. Values are in standard deviations of the training data;
a variable without a measurement so far has the training mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replication.metrics.hourly import segments

Floats = NDArray[np.float32]

LAGS = (1, 4, 8)
"""Hours; each adds the change of the last value over the lag, or since the first hour."""
TIME_SCALES = (2, 8, 32)
"""Hours; each adds the mean and the deviation of the last value and the share of hours with a measurement, with weights that fall
by the factor e in that time."""
# Larger distances from the training mean are cut to this one, in standard deviations.
_FURTHEST = 6.0
# Later hours of the stay count as this one (two weeks).
_LONGEST = 336


def hourly_names(variables: Sequence[str]) -> list[str]:
    """Return the names of the columns of `hourly_inputs`."""
    kinds = ["last value", "measured", "log hours since measured"]
    kinds += [f"change over {lag} h" for lag in LAGS]
    kinds += [f"{what} over {scale} h" for scale in TIME_SCALES for what in ("mean", "deviation", "share measured")]
    return [f"{kind}: {name}" for kind in kinds for name in variables] + ["log hour of the stay", "hour of the stay"]


def hourly_inputs(
    x: Floats,
    recording: NDArray[np.int64],
    hours: Floats,
    mean: Sequence[float],
    sd: Sequence[float],
) -> Floats:
    """Return the inputs (rows, F) of each hour, in the order of `hourly_names`.

    x: (rows, variables), NaN where nothing was measured; rows of a recording are contiguous and in order of time. recording,
    hours: (rows,). mean, sd: (variables,), from training rows.
    """
    starts, lengths = segments(recording)
    row = np.arange(len(x))[:, None]
    first = np.repeat(starts, lengths)[:, None]
    measured = ~np.isnan(x)
    seen = np.where(measured, row, -1)
    np.maximum.accumulate(seen, axis=0, out=seen)
    known = seen >= first
    value = (np.take_along_axis(x, seen.clip(0), axis=0) - np.asarray(mean, np.float32)) / np.asarray(sd, np.float32)
    value = np.where(known, value, 0).clip(-_FURTHEST, _FURTHEST).astype(np.float32)
    since = np.log1p(np.where(known, row - seen, row - first + 1)) / 2
    share = measured.astype(np.float32)

    columns: list[NDArray[Any]] = [value, share, since]
    columns += [value - np.take_along_axis(value, np.maximum(row - lag, first), axis=0) for lag in LAGS]
    moments = np.concatenate([value, np.square(value), share], axis=1)
    for scale in TIME_SCALES:
        averages = _weighted_mean(moments, starts, lengths, np.float32(1 - np.exp(-1 / scale)))
        average, square, often = np.split(averages, 3, axis=1)
        columns += [average, np.sqrt(np.maximum(square - np.square(average), 0)), often]
    hour = hours.clip(0, _LONGEST)[:, None]
    columns += [np.log1p(hour) - 3, hour / 50 - 1]  # of order 1 for most stays
    return np.concatenate(columns, axis=1, dtype=np.float32)


def _weighted_mean(values: Floats, starts: NDArray[np.int64], lengths: NDArray[np.int64], weight: np.float32) -> Floats:
    """Return m[t] = m[t - 1] + weight (values[t] - m[t - 1]) of each recording, with m[0] = values[0], like values (rows, F)."""
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    result = np.empty_like(values)
    result[starts] = mean = values[starts]
    for hour in range(1, int(lengths.max(initial=0))):
        running = starts[: np.searchsorted(-lengths, -hour)] + hour
        mean = mean[: len(running)]
        mean += weight * (values[running] - mean)
        result[running] = mean
    return result
