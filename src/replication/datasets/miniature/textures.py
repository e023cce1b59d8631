"""Images of synthetic textures for the miniatures of image datasets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def textures(
    labels: NDArray[Any], classes: int, size: int, noise: float, cast: Sequence[float], rng: np.random.Generator
) -> NDArray[Any]:
    """Draw images uint8 (N, size, size, 3): gratings whose direction and tint depend on the class, under noise.

    labels: (N,) in 0 .. classes - 1. noise: standard deviation in grey levels. cast: (3,) grey levels added to every
    image.
    """
    n = len(labels)
    angle = np.pi * (labels + rng.normal(0, 0.35, n)) / classes
    wavelength = rng.uniform(4.0, 8.0, n)
    phase = rng.uniform(0, 2 * np.pi, n)
    row, column = np.mgrid[:size, :size]
    along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
    grating = np.sin(2 * np.pi * along / wavelength[:, None, None] + phase[:, None, None])
    hue = 2 * np.pi * ((labels * 3) % classes) / classes
    tint = np.stack([np.cos(hue), np.cos(hue - 2.1), np.cos(hue + 2.1)], axis=-1)
    light = rng.normal(0, 18, (n, 1, 1, 3)) + 14 * tint[:, None, None, :] + np.asarray(cast)
    pixels = 125 + light + rng.uniform(12, 34, (n, 1, 1, 1)) * grating[..., None]
    pixels = pixels + rng.normal(0, noise, (n, size, size, 3))
    bounded: NDArray[Any] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return bounded
