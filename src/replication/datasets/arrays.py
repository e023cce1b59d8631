"""One `.npz` with `x`, `y` and, where samples belong together, `groups`; the shape of `x` says what it holds.

    images    (N, height, width, channels) uint8
    signals   (N, channels, samples), windows of one length
    features  (N, features)

`y` has the class of each sample: its number in the `classes` of the entry, from 0, or its name. All samples of a group, such as
a subject, are in one split. docs/extending.md has an entry to copy.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError
from replication.datasets.files import reading
from replication.datasets.prepared import narrowed, writing
from replication.datasets.samples import Column, division, rows_of_groups, stratified_validation
from replication.datasets.sources import Raw, Source

logger = logging.getLogger(__name__)

EXPECTS = (
    "one .npz with the arrays x, y and, where samples belong together, groups (y.astype(str) makes texts of objects)"
)
KINDS = {4: "images", 3: "signals", 2: "features"}

Array = npt.NDArray[Any]


def read_arrays(path: Path, classes: Sequence[Any] | None) -> tuple[Array, Array, Array | None]:
    """Return x, y and the groups, texts trimmed; raise InputError for arrays that are missing or do not fit together."""
    with reading(path, EXPECTS), np.load(path, allow_pickle=False) as archive:
        x, y, groups = (archive[name] if name in archive.files else None for name in ("x", "y", "groups"))
        found = ", ".join(archive.files)
    if x is None or y is None:
        raise InputError(f"{path}: found the arrays {found}, expected x, y and, if any, groups. Rename or add them.")
    planes_first = x.ndim == 4 and x.shape[1] < 5 <= x.shape[3]
    known = x.ndim in KINDS and x.dtype.kind in "iuf" and (x.dtype == np.uint8) == (x.ndim == 4)
    if not known or not x.size or planes_first:
        raise InputError(
            f"{path}: found x as {x.dtype} {x.shape}, expected images uint8 (N, height, width, channels), or as other numbers "
            "signals (N, channels, samples) or features (N, features). Correct the array."
        )
    y = Column(path, "y").values(y, len(x), classes)
    groups = None if groups is None else Column(path, "groups").values(groups, len(x))
    if x.ndim == 4:
        return x, y, groups
    shape = x.shape
    numbers = Column(path, "x", lambda n: f"at {tuple(int(i) for i in np.unravel_index(n, shape))}, counted from 0")
    numbers.refuse_infinite(x.ravel(), x.ravel())
    x = narrowed(x, axis=1)
    if x.ndim == 3 and x.dtype != np.float32:
        raise InputError(
            f"{path}: found signals in x that float32 would round by a thousandth of their standard deviation or more. "
            "Subtract the mean of each channel."
        )
    return x, y, groups


def channels_of(path: Path, x: Array, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of channels or features, numbered where the entry has none; raise InputError where it does not fit x."""
    kind, count = KINDS[x.ndim], x.shape[1 if x.ndim == 3 else -1]
    if kind == "signals" and settings["channels"] is None and count > x.shape[2]:
        raise InputError(
            f"{path}: found {count} channels of {x.shape[2]} samples in x {x.shape}, expected signals (N, channels, samples). "
            "Exchange the last two axes; or, if they are right, name the `channels` in the entry."
        )
    channels = settings["channels"] or [f"{'feature' if x.ndim == 2 else 'channel'} {n + 1}" for n in range(count)]
    if len(channels) != count or (settings["sampling_rate"] is not None) != (kind == "signals"):
        raise InputError(
            f"{path}: found {kind} with {count} channels or features, but {len(channels)} names in `channels` and the "
            f"`sampling_rate` {settings['sampling_rate']}, expected a name for each, and a rate for signals alone. Correct it."
        )
    return list(channels)


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the arrays, divide the samples and write each split."""
    path = raw.find_one()
    x, y, groups = read_arrays(path, settings["classes"])
    kind, channels = KINDS[x.ndim], channels_of(path, x, settings)
    classes, y = Column(path, "y").class_indices(y, settings["classes"], settings.get("positive"))
    again = len(x) - len({hash(sample.tobytes()) for sample in x}) if groups is None else 0
    if again:
        logger.warning("%s: %d samples of x are there before, and may be in two splits; give groups", path, again)
    if groups is None:
        rest, tested = stratified_validation(y, settings["test_share"], seed, classes, "test_share")
        trained, validated = stratified_validation(y[rest], settings["validation_share"], seed, classes)
        parts, unit = [rest[trained], rest[validated], tested], "each class"
    else:
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        parts, unit = rows_of_groups(groups, y, classes, settings, seed, "groups"), "the groups"
    with writing(out_dir) as writer:
        writer.splits(parts, x=x, y=y, **({} if groups is None else {"groups": groups}))
        writer.describe(
            raw.description(settings["title"]),
            kind=kind,
            classes=classes,
            **{"variables" if kind == "features" else "channels": channels},
            units=[settings["units"]] * len(channels),
            **({"repeated": [{"count": again}]} if again else {}),
            sampling_rate=settings["sampling_rate"],
            split_rule=division(settings, unit, seed),
        )


SOURCE = Source(("*.npz",), EXPECTS, prepare)
