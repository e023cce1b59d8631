"""Images as files in `<split>/<class>/<file>`, in a folder or a zip.

The classes are the folder names in alphabetical order, which for CIFAR-10 is the order of the paper (table 2). A zip is read
in place. The title names the format, because a lossy copy changes pixels.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from clai.errors import InputError
from clai.pictures import SUFFIXES, read_picture
from replication.datasets.archives import opened_zip, reader
from replication.datasets.fetch import Raw
from replication.datasets.prepared import writing
from replication.datasets.splits import stratified_validation

FILES = ("**/*.jpg", "**/*.jpeg", "**/*.png")
EXPECTS = "a folder or a zip of images in <split>/<class>/<file> with the splits train and test"
LARGEST_IMAGE = 2**24  # bytes of a file
ADVICE = "Replace the file, or correct `image_size` in config.yaml."


@contextmanager
def opened(path: Path) -> Iterator[tuple[list[str], Callable[[str], bytes]]]:
    """Open a folder or a zip: the names of its files, and a function from a name to its bytes."""
    if path.is_dir():

        def read(name: str) -> bytes:
            if (size := (path / name).stat().st_size) > LARGEST_IMAGE:
                raise InputError(
                    f"{path / name}: found {size} bytes, expected at most {LARGEST_IMAGE}. Replace the file."
                )
            return (path / name).read_bytes()

        yield [p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()], read
        return
    with opened_zip(path, LARGEST_IMAGE) as archive:
        yield [info.filename for info in archive.infolist() if not info.is_dir()], reader(archive, path)


def index(names: list[str], path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the names of images by split ("train", "test") and class, sorted.

    The last three parts of a name are split, class and file. Raises InputError when a split is missing, the splits do
    not have the same classes, or the name of a class cannot be printed.
    """
    images: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        is_image = PurePosixPath(name).suffix.lower() in SUFFIXES and not parts[-1].startswith(".")
        if is_image and len(parts) >= 3 and parts[-3] in images:
            if not parts[-2].isprintable():
                raise InputError(
                    f"{path}: found the folder '{parts[-2]}', expected the name of a class. Rename the folder."
                )
            images[parts[-3]].setdefault(parts[-2], []).append(name)
    for split, classes in images.items():
        if not classes:
            raise InputError(
                f"{path}: found no image under {split}/<class>/; expected {', '.join(SUFFIXES)} files there"
            )
    if images["train"].keys() != images["test"].keys():
        only = sorted(images["train"].keys() ^ images["test"].keys())
        raise InputError(
            f"{path}: classes {', '.join(only)} are in one of train/ and test/ only; expected them in both"
        )
    return images


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Decode the images, and draw `validation_share` of each training class for validation."""
    write(raw, raw.path, out_dir, settings, seed, lambda _: {})


def write(
    raw: Raw,
    path: Path,
    out_dir: Path,
    settings: Mapping[str, Any],
    seed: int,
    further: Callable[[str], Mapping[str, Any]],
) -> None:
    """Write the prepared form of the images in a folder or zip.

    further: from the checksum of all pixels to more entries of `dataset.json`. The checksum is the sha256 of the sha256 of
    each decoded image in the order of names, training before test.
    """
    size = settings["image_size"]
    with writing(out_dir) as writer, opened(path) as (names, read):
        images = index(names, path)
        classes = sorted(images["train"])
        formats = sorted({SUFFIXES[PurePosixPath(name).suffix.lower()] for c in images["train"].values() for name in c})
        files = {split: [(n, k) for k, c in enumerate(classes) for n in images[split][c]] for split in images}
        labels = {split: np.array([k for _, k in pairs], dtype=np.int64) for split, pairs in files.items()}
        digests = {split: [b""] * len(pairs) for split, pairs in files.items()}
        train, val = stratified_validation(labels["train"], settings["validation_share"], seed)
        for split, source, rows in (
            ("train", "train", train),
            ("val", "train", val),
            ("test", "test", np.arange(len(files["test"]))),
        ):
            with writer.stream(f"x_{split}", (len(rows), size, size, 3), np.uint8) as append:
                for row in rows:
                    name = files[source][row][0]
                    pixels = read_picture(io.BytesIO(read(name)), (size, size), 3, f"{path}: {name}", ADVICE)
                    digests[source][row] = hashlib.sha256(np.ascontiguousarray(pixels).data).digest()
                    append(pixels[None])
            writer.array(f"y_{split}", labels[source][rows])
        checksum = hashlib.sha256(b"".join(digests["train"] + digests["test"])).hexdigest()
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
                "exclusions": [],
            }
            | dict(further(f"sha256:{checksum}"))
        )
