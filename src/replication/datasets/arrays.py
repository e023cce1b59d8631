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
from replication.datasets.identifiers import in_order, missing, positive_last, refuse_odd_texts, trimmed
from replication.datasets.prepared import narrowed, writing
from replication.datasets.sources import Raw
from replication.datasets.splits import rows_of_groups, stratified_validation

logger = logging.getLogger(__name__)

FILES = ("*.npz",)
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
    of_a_kind = x.ndim in KINDS and x.dtype.kind in "iuf" and (x.dtype == np.uint8) == (x.ndim == 4)
    if not of_a_kind or not x.size or planes_first:
        raise InputError(
            f"{path}: found x as {x.dtype} {x.shape}, expected images uint8 (N, height, width, channels), or as other numbers "
            "signals (N, channels, samples) or features (N, features). Correct the array."
        )
    given: dict[str, Array] = {"y": y} | ({} if groups is None else {"groups": groups})
    for name, labels in given.items():
        if labels.shape != x.shape[:1] or labels.dtype.kind not in "biuU":
            raise InputError(
                f"{path}: found {name} as {labels.dtype} {labels.shape} beside x {x.shape}, expected a whole number or a "
                "text for each sample. Correct the array."
            )
        if labels.dtype.kind == "U":
            given[name] = trimmed(labels)
            refuse_odd_texts(given[name], f"{path}: {name}", classes)
            if (places := np.flatnonzero(missing(given[name], classes if name == "y" else None))).size:
                at = f"{name} at sample {places[0]}, counted from 0"
                raise InputError(
                    f"{path}: found '{given[name][places[0]]}' in {at}, expected a value. Correct the sample."
                )
    if x.ndim < 4 and not (finite := np.abs(x) <= np.finfo(np.float32).max).all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            f"{path}: found in x at {place}, counted from 0, no finite number that float32 can hold, expected one. "
            "Correct or remove the sample."
        )
    if x.ndim < 4:
        x = narrowed(x, axis=1)
    if x.ndim == 3 and x.dtype != np.float32:
        raise InputError(
            f"{path}: found signals in x that float32 would round by a thousandth of their standard deviation or more. "
            "Subtract the mean of each channel."
        )
    return x, given["y"], given.get("groups")


def classes_of(path: Path, y: Array, classes: Sequence[Any] | None) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of the classes, those found in y where `classes` is None, and the class index of each sample.

    Numbers in y are indices where they are not all names, too.
    """
    found = in_order(np.unique(y.astype(str)))
    names = found if classes is None else trimmed(classes).tolist()
    if y.dtype.kind != "U" and not set(found) <= set(names):
        index = y.astype(np.int64)
    else:
        numbers = {name: k for k, name in enumerate(names)}
        index = np.array([numbers.get(name, -1) for name in y.astype(str)], dtype=np.int64)
    if len(names) < 2 or set(index.tolist()) != set(range(len(names))):
        raise InputError(
            f"{path}: found {', '.join(found[:20])} in y, expected two or more classes: each of "
            f"{', '.join(names)}, by name or by number from 0 to {len(names) - 1}. Correct y, or `classes` in the entry."
        )
    return names, index


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the arrays, divide the samples and write each split."""
    path, *others = raw.find()
    if others:
        raise InputError(f"datasets.{raw.dataset}.path: found {len(others) + 1} files, expected one. Set it to one.")
    x, y, groups = read_arrays(path, settings["classes"])
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
    names, y = classes_of(path, y, settings["classes"])
    classes = positive_last(names, settings.get("positive"))
    y = y if classes == names else 1 - y
    test, validation = settings["test_share"], settings["validation_share"]
    again = len(x) - len({hash(sample.tobytes()) for sample in x}) if groups is None else 0
    if again:
        logger.warning("%s: %d samples of x are there before, and may be in two splits; give groups", path, again)
    if groups is None:
        rest, tested = stratified_validation(y, test, seed, classes, "test_share")
        trained, validated = stratified_validation(y[rest], validation, seed, classes)
        parts, unit = [rest[trained], rest[validated], tested], "each class"
    else:
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        parts, unit = rows_of_groups(groups, y, classes, test, validation, seed, "groups"), "the groups"
    with writing(out_dir) as writer:
        writer.splits(parts, x=x, y=y, **({} if groups is None else {"groups": groups}))
        writer.describe(
            raw.description(settings["title"]),
            kind=kind,
            classes=classes,
            **{"variables" if kind == "features" else "channels": channels},
            units=[settings["units"]] * count,
            **({"repeated": [{"count": again}]} if again else {}),
            sampling_rate=settings["sampling_rate"],
            split_rule=f"{test:g} of {unit} for test, {validation:g} of the others for validation (seed {seed})",
        )
