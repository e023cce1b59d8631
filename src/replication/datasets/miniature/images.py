"""Miniatures of image datasets: textures in the files of MedMNIST and of CIFAR-10."""

import gzip
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replication.datasets.cifar10 import ARCHIVE, FOLDER, META, TEST, TRAIN


def textures(labels: NDArray[Any], classes: int, size: int, noise: float, rng: np.random.Generator) -> NDArray[Any]:
    """Draw images uint8 (N, size, size, 3): gratings whose direction and tint depend on the class, under noise."""
    n = len(labels)
    angle = np.pi * (labels + rng.normal(0, 0.35, n)) / classes
    wavelength = rng.uniform(4.0, 8.0, n)
    phase = rng.uniform(0, 2 * np.pi, n)
    row, column = np.mgrid[:size, :size]
    along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
    grating = np.sin(2 * np.pi * along / wavelength[:, None, None] + phase[:, None, None])
    hue = 2 * np.pi * ((labels * 3) % classes) / classes
    tint = np.stack([np.cos(hue), np.cos(hue - 2.1), np.cos(hue + 2.1)], axis=-1)
    light = rng.normal(0, 18, (n, 1, 1, 3)) + 14 * tint[:, None, None, :]
    pixels = 125 + light + rng.uniform(12, 34, (n, 1, 1, 1)) * grating[..., None]
    pixels = pixels + rng.normal(0, noise, (n, size, size, 3))
    bounded: NDArray[Any] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return bounded


def breastmnist(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `breastmnist.npz`: 240, 60 and 120 grey images of two classes, a third of them of the first."""
    arrays: dict[str, NDArray[Any]] = {}
    for split, n in (("train", 240), ("val", 60), ("test", 120)):
        labels = rng.permutation((np.arange(n) % 3 > 0).astype(np.int64))
        arrays[f"{split}_images"] = textures(labels, 2, 28, 30.0, rng)[..., 0]
        arrays[f"{split}_labels"] = labels.astype(np.uint8)[:, None]
    np.savez_compressed(folder / "breastmnist.npz", allow_pickle=False, **arrays)
    return [folder / "breastmnist.npz"]


def cifar10(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `cifar-10-python.tar.gz`: five batches of 120 training images and one of 200 test images, classes balanced."""
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    members = {META: pickle.dumps({"num_cases_per_batch": 120, "label_names": classes, "num_vis": 3072}, protocol=2)}
    for name in (*TRAIN, TEST):
        labels = rng.permutation(np.repeat(np.arange(10), 20 if name == TEST else 12))
        pixels = textures(labels, 10, 32, 42.0, rng)
        rows = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1))
        members[name] = pickle.dumps({"labels": labels.tolist(), "data": rows}, protocol=2)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path = folder / ARCHIVE
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=6, mtime=0))
    return [path]
