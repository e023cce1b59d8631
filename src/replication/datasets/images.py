"""Sources of images: folders or archives of pictures, the official CIFAR-10, and the sets of MedMNIST.

Pictures are files in `<split>/<class>/<file>`, as torchvision's `ImageFolder` reads them, or in `<class>/<file>`; docs/data.md
says what else is read. The title of a copy of CIFAR-10 names the format, because a lossy copy changes pixels.

CIFAR-10 is read by torchvision from its seven pickled files, which are verified before they are opened. A 2-D set of MedMNIST has
its name, address, checksum, class names and counts from the package's catalogue (`medmnist.INFO`).
"""

import hashlib
import logging
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clailearn.errors import InputError
from clailearn.pictures import SUFFIXES, is_own, read_picture, sizes_of
from replication.datasets.files import matching, reading, unpack_archive
from replication.datasets.prepared import SPLITS, Writer
from replication.datasets.samples import Column, division, in_order, positive_last, rows_by_class, stratified_validation
from replication.datasets.sources import Raw, Row, Source, verify
from replication.runs.registry import REPOSITORY_DATASETS

logger = logging.getLogger(__name__)

CHANNELS = {1: ["grey"], 3: ["red", "green", "blue"]}
HELD_OUT = "{:g} of each training class held out for validation (seed {})"


def _describe(writer: Writer, channels: int = 3, **entries: Any) -> None:
    """Write `dataset.json` of images with so many channels."""
    units = ["grey level 0-255"] * channels
    writer.describe(kind="images", channels=CHANNELS[channels], units=units, **entries)


# Pictures

SPLIT_OF = {
    "train": "train", "training": "train", "test": "test", "testing": "test", "val": "val", "valid": "val", "validation": "val",
}  # fmt: skip
"""The split of a folder, whose name may be in upper or lower case."""
NAMED = 20  # files that dataset.json names of a kind
EXPECTED = ", ".join(SUFFIXES)
ADVICE = "Resize or replace the file, or correct `image_size` of its dataset."
SIDE, LARGEST_SIDE = 28, 256
"""Pixels a side of pictures that are resized without a stated size; and at most of those that keep the size that all have."""
WHOLE = "all"
"""In place of a split: the pictures of a folder without splits."""


def listed(folder: Path, path: Path) -> tuple[dict[str, dict[str, list[Path]]], list[Path]]:
    """Return the pictures by split or `WHOLE` and class, and other files; raise InputError for splits of other classes."""
    pictures: dict[str, dict[str, list[Path]]] = {}
    folders: dict[str, Path] = {}
    files = {file: file.relative_to(folder).parts for file in matching(folder, ["**/*"])}
    read = {file: parts for file, parts in files.items() if file.suffix.lower() in SUFFIXES}
    others = [file for file in files if file not in read]
    split_up = any(_depth_of_split(parts) is not None for parts in read.values())
    deepest = {parts[-2].lower() for parts in read.values() if len(parts) > 2}
    if not split_up and deepest and deepest <= SPLIT_OF.keys():
        raise InputError(f"{path}: found {', '.join(sorted(deepest))} within folders; expected {FOLDER.expects}")
    around = 0
    while not split_up and len(_names_at(read.values(), around)) == 1 and _names_at(read.values(), around + 1):
        around += 1  # A picture lies beside the folders of the classes.
    for file, parts in read.items():
        at = _depth_of_split(parts) if split_up else around - 1
        if at is None or len(parts) < at + 3:
            others.append(file)
        else:
            split, below = SPLIT_OF[parts[at].lower()] if split_up else WHOLE, Path(*parts[: at + 1])
            if (first := folders.setdefault(split, below)) != below:
                raise InputError(f"{path}: found {first} and {below} for {split}, expected one folder. Leave one out.")
            name = unicodedata.normalize("NFC", parts[at + 1])
            pictures.setdefault(split, {}).setdefault(name, []).append(file)
    if WHOLE not in pictures:
        pictures = {"train": {}, "test": {}} | pictures
    for name, classes in pictures.items():
        if not classes:
            found = f"no picture under {name}/<class>/ but {', '.join(_own_below(folder)[:5]) or 'nothing'}"
            raise InputError(f"{path}: found {found}; expected {FOLDER.expects}, files {EXPECTED}")
        if unprintable := [name for name in classes if not name.isprintable()]:
            raise InputError(f"{path}: found the folder '{unprintable[0]}', expected the name of a class. Rename it.")
        if only := sorted(pictures.get("train", classes).keys() ^ classes.keys()):
            raise InputError(f"{path}: classes {', '.join(only)} are in one of train/ and {name}/ only; expected both")
        inner = [inner for inner in _own_below(folder / folders[name]) if (folder / folders[name] / inner).is_dir()]
        if without := sorted({unicodedata.normalize("NFC", name) for name in inner} - classes.keys()):
            found = f"found no picture in {', '.join(without)} of {folders[name]}, expected {EXPECTED} files"
            raise InputError(f"{path}: {found}. Convert the pictures, or remove the folder.")
    return pictures, sorted(others)


