"""The official CIFAR-10, read by torchvision from its seven pickled files, which are verified before they are opened."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np

from clailearn.errors import InputError
from replication.datasets.files import reading, unpack_archive
from replication.datasets.prepared import writing
from replication.datasets.sources import Raw, Row, verify
from replication.datasets.splits import stratified_validation

ARCHIVE = "cifar-10-python.tar.gz"
FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{n}" for n in range(1, 6))
TEST = "test_batch"
META = "batches.meta"
MEMBERS = (*TRAIN, TEST, META)
LARGEST = 2**25  # bytes of a member; the official ones have 31 million

FILES = (ARCHIVE, *(f"**/{name}" for name in MEMBERS))
EXPECTS = f"the folder {FOLDER}, the archive {ARCHIVE}, or another archive of the same seven files"
OFFICIAL_ONLY = True  # because unpickling runs what a pickle says
ALGORITHM = "md5"  # as torchvision has it


def choose(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Row]:
    """Return the row of the archive; the others state the checksums of its members."""
    return [row for row in rows if row.file == ARCHIVE]


def unpack(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Return the seven files, where needed taken out of an archive into `folder`; raises InputError unless all are there."""

    def wanted(member: str) -> str | None:
        return last if (last := PurePosixPath(member).name) in MEMBERS else None

    batches = [path for path in paths if path.name in MEMBERS]
    if not batches:
        batches = unpack_archive(paths[0], folder / FOLDER, wanted, LARGEST)
    if sorted(path.name for path in batches) != sorted(MEMBERS) or len({path.parent for path in batches}) > 1:
        found = ", ".join(str(path) for path in batches) or "none of them"
        raise InputError(
            f"{paths[0] if len(paths) == 1 else paths[0].parent}: found {found}; expected each of {', '.join(MEMBERS)} once, in "
            "one folder. Replace it by the official CIFAR-10."
        )
    return batches


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the batches, and draw `validation_share` of each training class for validation."""
    from torchvision.datasets import CIFAR10

    md5 = {file["file"]: file["checksum"].removeprefix("md5:") for file in raw.files}
    for name in MEMBERS:  # The files may have changed since the manifest was written, and are about to be unpickled.
        verify(raw.path / name, f"md5:{md5[name]}", raw.dataset)

    class Batches(CIFAR10):
        base_folder = raw.path.name
        train_list: ClassVar = [[name, md5[name]] for name in TRAIN]
        test_list: ClassVar = [[TEST, md5[TEST]]]
        meta: ClassVar = CIFAR10.meta | {"md5": md5[META]}

    with reading(raw.path, EXPECTS):
        train, test = (Batches(raw.path.parent, train=part) for part in (True, False))
    y = np.array(train.targets, dtype=np.int64)
    training, validation = stratified_validation(y, settings["validation_share"], seed, train.classes)
    with writing(out_dir) as writer:
        for split, x, labels in (
            ("train", train.data[training], y[training]),
            ("val", train.data[validation], y[validation]),
            ("test", test.data, np.array(test.targets, dtype=np.int64)),
        ):
            writer.array(f"x_{split}", x)
            writer.array(f"y_{split}", labels)
        writer.describe(
            raw.description(settings["title"]),
            kind="images",
            classes=train.classes,
            channels=["red", "green", "blue"],
            units=["grey level 0-255"] * 3,
            split_rule=f"official train and test batches; {settings['validation_share']:g} of each training "
            f"class held out for validation (seed {seed})",
        )
