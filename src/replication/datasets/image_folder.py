"""Pictures as files in `<split>/<class>/<file>`, in a folder or an archive, as torchvision's `ImageFolder` reads them.

Endings and order are torchvision's. Classes are the folders below `train` and `test`, in alphabetical order, which for
CIFAR-10 is the order of the paper (table 2). Below a class pictures may lie at any depth. Unlike torchvision, hidden folders are
no classes, and links in a circle are refused (`files.matching`). The title names the format, because a lossy copy changes pixels.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from clai.errors import InputError
from clai.pictures import SUFFIXES, read_picture
from replication.datasets.files import matching, unpack_archive
from replication.datasets.prepared import writing
from replication.datasets.sources import Raw
from replication.datasets.splits import stratified_validation

FILES = tuple(f"**/*{suffix}" for suffix in SUFFIXES)
EXPECTS = "a folder, zip or tar of pictures in <split>/<class>/<file> with the splits train and test"
LARGEST = 2**28  # bytes of a file in an archive
ADVICE = "Replace the file, or correct `image_size` in config.yaml."


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


def listed(folder: Path, path: Path) -> dict[str, dict[str, list[Path]]]:
    """Return the pictures below `folder` by split ("train", "test") and class, sorted.

    path: the folder or archive for messages. Raises InputError when a split is missing, the splits do not have the same classes,
    or the name of a class cannot be printed.
    """
    pictures: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for picture in matching(folder, FILES):
        parts = picture.relative_to(folder).parts
        split = next((i for i, part in enumerate(parts[:-2]) if part in pictures), None)
        if split is not None:
            pictures[parts[split]].setdefault(parts[split + 1], []).append(picture)
    for name, classes in pictures.items():
        if not classes:
            raise InputError(
                f"{path}: found no picture under {name}/<class>/; expected {', '.join(SUFFIXES)} files there"
            )
        if unprintable := [name for name in classes if not name.isprintable()]:
            raise InputError(f"{path}: found the folder '{unprintable[0]}', expected the name of a class. Rename it.")
    if only := sorted(pictures["train"].keys() ^ pictures["test"].keys()):
        raise InputError(
            f"{path}: classes {', '.join(only)} are in one of train/ and test/ only; expected them in both"
        )
    return pictures


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the pictures, and draw `validation_share` of each training class for validation."""
    size = settings["image_size"]
    with opened(raw.path, out_dir) as folder, writing(out_dir) as writer:
        pictures = listed(folder, raw.path)
        classes = sorted(pictures["train"])
        files = {split: [p for name in classes for p in of_split[name]] for split, of_split in pictures.items()}
        labels = {
            split: np.repeat(np.arange(len(classes)), [len(of_split[name]) for name in classes])
            for split, of_split in pictures.items()
        }
        left_out = len(matching(folder, ["**/*"])) - len(files["train"]) - len(files["test"])
        train, val = stratified_validation(labels["train"], settings["validation_share"], seed)
        for split, source, rows in (
            ("train", "train", train),
            ("val", "train", val),
            ("test", "test", np.arange(len(files["test"]))),
        ):
            with writer.stream(f"x_{split}", (len(rows), size, size, 3), np.uint8) as append:
                for row in rows:
                    path = files[source][row]
                    name = f"{raw.path}: {path.relative_to(folder)}"
                    append(read_picture(path, (size, size), 3, name, ADVICE)[None])
            writer.array(f"y_{split}", labels[source][rows])
        formats = sorted({SUFFIXES[path.suffix.lower()] for path in files["train"]})
        writer.describe(
            raw.description(f"{settings['title']} ({'/'.join(formats)} copy)")
            | {
                "kind": "images",
                "classes": classes,
                "channels": ["red", "green", "blue"],
                "units": ["grey level 0-255"] * 3,
                "sampling_rate": None,
                "split_rule": f"train and test folders as given; {settings['validation_share']:g} of each training "
                f"class held out for validation (seed {seed})",
                "exclusions": [{"reason": "files that are no pictures of a class", "count": left_out}] * (left_out > 0),
            }
        )
