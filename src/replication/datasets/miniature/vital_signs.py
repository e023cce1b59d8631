"""Synthetic vital signs of ICU stays for the miniatures of the sepsis sources."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

VITALS = ("HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp")
# Mean over patients; spread between patients and within one; drift up to the onset of sepsis.
_USUAL = np.array([84.0, 97.2, 36.9, 122.0, 82.0, 64.0, 18.0])
_BETWEEN = np.array([11.0, 1.2, 0.3, 13.0, 8.0, 7.0, 2.5])
_WITHIN = np.array([6.0, 1.2, 0.25, 9.0, 6.0, 5.0, 2.5])
_SEPSIS = np.array([15.0, -1.4, 0.8, -16.0, -11.0, -7.0, 4.5])


def vital_signs(hours: int, onset: int | None, rng: np.random.Generator) -> NDArray[Any]:
    """Return hourly vital signs (hours, 7) in the order of VITALS and the units of `recordings.UNITS`.

    Each fluctuates slowly around a level of the patient. Over the ten hours before an onset it drifts to the level of
    sepsis. onset: hour, or None without sepsis.
    """
    level = _USUAL + _BETWEEN * rng.normal(size=7)
    noise = rng.normal(size=(hours, 7))
    slow = np.empty_like(noise)
    state = rng.normal(size=7)
    for hour in range(hours):
        state = 0.8 * state + 0.6 * noise[hour]
        slow[hour] = state
    values: NDArray[Any] = level + _WITHIN * slow
    if onset is not None:
        ramp = np.clip((np.arange(hours) - (onset - 10)) / 10, 0, 1)
        values += ramp[:, None] * _SEPSIS * rng.uniform(0.2, 1.1)
    values[:, 1] = np.minimum(values[:, 1], 100)
    values[:, 2:] = np.maximum(values[:, 2:], 5)
    return values
