"""A 2-D set of MedMNIST, read by the package `medmnist` in any of its sizes, with the official splits.

The settings `medmnist_flag` and `medmnist_size` choose set and size. Name, address, checksum, class names and counts come
from the catalogue of MedMNIST (`medmnist.INFO`).
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clailearn.errors import InputError
from replication.datasets.files import reading
from replication.datasets.identifiers import positive_last
from replication.datasets.prepared import SPLITS, writing
from replication.datasets.sources import Raw, Row

FILES = ("*.npz",)
EXPECTS = "a MedMNIST .npz, or a folder that holds it"
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


def _suffix(settings: Mapping[str, Any]) -> str:
    """Return what MedMNIST adds to names for the size `medmnist_size`."""
    return "" if settings["medmnist_size"] == 28 else f"_{settings['medmnist_size']}"


def file_name(settings: Mapping[str, Any]) -> str:
    return f"{settings['medmnist_flag']}{_suffix(settings)}.npz"


def catalogued(settings: Mapping[str, Any]) -> list[Row]:
    """Return the row of the set and size, as the catalogue has it."""
    info = catalogue(settings)
    url = str(info[f"url{_suffix(settings)}"])
    return [
        Row(
            dataset=settings["medmnist_flag"],
            version=f"MedMNIST (Zenodo {url.split('/records/')[-1].split('/')[0]})",
            file=file_name(settings),
            url=url,
            checksum=f"md5:{info[f'MD5{_suffix(settings)}']}",
            licence=str(info["license"]).replace(" ", "-"),
            access="open",
        )
    ]


def choose(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Row]:
    """Return the row of the set and size: that of the table comes before that of the catalogue."""
    return [row for row in rows if row.file == file_name(settings)][:1]


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Copy the official splits; raise InputError for an array that is missing, pickled or not of images or labels."""
    import medmnist

    info, size, name = catalogue(settings), settings["medmnist_size"], file_name(settings)
    names, channels = list(info["label"].values()), CHANNELS[info["n_channels"]]
    classes = positive_last(names, settings.get("positive"))
    paths = raw.find()
    path = paths[0] if len(paths) == 1 else next((p for p in paths if p.name == name), None)
    if path is None or path.stem.partition("_")[0].lower() in medmnist.INFO.keys() - {settings["medmnist_flag"]}:
        raise InputError(
            f"{raw.path}: found no {name} among {', '.join(p.name for p in paths)}. Correct `path` or `medmnist_flag`."
        )
    with tempfile.TemporaryDirectory() as root, writing(out_dir) as writer:
        Path(root, name).symlink_to(path.resolve())  # The package opens its own name alone.
        for split in SPLITS:
            with reading(path, "MedMNIST's own arrays train_images, train_labels, ..."):
                part = getattr(medmnist, info["python_class"])(split=split, root=root, size=size)
            x, y = part.imgs, part.labels
            expected = (size, size, 3)[: 2 if len(channels) == 1 else 3]
            if x.dtype != np.uint8 or x.shape[1:] != expected:
                raise InputError(
                    f"{path}: {split}_images is {x.dtype} {x.shape}, expected uint8 (N, {', '.join(map(str, expected))}) as "
                    f"{settings['medmnist_flag']} has at size {size}. Replace the file or correct `medmnist_size`."
                )
            whole_numbers = y.dtype.kind in "iu" and y.shape in ((len(x),), (len(x), 1))
            if not whole_numbers or not np.isin(y, np.arange(len(classes))).all():
                raise InputError(
                    f"{path}: {split}_labels is {y.dtype} {y.shape}, expected ({len(x)}, 1) whole numbers from 0, "
                    f"below {len(classes)}. Replace the file."
                )
            writer.array(f"x_{split}", x.reshape(-1, size, size, len(channels)))
            y = y.reshape(-1).astype(np.int64)
            writer.array(f"y_{split}", y if classes == names else 1 - y)
        writer.describe(
            raw.description(settings["title"]),
            kind="images",
            classes=classes,
            channels=channels,
            units=["grey level 0-255"] * len(channels),
            split_rule="official training, validation and test images",
        )
