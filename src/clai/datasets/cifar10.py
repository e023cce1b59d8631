"""The official CIFAR-10 python archive: pickled batches in a tarball, read without extracting or trusting either."""

import gzip
import io
import pickle
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clai.datasets.fetch import Raw, checksum_of
from clai.datasets.prepared import writing
from clai.datasets.splits import stratified_holdout
from clai.errors import InputError

FILES = ("cifar-10-python.tar.gz",)
EXPECTS = "cifar-10-python.tar.gz, or a folder that holds it"
OFFICIAL_ONLY = True  # it holds pickles
FOLDER = "cifar-10-batches-py"
TRAIN_BATCHES = tuple(f"data_batch_{n}" for n in range(1, 6))
TEST_BATCH = "test_batch"
META = "batches.meta"
SIDE = 32
LARGEST_ARCHIVE = 2**28  # bytes unpacked


class Named:
    """Stands for something of numpy that a pickle names: it keeps what it is given and does nothing with it.

    numpy's own types believe the state that a pickle gives them, down to their flags, and a crafted one corrupts the
    process.
    """

    def __init__(self, *given: Any) -> None:
        self.given = given

    def __setstate__(self, state: Any) -> None:
        self.state = state


class PickledArray(Named):
    """An array: state (version, shape, dtype, whether in Fortran order, its bytes)."""

    def array(self) -> npt.NDArray[np.uint8]:
        """The array, which must be of uint8; raises ValueError otherwise."""
        _, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, Named) or dtype.given[:1] != ("u1",) or fortran:
            raise ValueError("an array is not of uint8 in C order")
        return np.frombuffer(content.encode("latin1"), np.uint8).reshape(shape)


class BatchUnpickler(pickle._Unpickler):
    """Unpickler that admits builtin containers and arrays of uint8 and nothing else; raises InputError otherwise.

    The one written in Python: that in C sets aside whatever memory a pickle asks for.
    """

    ADMITTED: ClassVar[dict[tuple[str, str], type[Named]]] = {
        ("numpy.core.multiarray", "_reconstruct"): PickledArray,
        ("numpy._core.multiarray", "_reconstruct"): PickledArray,
        ("numpy", "ndarray"): Named,
        ("numpy", "dtype"): Named,
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for the admitted object of that name."""
        try:
            return self.ADMITTED[module, name]
        except KeyError:
            raise InputError(
                f"the pickle asks for {module}.{name}, which a CIFAR-10 batch does not need; it was not run. Replace "
                "the archive by the official one."
            ) from None


def unpickle(data: bytes, name: str) -> dict[str, Any]:
    """A batch dictionary; the archive's Python 2 strings become text. Raises InputError naming the file."""
    try:
        batch = BatchUnpickler(io.BytesIO(data), encoding="latin1").load()
        if isinstance(batch, dict):
            batch = {key: value.array() if isinstance(value, PickledArray) else value for key, value in batch.items()}
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except Exception as error:  # a damaged pickle raises almost anything
        raise InputError(f"{name}: not a readable pickle ({error!r}). Replace the archive.") from error
    if not isinstance(batch, dict):
        raise InputError(f"{name}: found a pickled {type(batch).__name__}, expected a dictionary")
    return batch


class _Limited(gzip.GzipFile):
    """A gzip stream that gives at most `LARGEST_ARCHIVE` bytes and at most so many in one read."""

    given = 0

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes; raises InputError beyond the limit."""
        data = super().read(LARGEST_ARCHIVE if size is None or size < 0 else min(size, LARGEST_ARCHIVE))
        self.given += len(data)
        if self.given > LARGEST_ARCHIVE:
            raise InputError(
                f"{self.name}: unpacks to more than {LARGEST_ARCHIVE} bytes, the official archive to 186 million. "
                "Replace it."
            )
        return data


def read_members(path: Path) -> dict[str, bytes]:
    """Bytes of the batch files of the tarball by name, in one pass and in memory.

    Raises InputError for a member that leaves the archive (absolute, `..`, link), for a missing batch, and for an
    archive that unpacks to more than `LARGEST_ARCHIVE` bytes.
    """
    wanted = {*TRAIN_BATCHES, TEST_BATCH, META}
    found: dict[str, bytes] = {}
    try:
        # Read as a stream, so that no header can make the tarfile module jump or read ahead without limit.
        with _Limited(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
                    raise InputError(
                        f"{path}: member '{member.name}' is a link or points outside the archive; the official archive "
                        "has only plain files. Replace it."
                    )
                if member.isfile() and name.parent.name == FOLDER and name.name in wanted:
                    stream = archive.extractfile(member)
                    assert stream is not None
                    found[name.name] = stream.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as a gzipped tar ({error}). Delete it and run again.") from error
    if missing := sorted(wanted - found.keys()):
        raise InputError(f"{path}: found no {', '.join(missing)} in {FOLDER}/; expected the official CIFAR-10 archive")
    return found


def images(batch: Mapping[str, Any], name: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Images (n, 32, 32, 3) and labels (n,) of a batch, whose rows hold the red, the green, then the blue plane."""
    data, labels = batch.get("data"), batch.get("labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3 * SIDE * SIDE,):
        raise InputError(f"{name}: 'data' is not a uint8 array of {3 * SIDE * SIDE} columns")
    if (
        not isinstance(labels, list)
        or len(labels) != len(data)
        or not all(type(k) is int and 0 <= k < 10 for k in labels)
    ):
        raise InputError(f"{name}: 'labels' is not a list of {len(data)} classes from 0 to 9")
    return data.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1), np.array(labels, dtype=np.int64)


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the batches and hold out `validation_share` of every training class."""
    path = raw.find()[0]
    # Once more, now that it is about to be unpickled: the manifest may be older than the file.
    for stated in raw.files:
        if (found := checksum_of(path)) != stated["checksum"]:
            raise InputError(
                f"{path}: has checksum {found}, but {stated['checksum']} when it was fetched. Delete it and run again."
            )
    members = read_members(path)
    parts = {
        name: images(unpickle(members[name], f"{path}: {name}"), f"{path}: {name}")
        for name in (*TRAIN_BATCHES, TEST_BATCH)
    }
    classes = list(unpickle(members[META], f"{path}: {META}")["label_names"])
    x = np.concatenate([parts[name][0] for name in TRAIN_BATCHES])
    y = np.concatenate([parts[name][1] for name in TRAIN_BATCHES])
    train, val = stratified_holdout(y, settings["validation_share"], seed)
    with writing(out_dir) as writer:
        for split, (pixels, labels) in {
            "train": (x[train], y[train]),
            "val": (x[val], y[val]),
            "test": parts[TEST_BATCH],
        }.items():
            writer.array(f"x_{split}", np.ascontiguousarray(pixels))
            writer.array(f"y_{split}", labels)
        writer.describe(
            raw.description(settings["title"])
            | {
                "kind": "images",
                "classes": classes,
                "channels": ["red", "green", "blue"],
                "units": ["grey level 0-255"] * 3,
                "sampling_rate": None,
                "split_rule": f"official train and test batches; {settings['validation_share']:g} of each training "
                f"class held out for validation (seed {seed})",
                "exclusions": [],
            }
        )
