"""Sources of one file, a user's own: arrays of numpy, and a table of features.

Arrays are one `.npz` with `x`, `y` and, where samples belong together, `groups`; the shape of `x` says what it holds (`KINDS`):
images uint8 (N, height, width, channels), signals (N, channels, samples) or features (N, features). A table, CSV or Parquet, has
a row a sample, with numbers, a label and a group. All samples of a group, such as a subject, are in one split. Entries to copy
are in docs/own-data.md. pandas reads CSV, duckdb Parquet.
"""

import csv
import gzip
import logging
import re
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from clailearn.errors import InputError
from clailearn.limits import lines_of
from clailearn.tables import INDEX, counts_rows
from replication.datasets.files import read_parquet, reading
from replication.datasets.prepared import Array, Writer, narrowed
from replication.datasets.samples import Column, Texts, division, rows_by_class, rows_by_group
from replication.datasets.sources import Raw, Source

logger = logging.getLogger(__name__)

ARRAYS_EXPECTED = "one .npz with the arrays x, y and, if any, groups (y.astype(str) makes texts of objects)"
KINDS = {4: "images", 3: "signals", 2: "features"}
TABLE = "one table with a header, .csv, .csv.gz or .parquet"
ALL_OTHERS = "all others"


def read_arrays(path: Path, classes: Sequence[Any] | None) -> tuple[Array, Array, Array | None]:
    """Return x, y and the groups, texts trimmed; raise InputError for arrays that are missing or do not fit together."""
    with reading(path, ARRAYS_EXPECTED), np.load(path, allow_pickle=False) as archive:
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
        found = "found signals in x that float32 would round by a thousandth of their standard deviation or more"
        raise InputError(f"{path}: {found}. Subtract the mean of each channel.")
    return x, y, groups


