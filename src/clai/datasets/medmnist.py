"""A MedMNIST `.npz` with its official training, validation and test images."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from clai.datasets.fetch import Raw
from clai.datasets.prepared import SPLITS, writing
from clai.errors import InputError


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Copy the official splits, one at a time; nothing is drawn, so `seed` has no effect.

    Raises InputError for an array that is missing, pickled or of another shape than images and labels have.
    """
    from medmnist import INFO

    info = INFO[settings["medmnist_flag"]]
    classes = [info["label"][str(k)] for k in range(len(info["label"]))]
    path = raw.find()[0]
    try:
        with np.load(path, allow_pickle=False) as archive, writing(out_dir) as writer:
            for split in SPLITS:
                x, y = archive[f"{split}_images"], archive[f"{split}_labels"].reshape(-1).astype(np.int64)
                if x.dtype != np.uint8 or x.ndim != 4 or x.shape[-1] != 3 or len(x) != len(y):
                    raise InputError(
                        f"{path}: {split}_images is {x.dtype} {x.shape} with {len(y)} labels, expected uint8 (N, H, W, "
                        "3) with as many labels"
                    )
                if len(y) and not 0 <= y.min() <= y.max() < len(classes):
                    raise InputError(f"{path}: {split}_labels has labels outside 0..{len(classes) - 1}")
                writer.array(f"x_{split}", x)
                writer.array(f"y_{split}", y)
            writer.describe(
                raw.description(settings["title"])
                | {
                    "kind": "images",
                    "classes": classes,
                    "channels": ["red", "green", "blue"],
                    "units": ["grey level 0-255"] * 3,
                    "sampling_rate": None,
                    "split_rule": "official training, validation and test images",
                    "exclusions": [],
                }
            )
    except KeyError as error:
        raise InputError(f"{path}: {error}; expected MedMNIST's own keys train_images, train_labels, ...") from error
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: cannot be read as a .npz of plain arrays ({error}). Delete it and run again."
        ) from error