def _own_below(folder: Path) -> list[str]:
    return sorted(filter(is_own, os.listdir(folder)))


def _names_at(files: Iterable[Sequence[str]], level: int) -> set[str]:
    """Return the names of folders that are so many folders deep, by the paths of pictures."""
    return {parts[level] for parts in files if len(parts) > level + 1}


def _depth_of_split(parts: Sequence[str]) -> int | None:
    """Return where the folder of a split is in the path of a file <split>/<class>/..."""
    return next((i for i, part in enumerate(parts[:-2]) if part.lower() in SPLIT_OF), None)


def prepare_folder(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Read the pictures, and divide those of each class as far as no folders do."""
    folder = raw.path if raw.path.is_dir() else writer.scratch()
    if folder != raw.path:
        unpack_archive(raw.path, folder, str)
    pictures, others = listed(folder, raw.path)
    classes = positive_last(in_order(next(iter(pictures.values()))), settings.get("positive"))
    of_class = list(enumerate(classes))
    files = {split: [(k, path) for k, name in of_class for path in part[name]] for split, part in pictures.items()}
    rule = "train, val and test folders as given"
    if WHOLE in files:
        if "test_share" not in settings:
            raise InputError(f"{raw.path}: found no folder test, expected one. Make it, or set `test_share`.")
        rule, whole = division(settings, "each class", seed), files[WHOLE]
        parts = rows_by_class(np.array([k for k, _ in whole]), classes, settings, seed)
        files = {split: [whole[row] for row in rows] for split, rows in zip(SPLITS, parts, strict=True)}
    elif "val" not in files:
        whole, share = files["train"], settings["validation_share"]
        halves = stratified_validation(np.array([k for k, _ in whole]), share, seed, classes)
        files["train"], files["val"] = ([whole[row] for row in rows] for rows in halves)
        rule = f"train and test folders as given; {HELD_OUT.format(share, seed)}"
    sizes, side = sizes_of(path for part in files.values() for _, path in part), settings["image_size"]
    first = min(sizes, default=(SIDE, SIDE))
    agreed = first if len(sizes) == 1 and max(first) <= LARGEST_SIDE else (SIDE, SIDE)
    size = (side, side) if side else agreed
    resized = settings.get("resize", False) and sizes != {size}
    if resized:
        logger.info("pictures of %d sizes: each is scaled to cover %d x %d, and its middle kept", len(sizes), *size)
    same: dict[str, dict[tuple[str, int], str]] = {}

    def pixels_of(split: str) -> Iterator[NDArray[np.uint8]]:
        for k, path in files[split]:
            name = str(path.relative_to(folder))
            pixels = read_picture(path, size, 3, f"{raw.path}: {name}", ADVICE, resize=resized)
            same.setdefault(hashlib.sha256(pixels.data).hexdigest(), {})[split, k] = name
            yield pixels[None]

    for split in SPLITS:
        writer.stream(f"x_{split}", (len(files[split]), *size, 3), np.uint8, pixels_of(split))
        writer.array(f"y_{split}", np.array([k for k, _ in files[split]], dtype=np.int64))
    trained = [path.relative_to(folder).parts for _, path in files["train"]]
    # From the split on, as in an archive of the folder.
    writer.array("files_train", np.array(["/".join(part[_depth_of_split(part) or 0 :]) for part in trained]))
    formats = sorted({SUFFIXES[path.suffix.lower()] for _, path in files["train"]})
    left = [str(path.relative_to(folder)) for path in others]
    repeated = [" = ".join(names.values()) for names in same.values() if len(names) > 1]
    if repeated:
        logger.warning("%d pictures are in two splits or classes: %s", len(repeated), ", ".join(repeated[:NAMED]))
    exclusion = {"reason": "files that are no pictures of a class", "count": len(left), "files": left[:NAMED]}
    copy = f" ({'/'.join(formats)} copy)" if raw.dataset in REPOSITORY_DATASETS else ""
    _describe(
        writer, title=f"{writer.origin['title']}{copy}", classes=classes, split_rule=rule, resized=resized,
        exclusions=[exclusion] if left else [],
        repeated=[{"count": len(repeated), "files": repeated[:NAMED]}] if repeated else [],
    )  # fmt: skip


FOLDER = Source(
    files=tuple(f"**/*{suffix}" for suffix in SUFFIXES),
    expects="a folder, zip or tar of pictures in <class>/<file>, or <split>/<class>/<file> with train, test and, if any, val",
    prepare=prepare_folder,
)


# CIFAR-10

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{n}" for n in range(1, 6))
TEST = "test_batch"
META = "batches.meta"
MEMBERS = (*TRAIN, TEST, META)


def unpack_cifar10(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Return the seven files, where needed taken out of an archive into `folder`; raises InputError unless all are there."""

    def wanted(member: str) -> str | None:
        return last if (last := PurePosixPath(member).name) in MEMBERS else None

    batches = [path for path in paths if path.name in MEMBERS] or unpack_archive(paths[0], folder / BATCHES, wanted)
    if sorted(path.name for path in batches) != sorted(MEMBERS) or len({path.parent for path in batches}) > 1:
        found, where = ", ".join(map(str, batches)) or "none of them", paths[0] if len(paths) == 1 else paths[0].parent
        expected = f"each of {', '.join(MEMBERS)} once, in one folder"
        raise InputError(f"{where}: found {found}; expected {expected}. Replace it by the official CIFAR-10.")
    return batches


def prepare_cifar10(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Read the batches, and draw `validation_share` of each training class for validation."""
    from torchvision.datasets import CIFAR10 as Official

    md5 = {file["file"]: file["checksum"].removeprefix("md5:") for file in raw.files}
    for name in MEMBERS:  # The files may have changed since the manifest was written, and are about to be unpickled.
        verify(raw.path / name, f"md5:{md5[name]}", raw.dataset)

    class Batches(Official):
        base_folder = raw.path.name
        train_list: ClassVar = [[name, md5[name]] for name in TRAIN]
        test_list: ClassVar = [[TEST, md5[TEST]]]
        meta: ClassVar = Official.meta | {"md5": md5[META]}

    with reading(raw.path, CIFAR10.expects):
        train, test = (Batches(raw.path.parent, train=part) for part in (True, False))
    y, share = np.array(train.targets, dtype=np.int64), settings["validation_share"]
    for split, rows in zip(("train", "val"), stratified_validation(y, share, seed, train.classes), strict=True):
        writer.array(f"x_{split}", train.data[rows])
        writer.array(f"y_{split}", y[rows])
    writer.array("x_test", test.data)
    writer.array("y_test", np.array(test.targets, dtype=np.int64))
    rule = f"official train and test batches; {HELD_OUT.format(share, seed)}"
    _describe(writer, classes=train.classes, split_rule=rule)


CIFAR10 = Source(
    files=(ARCHIVE, *(f"**/{name}" for name in MEMBERS)),
    expects=f"the folder {BATCHES}, the archive {ARCHIVE}, or another archive of the same seven files",
    prepare=prepare_cifar10,
    # The other rows state the checksums of its members.
    choose=lambda rows, settings: [row for row in rows if row.file == ARCHIVE],
    unpack=unpack_cifar10,
    official="md5",  # as torchvision has it; unpickling runs what a pickle says
)


# MedMNIST


def catalogue(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of `medmnist_flag`; raises InputError for a set that is unknown, 3-D or multi-label."""
    from medmnist import INFO

    flag = settings["medmnist_flag"]
    usable = {name: info for name, info in INFO.items() if "3d" not in name and "multi-label" not in info["task"]}
    if flag not in usable:
        raise InputError(f"medmnist_flag: found '{flag}', expected a 2-D set of one label: {', '.join(usable)}")
    return dict(usable[flag])


def catalogued(settings: Mapping[str, Any]) -> Row:
    """Return the row of the set and size, as the catalogue has it."""
    info, flag, size = catalogue(settings), settings["medmnist_flag"], settings["medmnist_size"]
    suffix = "" if size == 28 else f"_{size}"
    url = str(info[f"url{suffix}"])
    return Row(
        dataset=flag,
        version=f"MedMNIST (Zenodo {url.split('/records/')[-1].split('/')[0]})",
        file=f"{flag}{suffix}.npz",
        url=url,
        checksum=f"md5:{info[f'MD5{suffix}']}",
        licence=str(info["license"]).replace(" ", "-"),
        access="open",
    )


def prepare_medmnist(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Copy the official splits; raise InputError for an array that is missing, pickled or not of images or labels."""
    from medmnist import INFO

    info, size, name = catalogue(settings), settings["medmnist_size"], catalogued(settings).file
    names, channels, positive = list(info["label"].values()), int(info["n_channels"]), settings.get("positive")
    paths = raw.find()
    path = paths[0] if len(paths) == 1 else next((p for p in paths if p.name == name), None)
    if path is None or path.stem.partition("_")[0].lower() in INFO.keys() - {settings["medmnist_flag"]}:
        there = ", ".join(p.name for p in paths)
        raise InputError(f"{raw.path}: found no {name} among {there}. Correct `path` or `medmnist_flag`.")
    for split in SPLITS:
        expected = "MedMNIST's own arrays train_images, train_labels, ..."
        with reading(path, expected), np.load(path, allow_pickle=False) as archive:
            x, y = archive[f"{split}_images"], archive[f"{split}_labels"]
        shape = (size, size, 3)[: 2 if channels == 1 else 3]
        if x.dtype != np.uint8 or x.shape[1:] != shape:
            expected = f"uint8 (N, {', '.join(map(str, shape))}) as in {name}"
            remedy = "Replace the file or correct `medmnist_size`."
            raise InputError(f"{path}: {split}_images is {x.dtype} {x.shape}, expected {expected}. {remedy}")
        column = Column(path, f"{split}_labels")
        labels = column.values(y[:, 0] if y.shape[1:] == (1,) else y, len(x))
        writer.array(f"x_{split}", x.reshape(-1, size, size, channels))
        writer.array(f"y_{split}", column.class_indices(labels, names, positive)[1])
    rule = "official training, validation and test images"
    _describe(writer, channels, classes=positive_last(names, positive), split_rule=rule)


MEDMNIST = Source(
    files=("*.npz",),
    expects="a MedMNIST .npz, or a folder that holds it",
    prepare=prepare_medmnist,
    # The row of the table comes before that of the catalogue.
    choose=lambda rows, settings: [row for row in rows if row.file == catalogued(settings).file][:1],
    catalogued=lambda settings: [catalogued(settings)],
)
