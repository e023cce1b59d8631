"""Recordings in tables whose rows are hours: their rows, and the utility of alarms.

The utility is that of the PhysioNet/CinC Challenge 2019 (Reyna et al. 2020, "Early prediction of sepsis from clinical data").
The utility of an hour of a patient with sepsis depends on its distance to the onset:

    alarm       0 at 12 h before, rising linearly to 1 at 6 h before, falling linearly to 0 at 3 h after; -0.05 before that window
    no alarm    0 until 6 h before, falling linearly to -2 at 3 h after

Hours later than 3 h after the onset count 0. In an hour of a patient without sepsis an alarm counts -0.05, and no alarm 0.
The score is the sum over all hours of all patients, scaled to 0 for no alarm at all and to 1 for the best possible alarms.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

EARLIEST, OPTIMAL, LATEST = -12.0, -6.0, 3.0
"""Hours relative to the onset from which alarms earn, at which they earn most, and until which they earn."""
BEST_ALARM, WORST_SILENCE, FALSE_ALARM = 1.0, -2.0, -0.05


class HourlyUtility(NamedTuple):
    """The utility of an alarm and of no alarm in each hour, (rows,) each."""

    alarm: Floats
    silence: Floats


def segments(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the length of each run of equal values (rows,), in order."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return starts, np.diff(starts, append=len(values))


def hourly_utility(y: ArrayLike, recording: ArrayLike, label_hours_before: float) -> HourlyUtility:
    """Return the utilities of each hour.

    y: labels (rows,) in {0, 1}; the first 1 of a recording is `label_hours_before` hours before its onset. recording: of each
    row; rows of a recording are contiguous and an hour apart.
    """
    y, recording = np.asarray(y).astype(bool), np.asarray(recording)
    starts, lengths = segments(recording)
    row = np.arange(len(y))
    first = np.minimum.reduceat(np.where(y, row, len(y)), starts)
    septic = np.repeat(first < len(y), lengths)
    since = row - np.repeat(first, lengths) - label_hours_before  # hours since the onset; meaningless without one

    rise = BEST_ALARM * (since - EARLIEST) / (OPTIMAL - EARLIEST)
    fall = BEST_ALARM * (LATEST - since) / (LATEST - OPTIMAL)
    alarm = np.where(since <= OPTIMAL, np.maximum(rise, FALSE_ALARM), fall)
    silence = np.where(since <= OPTIMAL, 0.0, WORST_SILENCE * (since - OPTIMAL) / (LATEST - OPTIMAL))
    over = since > LATEST
    return HourlyUtility(
        np.where(septic, np.where(over, 0.0, alarm), FALSE_ALARM), np.where(septic & ~over, silence, 0.0)
    )


def utility_parts(utility: HourlyUtility, alarms: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Return the utility of alarms, of none and of the best, (rows,) each."""
    alarm, silence = utility
    return np.where(alarms, alarm, silence), silence, np.maximum(alarm, silence)


def utility_score(utility: HourlyUtility, alarms: ArrayLike) -> float:
    """Return the scaled utility of alarms (rows,), at most 1; NaN where no alarm can earn anything."""
    earned, silence, best = (float(part.sum()) for part in utility_parts(utility, np.asarray(alarms, dtype=bool)))
    return (earned - silence) / (best - silence) if best > silence else float("nan")


def choose_alarm_threshold(utility: HourlyUtility, score: ArrayLike) -> float:
    """Return the threshold above which alarms on scores (rows,) have the largest utility; infinite if no alarm is best."""
    score = np.asarray(score, dtype=np.float64)
    order = np.argsort(-score, kind="stable")
    gain = np.cumsum((utility.alarm - utility.silence)[order])
    ends = np.flatnonzero(np.r_[np.diff(score[order]) != 0, True])  # equal scores sound alarms together
    best = ends[np.argmax(gain[ends])]
    if gain[best] <= 0:
        return float("inf")
    lowest = score[order][best]
    below = score[order][best + 1] if best + 1 < len(score) else -np.inf
    return float((lowest + below) / 2) if np.isfinite(below) else float(np.nextafter(lowest, -np.inf))
