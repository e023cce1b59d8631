"""Pictures as files in `<split>/<class>/<file>`, in a folder or an archive, as torchvision's `ImageFolder` reads them.

Endings are torchvision's. Classes are the folders below `train`, `test` and, if any, `val`, sorted, but numbers as numbers
(2 before 10), which for CIFAR-10 is the order of the paper (table 2). docs/data.md says what else is read. The title names the
format, because a lossy copy changes pixels.
"""

import hashlib
import logging
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clailearn.errors import InputError
from clailearn.pictures import SUFFIXES, is_own, read_picture
from replication.datasets.files import matching, unpack_archive
from replication.datasets.identifiers import in_order, positive_last
from replication.datasets.prepared import SPLITS, writing
from replication.datasets.sources import Raw
from replication.datasets.splits import stratified_validation

logger = logging.getLogger(__name__)

FILES = tuple(f"**/*{suffix}" for suffix in SUFFIXES)
EXPECTS = "a folder, zip or tar of pictures in <split>/<class>/<file> with the splits train, test and, if any, val"
SPLIT_OF = {
    "train": "train", "training": "train", "test": "test", "testing": "test", "val": "val", "valid": "val", "validation": "val",
}  # fmt: skip
"""The split of a folder, whose name may be in upper or lower case."""
LARGEST = 2**28  # bytes of a file in an archive
NAMED = 20  # files that dataset.json names of a kind
ADVICE = "Resize or replace the file, or correct `image_size` of its dataset."


@contextmanager
def opened(path: Path, out_dir: Path) -> Iterator[Path]:
    """Give the folder of the pictures; an archive is unpacked beside `out_dir` for the time of the block."""
    if path.is_dir():
        yield path
        return
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out_dir.name}-", dir=out_dir.parent) as folder:
        unpack_archive(path, Path(folder), str, LARGEST)
        yield Path(folder)


def listed(folder: Path, path: Path) -> tuple[dict[str, dict[str, list[Path]]], list[Path]]:
    """Return the pictures by split and class, and other files, sorted; raise InputError for splits of other classes."""
    pictures: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    places: dict[str, Path] = {}
    others = []
    for file in matching(folder, ["**/*"]):
        parts = file.relative_to(folder).parts
        at = _place_of_split(parts)
        if at is None or file.suffix.lower() not in SUFFIXES:
            others.append(file)
        else:
            split, place = SPLIT_OF[parts[at].lower()], Path(*parts[: at + 1])
            if (first := places.setdefault(split, place)) != place:
                raise InputError(f"{path}: found {first} and {place} for {split}, expected one folder. Leave one out.")
            name = unicodedata.normalize("NFC", parts[at + 1])
            pictures.setdefault(split, {}).setdefault(name, []).append(file)
    for name, classes in pictures.items():
        if not classes:
            there = ", ".join(sorted(filter(is_own, (inner.name for inner in folder.iterdir())))[:5])
            raise InputError(
                f"{path}: found no picture under {name}/<class>/ but {there or 'nothing'}; expected {', '.join(SUFFIXES)} files. "
                "Name the folders of the splits train, test and, if any, val."
            )
        if unprintable := [name for name in classes if not name.isprintable()]:
            raise InputError(f"{path}: found the folder '{unprintable[0]}', expected the name of a class. Rename it.")
        if only := sorted(pictures["train"].keys() ^ classes.keys()):
            raise InputError(f"{path}: classes {', '.join(only)} are in one of train/ and {name}/ only; expected both")
        below = (inner.name for inner in (folder / places[name]).iterdir() if inner.is_dir() and is_own(inner.name))
        if without := sorted({unicodedata.normalize("NFC", inner) for inner in below} - classes.keys()):
            raise InputError(
                f"{path}: found no picture in {', '.join(without)} of {places[name]}, expected {', '.join(SUFFIXES)} files. "
                "Convert the pictures, or remove the folder."
            )
    return pictures, others


def _place_of_split(parts: Sequence[str]) -> int | None:
    """Return the place of the folder of a split in the path of a file <split>/<class>/..."""
    return next((i for i, part in enumerate(parts[:-2]) if part.lower() in SPLIT_OF), None)


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the pictures; where there is no folder for validation, draw `validation_share` of each training class."""
    size, share = settings["image_size"], settings["validation_share"]
    with opened(raw.path, out_dir) as folder, writing(out_dir) as writer:
        pictures, others = listed(folder, raw.path)
        classes = positive_last(in_order(pictures["train"]), settings.get("positive"))
        files = {split: [(k, p) for k, name in enumerate(classes) for p in of[name]] for split, of in pictures.items()}
        rule = "train, val and test folders as given"
        if "val" not in files:
            rule = f"train and test folders as given; {share:g} of each training class held out for validation (seed {seed})"
            train, val = stratified_validation(np.array([k for k, _ in files["train"]]), share, seed, classes)
            files |= {split: [files["train"][row] for row in rows] for split, rows in (("train", train), ("val", val))}
        same: dict[str, dict[tuple[str, int], str]] = {}

        def pixels_of(split: str) -> Iterator[NDArray[np.uint8]]:
            for k, path in files[split]:
                name = str(path.relative_to(folder))
                pixels = read_picture(path, (size, size), 3, f"{raw.path}: {name}", ADVICE)
                same.setdefault(hashlib.sha256(pixels.data).hexdigest(), {})[split, k] = name
                yield pixels[None]

        for split in SPLITS:
            writer.stream(f"x_{split}", (len(files[split]), size, size, 3), np.uint8, pixels_of(split))
            writer.array(f"y_{split}", np.array([k for k, _ in files[split]], dtype=np.int64))
        trained = [path.relative_to(folder).parts for _, path in files["train"]]
        # From the split on, as in an archive of the folder.
        writer.array("files_train", np.array(["/".join(part[_place_of_split(part) or 0 :]) for part in trained]))
        formats = sorted({SUFFIXES[path.suffix.lower()] for _, path in files["train"]})
        left = [str(path.relative_to(folder)) for path in others]
        repeated = [" = ".join(names.values()) for names in same.values() if len(names) > 1]
        if repeated:
            logger.warning("%d pictures are in two splits or classes: %s", len(repeated), ", ".join(repeated[:NAMED]))
        writer.describe(
            raw.description(f"{settings['title']} ({'/'.join(formats)} copy)"),
            kind="images",
            classes=classes,
            channels=["red", "green", "blue"],
            units=["grey level 0-255"] * 3,
            split_rule=rule,
            exclusions=[{"reason": "files that are no pictures of a class", "count": len(left), "files": left[:NAMED]}]
            * (len(left) > 0),
            repeated=[{"count": len(repeated), "files": repeated[:NAMED]}] * (len(repeated) > 0),
        )
