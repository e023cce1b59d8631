"""A 2-D set of MedMNIST as its `.npz`, in any of its sizes, with the official training, validation and test images.

The settings `medmnist_flag` and `medmnist_size` choose set and size. Name, address, checksum, class names and counts come
from the catalogue of MedMNIST (`medmnist.INFO`).
"""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from clai.errors import InputError
from replication.datasets.archives import opened_zip, reading
from replication.datasets.fetch import Raw
from replication.datasets.prepared import SPLITS, Array, writing
from replication.datasets.sources import Row

FILES = ("*.npz",)
EXPECTS = "a MedMNIST .npz, or a folder that holds it"
_CHUNK_BYTES = 2**24
CHANNELS = {1: ["grey"], 3: ["red", "green", "blue"]}


def catalogue(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of `medmnist_flag`; raises InputError for a set that is unknown, 3-D or multi-label."""
    from medmnist import INFO

    flag = settings["medmnist_flag"]
    usable = [name for name, info in INFO.items() if "3d" not in name and "multi-label" not in info["task"]]
    if flag not in usable:
        raise InputError(
            f"medmnist_flag: found '{flag}', expected one of {', '.join(usable)} (2-D, one label an image)"
        )
    info: dict[str, Any] = INFO[flag]
    return info


def file_name(settings: Mapping[str, Any]) -> str:
    """Return the name of the file of the set in the size `medmnist_size`."""
    size = settings["medmnist_size"]
    return settings["medmnist_flag"] + ("" if size == 28 else f"_{size}") + ".npz"


def catalogued(settings: Mapping[str, Any]) -> list[Row]:
    """Return the row of the set and size, as the catalogue has it."""
    info, size = catalogue(settings), settings["medmnist_size"]
    suffix = "" if size == 28 else f"_{size}"
    url = str(info[f"url{suffix}"])
    return [
        Row(
            dataset=settings["medmnist_flag"],
            version=f"MedMNIST (Zenodo {url.split('/records/')[-1].split('/')[0]})",
            file=file_name(settings),
            urls=(url,),
            size=None,
            checksum=f"md5:{info[f'MD5{suffix}']}",
            licence=str(info["license"]).replace(" ", "-"),
            access="open",
        )
    ]


def choose(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Row]:
    """Return the row of the set and size: that of the table, with its mirrors, comes before that of the catalogue."""
    name = file_name(settings)
    return [row for row in rows if row.file == name][:1]


def _header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of an array in a zip; raises InputError for one of Python objects or in Fortran order."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(stream)
    except (zipfile.BadZipFile, zlib.error, MemoryError):
        raise
    except Exception as error:  # numpy evaluates the header, which can raise almost any error.
        raise InputError(f"{where} is not a plain .npy array ({error}). Delete the file and run again.") from error
    if dtype.hasobject or fortran:
        raise InputError(
            f"{where} holds Python objects or is in Fortran order; nothing of it was read. Replace the file."
        )
    return shape, dtype


def _open(archive: zipfile.ZipFile, path: Path, name: str) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]:
    """Return the stream of array `name` behind its header, its shape and its dtype.

    Raises InputError for an array that is missing or whose header announces more or fewer bytes than follow.
    """
    if f"{name}.npy" not in archive.namelist():
        raise InputError(f"{path}: found no {name}; expected MedMNIST's own keys train_images, train_labels, ...")
    with reading(path, name):
        stream = archive.open(f"{name}.npy")
        shape, dtype = _header(stream, f"{path}: {name}")
    # Python integers do not overflow, whatever dimensions the header announces.
    announced = dtype.itemsize
    for n in shape:
        announced *= n
    if announced != archive.getinfo(f"{name}.npy").file_size - stream.tell():
        raise InputError(f"{path}: {name} announces {dtype} {shape}, which is not what follows. Replace the file.")
    return stream, shape, dtype


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Copy the official splits, a few images at a time; `seed` has no effect.

    Raises InputError for an array that is missing, pickled or not of the shape of images or labels.
    """
    info, size = catalogue(settings), settings["medmnist_size"]
    classes = [info["label"][str(k)] for k in range(len(info["label"]))]
    channels = CHANNELS[info["n_channels"]]
    paths = raw.find()
    path = paths[0] if len(paths) == 1 else next((p for p in paths if p.name == file_name(settings)), None)
    if path is None:
        raise InputError(f"{raw.path}: found no {file_name(settings)} among {', '.join(p.name for p in paths)}")
    with opened_zip(path, largest=None) as archive, writing(out_dir) as writer:
        for split in SPLITS:
            stream, shape, dtype = _open(archive, path, f"{split}_images")
            expected = (size, size) if len(channels) == 1 else (size, size, 3)
            if dtype != np.uint8 or shape[1:] != expected:
                raise InputError(
                    f"{path}: {split}_images is {dtype} {shape}, expected uint8 (N, {', '.join(map(str, expected))}) as "
                    f"{settings['medmnist_flag']} has at size {size}. Replace the file or correct `medmnist_size`."
                )
            if shape[0] > info["n_samples"][split]:
                raise InputError(
                    f"{path}: {split}_images announces {shape[0]} images, expected at most {info['n_samples'][split]}. "
                    "Replace the file."
                )
            y = _labels(archive, path, split, shape[0], len(classes))
            step = max(1, _CHUNK_BYTES // int(np.prod(shape[1:])))
            with (
                stream,
                writer.stream(f"x_{split}", (shape[0], size, size, len(channels)), np.uint8) as append,
            ):
                for start in range(0, shape[0], step):
                    n = min(step, shape[0] - start)
                    with reading(path, f"{split}_images"):
                        pixels = np.frombuffer(stream.read(n * size * size * len(channels)), np.uint8)
                        images = pixels.reshape(n, size, size, len(channels))
                    append(images)
            writer.array(f"y_{split}", y)
        writer.describe(
            raw.description(settings["title"])
            | {
                "kind": "images",
                "classes": classes,
                "channels": channels,
                "units": ["grey level 0-255"] * len(channels),
                "sampling_rate": None,
                "split_rule": "official training, validation and test images",
                "exclusions": [],
            }
        )


def _labels(archive: zipfile.ZipFile, path: Path, split: str, n: int, classes: int) -> Array:
    """Return the labels int64 (n,) of a split; raises InputError for other shapes, types or values."""
    stream, shape, dtype = _open(archive, path, f"{split}_labels")
    if dtype.kind not in "iu" or shape not in ((n,), (n, 1)):
        raise InputError(f"{path}: {split}_labels is {dtype} {shape}, expected whole numbers ({n}, 1)")
    with reading(path, f"{split}_labels"), stream:
        y = np.frombuffer(stream.read(), dtype).astype(np.int64)
    if len(y) and not 0 <= y.min() <= y.max() < classes:
        raise InputError(f"{path}: {split}_labels has labels outside 0..{classes - 1}")
    return y
