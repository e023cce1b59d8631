"""What is known at an hour of a recording: the inputs of the encoder and of the classifiers it is compared with.

Everything is computed from that hour and the hours before it in the same recording. Values are in standard deviations of the
training data; a variable not yet measured has the training mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clai.segments import segments

Floats = NDArray[np.float32]

# Values further from the training mean are cut, in standard deviations.
_FURTHEST = 6.0
# Hours of the stay beyond this one are not told apart (two weeks).
_LONGEST = 336


def hourly_names(variables: Sequence[str], lags: Sequence[int], time_scales: Sequence[float]) -> list[str]:
    """Names of the columns of `hourly_inputs`."""
    kinds = ["last value", "measured", "log hours since measured"]
    kinds += [f"change over {lag} h" for lag in lags]
    kinds += [f"{what} over {scale:g} h" for scale in time_scales for what in ("mean", "deviation", "share measured")]
    return [f"{kind}: {name}" for kind in kinds for name in variables] + ["log hour of the stay", "hour of the stay"]


def hourly_inputs(
    x: Floats,
    recording: NDArray[np.int64],
    hours: Floats,
    mean: Sequence[float],
    sd: Sequence[float],
    lags: Sequence[int],
    time_scales: Sequence[float],
) -> Floats:
    """Inputs (rows, F) of each hour, in the order of `hourly_names`.

    Args:
        x: (rows, variables), NaN where nothing was measured; rows of one recording together and in order of time.
        recording, hours: the recording and the hour of the stay of each row.
        mean, sd: of each variable, from training rows.
        lags: hours; change of the last value since so many hours ago, or since the first hour.
        time_scales: hours; exponentially weighted mean and deviation of the last value and share of hours with a
            measurement, the weight falling by the factor e in so many hours.
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
    columns += [value - np.take_along_axis(value, np.maximum(row - lag, first), axis=0) for lag in lags]
    moments = np.concatenate([value, np.square(value), share], axis=1)
    for scale in time_scales:
        averages = _weighted_mean(moments, starts, lengths, np.float32(1 - np.exp(-1 / scale)))
        average, square, often = np.split(averages, 3, axis=1)
        columns += [average, np.sqrt(np.maximum(square - np.square(average), 0)), often]
    hour = hours.clip(0, _LONGEST)[:, None]
    columns += [np.log1p(hour) - 3, hour / 50 - 1]  # of order 1 for most stays
    return np.concatenate(columns, axis=1, dtype=np.float32)


def _weighted_mean(values: Floats, starts: NDArray[np.int64], lengths: NDArray[np.int64], weight: np.float32) -> Floats:
    """m[t] = m[t - 1] + weight (values[t] - m[t - 1]) in each recording, from m[0] = values[0]; for all an hour at a time."""
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
