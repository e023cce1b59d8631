"""The prepared form of a dataset: a folder of memory-mappable arrays and `dataset.json` that describes them.

images      x_{train,val,test} uint8 (N, H, W, C), y_* int64 (N,); of a folder files_train, texts (N,): the name of each
signals     x_* float32 (N, channels, samples), of EEG in microvolt, y_* int64 (N,), groups_* int64 (N,): the subject
features    x_* float32 (N, features), or float64 where `narrowed` keeps it, y_* int64 (N,), groups_* int64 (N,): a number for
            the group of a row
recordings  x_all float32 (rows, variables) in clinical units, NaN where not measured; observed_all bool of the same
            shape; y_all, groups_all (recording of a row), patients_all (patient of a row), folds_all (test fold of a
            row, -1 for development patients) int64 (rows,) and hours_all float32 (rows,). Rows of a recording are
            contiguous with hours ascending.

The statistics under `normalisation` in `dataset.json` are in the units of the arrays, so (x - mean) / sd serves every kind.
Images and signals have those of `train` and of `test`, since the paper normalises CIFAR-10's test images apart (section IV-A).
Features have those of `train`. Recordings have none: each run draws its training rows and computes their statistics.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError
from replication.runs.registry import read_json
from replication.runs.run import DESCRIPTION

logger = logging.getLogger(__name__)

Array = npt.NDArray[Any]

SPLITS = ("train", "val", "test")
DEVELOPMENT = -1
"""In place of a fold: the rows of patients who are in no fold, on whom settings are chosen."""
_CHUNK_VALUES = 2**22


def narrowed(x: Array, axis: int = -1) -> Array:
    """Return numbers as float32, or as float64 where float32 would round them by a thousandth of their channel's sd or more.

    Such are dates written as numbers: runs standardise features before they narrow them. axis: of the channels.
    """
    if np.can_cast(x.dtype, np.float32):
        return x.astype(np.float32)
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    step = np.spacing(np.maximum(np.abs(x.min(others)), np.abs(x.max(others))).astype(np.float32))
    rough = (np.ptp(x, others) > 0) & (step >= x.std(others) / 500)
    return x.astype(np.float64 if rough.any() else np.float32)


def normalisation(x: Array, kind: str, channels: Sequence[str], what: str) -> dict[str, Any]:
    """Return mean and population standard deviation of each channel, in the form of `dataset.json`, in one pass over slices.

    x: in memory or mapped; NaN is a missing value. what: the name of x for messages. Raises InputError naming the channel that is
    never measured or never varies.
    """
    axis = 1 if kind == "signals" else x.ndim - 1
    others = tuple(i for i in range(x.ndim) if i != axis)
    count, mean, squares = np.zeros((3, *(1 if i in others else n for i, n in enumerate(x.shape))))
    step = max(1, _CHUNK_VALUES // max(1, int(np.prod(x.shape[1:]))))
    for start in range(0, len(x), step):
        part = x[start : start + step].astype(np.float64)
        n = np.count_nonzero(~np.isnan(part), axis=others, keepdims=True)
        part_mean = np.nansum(part, axis=others, keepdims=True) / np.maximum(n, 1)
        both = np.maximum(count + n, 1)
        shift = part_mean - mean
        mean = mean + shift * n / both
        squares = squares + np.nansum((part - part_mean) ** 2, axis=others, keepdims=True) + shift**2 * count * n / both
        count = count + n
    sd = np.where(count == 0, np.nan, np.sqrt(squares / np.maximum(count, 1))).ravel()
    if kind == "features":  # In 64 bits a rounded mean leaves a spread of what is constant.
        sd = np.where(np.ptp(x, axis=0) > 0, sd, 0)
    for channel, value in zip(channels, sd, strict=True):
        if not value > 0:
            found = f"'{channel}' has {'no value' if np.isnan(value) else 'the same value'} in all rows used"
            remedy = "Check the raw files and the valid ranges, or leave it out."
            raise InputError(f"{what}: {found}; expected a measurement that varies. {remedy}")
    return {"mean": mean.ravel().tolist(), "sd": sd.tolist()}


def require_classes(y: Array, parts: Mapping[str, Any], classes: Sequence[str], advice: str) -> None:
    """Raise InputError, naming the part, unless there are two classes or more, and some of each in each part.

    y: class indices (N,). parts: masks (N,) or rows by the name of the part. advice: what to do, as the end of the message.
    """
    for part, rows in parts.items():
        counts = np.bincount(y[rows], minlength=len(classes))
        lacking = [f"'{name}'" for name, count in zip(classes, counts, strict=True) if not count]
        if lacking or len(classes) < 2:
            found = ", ".join(lacking) or f"another class than '{classes[0]}'"
            expected = "expected some of each of two or more classes"
            raise InputError(f"{part}: found none of {found} among {counts.sum()}, {expected}. {advice}")


@dataclass
class Writer:
    """Writes the arrays of a prepared dataset, with a checksum of each, into the temporary `folder` of `writing`."""

    folder: Path
    origin: Mapping[str, Any]
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def scratch(self) -> Path:
        """Make a folder for other files, which goes at the end."""
        folder = self.folder.with_name("scratch")
        folder.mkdir()
        return folder

    def stream(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike, parts: Iterable[Array]) -> None:
        """Write array `name` part by part, so that few of its rows are in memory at a time."""
        row_type, checksum = np.dtype(dtype), hashlib.sha256()
        descr = np.lib.format.dtype_to_descr(row_type)
        with (self.folder / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": tuple(shape)})
            for part in parts:
                values = np.ascontiguousarray(part, dtype=row_type).data
                checksum.update(values)
                file.write(values)
        self.written[name] = {"shape": list(shape), "dtype": str(row_type), "sha256": checksum.hexdigest()}

    def array(self, name: str, values: Array) -> None:
        self.stream(name, values.shape, values.dtype, [values])

    def splits(self, parts: Iterable[Array], **arrays: Array) -> None:
        """Write the rows of arrays that each of SPLITS has, as `<name>_<split>`."""
        for split, rows in zip(SPLITS, parts, strict=True):
            for name, values in arrays.items():
                self.array(f"{name}_{split}", values[rows])

    def read(self, name: str, mapped: bool = False) -> Array:
        """Read a written array, or map one that is not empty into memory."""
        path = self.folder / f"{name}.npy"
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)

    def describe(self, **entries: Any) -> None:
        """Write `dataset.json`: these entries, counts of each split, normalisation statistics and the list of arrays.

        Raises InputError for a split without samples, a class that a split lacks, a single class, and a channel that is never
        measured, or never varies, in the rows that normalise it.
        """
        description = {"sampling_rate": None, "exclusions": [], **self.origin, **entries}
        kind, classes = description["kind"], description["classes"]
        for left_out in description["exclusions"]:
            files = ", ".join(left_out.get("files", []))
            logger.info("left out: %d %s%s", left_out["count"], left_out["reason"], f": {files}" if files else "")
        names = list(description.get("variables", description.get("channels", [])))
        used: dict[str, Any] = {}  # Runs on recordings compute their own statistics.
        if kind == "recordings":
            splits = self._describe_folds(classes, names)
        else:
            splits = self._describe_samples("groups" if kind == "features" else "subjects", classes)
            for split in ("train",) if kind == "features" else ("train", "test"):
                used[split] = normalisation(self.read(f"x_{split}", mapped=True), kind, names, f"x_{split}")
        complete = description | {"splits": splits, "normalisation": used, "arrays": self.written}
        text = json.dumps(complete, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        (self.folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    def _describe_folds(self, classes: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        """Return the counts of labels and recordings by fold; raise InputError for a channel that does not vary beside one."""
        x, y, folds, groups = (self.read(f"{name}_all") for name in ("x", "y", "folds", "groups"))
        parts = {"all": np.ones(len(y), dtype=bool)} | {f"fold{k}": folds == k for k in range(int(folds.max()) + 1)}
        for part, rows in list(parts.items())[1:]:
            beside = ~rows & (folds != DEVELOPMENT)
            normalisation(x[beside], "recordings", names, f"x_all without {part}")
        if (folds == DEVELOPMENT).any():
            parts["development"] = folds == DEVELOPMENT
        return {part: _counts(y[rows], classes, recordings=groups[rows]) for part, rows in parts.items()}

    def _describe_samples(self, unit: str, classes: Sequence[str]) -> dict[str, Any]:
        """Return the counts of labels, and of groups, by split. unit: what the groups are."""
        splits = {}
        for split in SPLITS:
            y, name = self.read(f"y_{split}"), f"groups_{split}"
            advice = "Provide more of them, or divide the data in another way."
            require_classes(y, {split: slice(None)}, classes, advice)
            splits[split] = _counts(y, classes, **({unit: self.read(name)} if name in self.written else {}))
        return splits


def _counts(y: Array, classes: Sequence[str], **groups: Array) -> dict[str, Any]:
    """Return the number of labels y (N,), in all and of each class, and of different groups."""
    counts = {"n": len(y), "counts": np.bincount(y, minlength=len(classes)).tolist()}
    return counts | {unit: len(np.unique(values)) for unit, values in groups.items()}


@contextmanager
def writing(folder: Path, origin: Mapping[str, Any]) -> Iterator[Writer]:
    """Write a prepared dataset: `folder` appears complete when the block ends, and stays as it was if the block raises.

    origin: where the data come from, for `dataset.json`. The block calls `Writer.describe` last.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        building = Path(temporary) / "prepared"
        building.mkdir()
        yield Writer(building, origin)
        for path in building.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if folder.exists():
            (folder / DESCRIPTION).unlink(missing_ok=True)
            shutil.rmtree(folder)
        os.replace(building, folder)


@dataclass(frozen=True)
class Prepared:
    """A prepared dataset: `info` is `dataset.json`, `arrays` its arrays by name, read-only."""

    info: dict[str, Any]
    arrays: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


def load(folder: str | Path) -> Prepared:
    """Open a prepared dataset with its arrays memory-mapped; raise InputError unless they are as `dataset.json` has them.

    Their checksums are compared, too: a changed value would give other results without a word.
    """
    path = description = Path(folder) / DESCRIPTION
    info, arrays = read_json(description), {}
    try:
        for name, expected in info["arrays"].items():
            path = description.with_name(f"{name}.npy")
            arrays[name] = array = np.load(path, mmap_mode="r", allow_pickle=False)
            if (has := (list(array.shape), str(array.dtype))) != (expected["shape"], expected["dtype"]):
                raise ValueError(f"found {has}, expected {expected['shape']}, {expected['dtype']}")
            if hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() != expected["sha256"]:
                raise ValueError(f"found another sha256 than {expected['sha256']}, which it was written with")
    except Exception as error:  # A damaged file can raise almost any error.
        found = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: cannot be used ({found}). Prepare it again: --forcerun {description}.") from error
    return Prepared(info, arrays)
