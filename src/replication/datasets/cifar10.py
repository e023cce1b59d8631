"""The official CIFAR-10 python archive: a tarball of pickled batches, neither extracted nor trusted."""

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

from clai.errors import InputError
from replication.datasets.checksums import checksum_of
from replication.datasets.fetch import Raw
from replication.datasets.prepared import writing
from replication.datasets.splits import stratified_validation

FILES = ("cifar-10-python.tar.gz",)
EXPECTS = "cifar-10-python.tar.gz, or a folder that holds it"
OFFICIAL_ONLY = True  # because the archive holds pickles
FOLDER = "cifar-10-batches-py"
TRAIN_BATCHES = tuple(f"data_batch_{n}" for n in range(1, 6))
TEST_BATCH = "test_batch"
META = "batches.meta"
SIDE = 32
LARGEST_ARCHIVE = 2**28  # bytes unpacked


class Named:
    """A stand-in for a numpy object that a pickle names: it keeps its arguments and state, and does nothing with them.

    The types of numpy trust the state in a pickle, down to their flags, so a crafted pickle can corrupt the process.
    """

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class PickledArray(Named):
    """A stand-in for an array: its state is (version, shape, dtype, whether in Fortran order, bytes)."""

    def array(self) -> npt.NDArray[np.uint8]:
        """Return the array; raises ValueError unless it is of uint8 in C order."""
        _, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, Named) or dtype.arguments[:1] != ("u1",) or fortran:
            raise ValueError("an array is not of uint8 in C order")
        return np.frombuffer(content.encode("latin1"), np.uint8).reshape(shape)


class BatchUnpickler(pickle._Unpickler):
    """Unpickle builtin containers and arrays of uint8; raise InputError for anything else.

    It derives from the unpickler written in Python, since the one in C allocates as much memory as a pickle demands.
    """

    # This code alone allocates memory before it reads; a batch holds no bytearray.
    dispatch: ClassVar[dict[int, Any]] = {
        code: load for code, load in pickle._Unpickler.dispatch.items() if code != pickle.BYTEARRAY8[0]
    }
    ADMITTED: ClassVar[dict[tuple[str, str], type[Named]]] = {
        ("numpy.core.multiarray", "_reconstruct"): PickledArray,
        ("numpy._core.multiarray", "_reconstruct"): PickledArray,
        ("numpy", "ndarray"): Named,
        ("numpy", "dtype"): Named,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for the object of that name."""
        try:
            return self.ADMITTED[module, name]
        except KeyError:
            raise InputError(
                f"the pickle asks for {module}.{name}, which a CIFAR-10 batch does not need; it was not run. Replace "
                "the archive by the official one."
            ) from None


def unpickle(data: bytes, name: str) -> dict[str, Any]:
    """Return the dictionary of a batch, its Python 2 strings as text; raises InputError naming the file."""
    try:
        batch = BatchUnpickler(io.BytesIO(data), encoding="latin1").load()
        if isinstance(batch, dict):
            batch = {key: value.array() if isinstance(value, PickledArray) else value for key, value in batch.items()}
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # A damaged pickle can raise almost any error.
        raise InputError(f"{name}: not a readable pickle ({error!r}). Replace the archive.") from error
    if not isinstance(batch, dict):
        raise InputError(f"{name}: found a pickled {type(batch).__name__}, expected a dictionary")
    return batch


class _Limited(gzip.GzipFile):
    """A gzip stream of at most `LARGEST_ARCHIVE` bytes, in all and in one read."""

    total = 0

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; raises InputError beyond the limit."""
        data = super().read(LARGEST_ARCHIVE if size is None or size < 0 else min(size, LARGEST_ARCHIVE))
        self.total += len(data)
        if self.total > LARGEST_ARCHIVE:
            raise InputError(
                f"{self.name}: unpacks to more than {LARGEST_ARCHIVE} bytes, the official archive to 186 million. "
                "Replace it."
            )
        return data


def read_members(path: Path) -> dict[str, bytes]:
    """Return the bytes of the batch files of the tarball by name, read in one pass into memory.

    Raises InputError for a member that leaves the archive (absolute, `..`, link), for a batch that is missing, there twice or
    sparse, and for an archive that unpacks to more than `LARGEST_ARCHIVE` bytes.
    """
    expected = {*TRAIN_BATCHES, TEST_BATCH, META}
    members: dict[str, bytes] = {}
    try:
        # As a stream: otherwise a header can make tarfile seek, or read ahead without limit.
        with _Limited(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
                    raise InputError(
                        f"{path}: member '{member.name}' is a link or points outside the archive; the official archive "
                        "has only plain files. Replace it."
                    )
                if member.isfile() and name.parent.name == FOLDER and name.name in expected:
                    # A sparse member states how many zeros it holds, which are not in the archive.
                    if member.issparse() or name.name in members:
                        state = "sparse" if member.issparse() else "there twice"
                        raise InputError(
                            f"{path}: member '{member.name}' is {state}, expected one plain file of this name. Replace the "
                            "archive by the official one."
                        )
                    stream = archive.extractfile(member)
                    assert stream is not None
                    members[name.name] = stream.read()
    except InputError:
        raise
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, IndexError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as a gzipped tar ({error}). Delete it and run again.") from error
    if missing := sorted(expected - members.keys()):
        raise InputError(f"{path}: found no {', '.join(missing)} in {FOLDER}/; expected the official CIFAR-10 archive")
    return members


def images(batch: Mapping[str, Any], name: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return images uint8 (n, 32, 32, 3) and labels int64 (n,) of a batch.

    Its rows hold the red, then the green, then the blue plane. Raises InputError, with `name`, for other shapes or labels.
    """
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


def class_names(meta: Mapping[str, Any], name: str) -> list[str]:
    """Return the names of the ten classes; raises InputError, with `name`, for anything else."""
    names = meta.get("label_names")
    if (
        not isinstance(names, list)
        or len(names) != 10
        or not all(isinstance(n, str) and n.isprintable() for n in names)
    ):
        raise InputError(f"{name}: 'label_names' is not a list of ten names. Replace the archive by the official one.")
    return names


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the batches, and draw `validation_share` of each training class for validation."""
    path = raw.find()[0]
    # The file may have changed since the manifest was written, and is about to be unpickled.
    for stated in raw.files:
        if (checksum := checksum_of(path)) != stated["checksum"]:
            raise InputError(
                f"{path}: has checksum {checksum}, but {stated['checksum']} when it was fetched. Delete it and run again."
            )
    members = read_members(path)
    parts = {
        name: images(unpickle(members[name], f"{path}: {name}"), f"{path}: {name}")
        for name in (*TRAIN_BATCHES, TEST_BATCH)
    }
    classes = class_names(unpickle(members[META], f"{path}: {META}"), f"{path}: {META}")
    x = np.concatenate([parts[name][0] for name in TRAIN_BATCHES])
    y = np.concatenate([parts[name][1] for name in TRAIN_BATCHES])
    train, val = stratified_validation(y, settings["validation_share"], seed)
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
