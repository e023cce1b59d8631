"""A miniature of PathMNIST: the `.npz` of MedMNIST with its official splits."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replication.datasets.miniature.textures import textures


def pathmnist(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `pathmnist.npz`: 600, 100 and 200 images of nine classes, the test images with the stain of another centre."""
    share = np.array([0.10, 0.11, 0.12, 0.12, 0.09, 0.14, 0.08, 0.10, 0.14])
    arrays: dict[str, NDArray[Any]] = {}
    for split, n, cast in (("train", 600, (20, -12, 14)), ("val", 100, (20, -12, 14)), ("test", 200, (12, -6, 8))):
        labels = rng.permutation(np.concatenate([np.arange(9), rng.choice(9, size=n - 9, p=share)]))
        arrays[f"{split}_images"] = textures(labels, 9, 28, 38.0, cast, rng)
        arrays[f"{split}_labels"] = labels.astype(np.uint8)[:, None]
    path = folder / "pathmnist.npz"
    np.savez_compressed(path, **arrays)
    return [path]