def channels_of(path: Path, x: Array, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of channels or features, numbered where the entry has none; raise InputError where it does not fit x."""
    kind, count = KINDS[x.ndim], x.shape[1 if x.ndim == 3 else -1]
    if kind == "signals" and settings["channels"] is None and count > x.shape[2]:
        raise InputError(
            f"{path}: found {count} channels of {x.shape[2]} samples in x {x.shape}, expected signals (N, channels, samples). "
            "Exchange the last two axes; or, if they are right, name the `channels` in the entry."
        )
    rate, name = settings["sampling_rate"], "feature" if x.ndim == 2 else "channel"
    channels = list(settings["channels"] or (f"{name} {n + 1}" for n in range(count)))
    if len(channels) != count or (rate is not None) != (kind == "signals"):
        raise InputError(
            f"{path}: found {kind} with {count} channels or features, but {len(channels)} names in `channels` and the "
            f"`sampling_rate` {rate}, expected a name for each, and a rate for signals alone. Correct it."
        )
    return channels


def prepare_arrays(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Read the arrays, divide the samples and write each split."""
    path = raw.find_one()
    x, y, groups = read_arrays(path, settings["classes"])
    kind, channels = KINDS[x.ndim], channels_of(path, x, settings)
    classes, y = Column(path, "y").class_indices(y, settings["classes"], settings.get("positive"))
    again = len(x) - len({hash(sample.tobytes()) for sample in x}) if groups is None else 0
    if again:
        logger.warning("%s: %d samples of x are there before, and may be in two splits; give groups", path, again)
    if groups is None:
        parts, unit = rows_by_class(y, classes, settings, seed), "each class"
    else:
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        parts, unit = rows_by_group(groups, y, classes, settings, seed, "groups"), "the groups"
    writer.splits(parts, x=x, y=y, **({} if groups is None else {"groups": groups}))
    writer.describe(
        kind=kind,
        classes=classes,
        **{"variables" if kind == "features" else "channels": channels},
        units=[settings["units"]] * len(channels),
        **({"repeated": [{"count": again}]} if again else {}),
        sampling_rate=settings["sampling_rate"],
        split_rule=division(settings, unit, seed),
    )


ARRAYS = Source(("*.npz",), ARRAYS_EXPECTED, prepare_arrays)


def _is(path: Path, ending: str) -> bool:
    return path.suffix.lower() == ending


def _opened(path: Path) -> TextIO:
    opened: Any = gzip.open if _is(path, ".gz") else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns in order; raises InputError for a file without a header or a name that repeats."""
    with reading(path, TABLE):
        if _is(path, ".parquet"):
            names = [str(name) for name in read_parquet(path, most=0)]
        else:  # pandas renames columns that repeat, and knows no limits
            with _opened(path) as file:
                names = next(csv.reader(lines := lines_of(file, path)))
                deque(lines, maxlen=0)
    if "\0" in "".join(names):
        raise InputError(f"{path}: found characters of two bytes, as in UTF-16, expected UTF-8. Save it so.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{path}: found columns {_named(repeated)} twice, expected every name once. Rename them.")
    return names


def choose_columns(path: Path, names: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Return the feature columns that the settings name; raise InputError for one that is not there, or label or group, too."""
    label, group, features = settings["label_column"], settings["group_column"], settings["feature_columns"]
    others = [name for name in names if name not in (label, group)]
    chosen = others if features == ALL_OTHERS else list(features)
    keys = "label_column, group_column and feature_columns"
    if absent := [name for name in (label, group, *chosen) if name not in names]:
        if mark := re.search(r"[;\t|]", "".join(names)):
            raise InputError(
                f"{path}: found {mark[0]!r} between columns, expected ','. Save the table with commas between columns and "
                f"decimal points: in pandas, read_csv(..., sep={mark[0]!r}, decimal=',').to_csv(..., index=False)."
            )
        found = f"found no column {_named(absent)} among {_named(names)}"
        raise InputError(f"{path}: {found}, expected those that {keys} name. Correct the entry.")
    if features == ALL_OTHERS:
        _refuse_index(path, [name for name in chosen if INDEX.fullmatch(name)])
    if both := [name for name, times in Counter([label, group, *dict.fromkeys(chosen)]).items() if times > 1]:
        found = f"found {_named(both)} in two of {keys}"
        raise InputError(f"{path}: {found}, expected each column in one. Correct the entry.")
    if not chosen:
        raise InputError(f"{path}: found no column beside label and group, expected features. Add them to the table.")
    return chosen


def read_table(path: Path, features: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Return these columns; raise InputError for a table that cannot be read or has no row."""
    with reading(path, TABLE), warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
        if _is(path, ".parquet"):
            table = read_parquet(path)
        else:
            missing = {name: ["", "nan", "NaN", "NA"] for name in features} | {name: [""] for name in texts}
            with _opened(path) as file:
                # Without index_col a first row longer than the header would shift all columns.
                table = pd.read_csv(
                    file, index_col=False, dtype=dict.fromkeys(texts, str), na_values=missing, keep_default_na=False,
                    skip_blank_lines=False, low_memory=False,
                )  # fmt: skip
        table = table[[*features, *texts]]
    if table.empty:
        raise InputError(f"{path}: found no row, expected samples. Replace the file.")
    return table


def _column(path: Path, name: str) -> Column:
    """Return a column of a table, for messages."""

    def locate(row: int) -> str:
        """Return the line of a row, counted from 0, as an editor counts lines, or its number in a Parquet file."""
        if _is(path, ".parquet"):
            return f"at row {row + 1}"
        with _opened(path) as file:
            lines = csv.reader(file)
            for _ in range(row + 1):
                next(lines)
            return f"at line {lines.line_num + 1}"

    return Column(path, f"column '{name}'", locate)


def texts_of(path: Path, values: "pd.Series[Any]", classes: Sequence[Any] | None = None) -> Texts:
    """Return the texts of a column (rows,), trimmed; raise InputError, with the line, for one that is missing or odd."""
    column = _column(path, str(values.name))
    column.refuse(values.isna(), "nothing", "a value")
    column.refuse(values.map(lambda value: isinstance(value, bytearray)), values, "a text or a number")
    return column.texts(values.astype(str), classes)


def numbers_of(path: Path, values: "pd.Series[Any]") -> "pd.Series[float]":
    """Return the numbers of a column (rows,); raise InputError, with the line, for one that is missing or not finite."""
    column = _column(path, str(values.name))
    column.refuse(values.isna(), "nothing", "a number")
    number = pd.api.types.is_numeric_dtype(values)
    numbers = values if number else pd.to_numeric(values.astype(str), errors="coerce")
    remedy = ", with a decimal point (`feature_columns` may leave the column out)"
    column.refuse_infinite(numbers.to_numpy(), values, remedy)
    return numbers


def _refuse_index(path: Path, names: Sequence[str]) -> None:
    if names:
        remedy = "Leave it out (in pandas, to_csv(..., index=False)), or list the features in feature_columns."
        raise InputError(f"{path}: found {_named(names)}, an index or identifier, expected features. {remedy}")


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def prepare_table(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Read the table, divide its groups and write the features of each split, in the order of the table."""
    path = raw.find_one()
    features = choose_columns(path, columns_of(path), settings)
    label, group = settings["label_column"], settings["group_column"]
    table = read_table(path, features, [label, group])
    labels, names = texts_of(path, table[label], settings["classes"]), texts_of(path, table[group])
    x = pd.DataFrame({name: numbers_of(path, table[name]) for name in features})
    if settings["feature_columns"] == ALL_OTHERS:
        whole = x.select_dtypes("integer")
        _refuse_index(path, [str(name) for name in whole if counts_rows(whole[name].to_numpy())])
    classes, y = _column(path, label).class_indices(labels, settings["classes"], settings.get("positive"))
    groups = np.unique(names, return_inverse=True)[1].astype(np.int64)
    parts = rows_by_group(groups, y, classes, settings, seed, f"'{group}' groups")
    writer.splits(parts, x=narrowed(x.to_numpy(np.float64)), y=y, groups=groups)
    writer.describe(
        kind="features",
        classes=classes,
        variables=features,
        units=["as in the table"] * len(features),
        split_rule=f"by {group}: {division(settings, 'the groups', seed)}",
    )


FEATURE_TABLE = Source(("*.csv", "*.csv.gz", "*.parquet"), f"{TABLE}, of the columns in the entry", prepare_table)
