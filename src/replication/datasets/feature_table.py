"""A table of features, CSV or Parquet: a row a sample, with numbers, a label and a group that stays in one split.

The entry in the configuration names the columns. A group is what samples resemble each other in: a subject, a patient, a
site.
"""

import csv
import gzip
import io
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clai.errors import InputError
from replication.datasets.fetch import Raw
from replication.datasets.prepared import SPLITS, writing
from replication.datasets.splits import group_split

FILES = ("*.csv", "*.csv.gz", "*.parquet")
TABLE = "one table with a header, .csv, .csv.gz or .parquet"
EXPECTS = f"{TABLE}, of the columns that the dataset's entry names"
ALL_OTHERS = "all others"
LARGEST_TABLE = 2**31
"""Bytes of a table unpacked; band powers of all recordings of Sleep-EDF take 20 million."""
_BLOCK = 2**20
_SMALLEST_ROW = 16  # bytes of a label and a group in memory
SETTINGS = (
    "label_column", "classes", "group_column", "feature_columns", "test_share", "validation_share",
)  # fmt: skip
"""Keys of the dataset's entry."""


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns in order; raises InputError for a file without a header or a name that repeats."""
    if path.suffix == ".parquet":
        names = [str(name) for name in _parquet(path, "SELECT * FROM read_parquet(?) LIMIT 0")]
    else:
        try:
            with io.TextIOWrapper(io.BytesIO(_unpacked(path)), encoding="utf-8-sig", newline="") as stream:
                names = next(csv.reader(stream), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(
                f"{path}: cannot be read as text ({error}); expected {TABLE}. Replace the file."
            ) from error
    if not names:
        raise InputError(f"{path}: found an empty file, expected {TABLE}. Replace the file.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(
            f"{path}: found more than one column {_named(repeated)}, expected every name once. Rename or remove columns."
        )
    return names


def choose_columns(path: Path, names: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Return the feature columns that the settings name, in the table's order for `all others`.

    Raises InputError for a column that is not there, or one that would be both feature and label or group.
    """
    label, group, features = settings["label_column"], settings["group_column"], settings["feature_columns"]
    others = [name for name in names if name not in (label, group)]
    chosen = others if features == ALL_OTHERS else list(features)
    if missing := [name for name in (label, group, *chosen) if name not in names]:
        raise InputError(
            f"{path}: found no column {_named(missing)}, expected the ones that label_column, group_column and "
            f"feature_columns name. The table has {_named(names)}: correct the entry."
        )
    if label == group or (both := [name for name in chosen if name in (label, group)]):
        raise InputError(
            f"{path}: found {_named([label] if label == group else both)} in two of label_column, group_column and "
            "feature_columns, expected each column in one. Correct the entry."
        )
    if not chosen:
        raise InputError(f"{path}: found no column beside label and group, expected features. Add them to the table.")
    return chosen


def read_table(path: Path, features: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Read columns of a table whose names `columns_of` has checked: the features as numbers, others as text.

    Raises InputError, naming file, column and row, for a value that is missing, no number or not finite.
    """
    wanted = [*features, *texts]
    if path.suffix == ".parquet":
        listed = ['"' + name.replace('"', '""') + '"' for name in wanted]
        lengths = " + ".join(f"coalesce(sum(strlen(CAST({name} AS VARCHAR))), 0)" for name in listed)
        _refuse_size(path, int(_parquet(path, f"SELECT {lengths} AS bytes FROM read_parquet(?)")["bytes"].iloc[0]))
        table = _parquet(path, f"SELECT {', '.join(listed)} FROM read_parquet(?)")
    else:
        content = io.BytesIO(_unpacked(path))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                # Without index_col=False a first row longer than the header would shift all columns, and with `usecols` longer
                # rows would lose their ends.
                table = pd.read_csv(
                    content,
                    index_col=False,
                    dtype=dict.fromkeys(texts, str),
                    na_values={name: ["", "nan", "NaN", "NA"] for name in features} | {name: [""] for name in texts},
                    keep_default_na=False,
                    skip_blank_lines=False,
                    encoding="utf-8-sig",
                    low_memory=False,
                )[wanted]
        except (
            ValueError,
            KeyError,
            OverflowError,
            pd.errors.ParserWarning,
        ) as error:  # pandas' own errors are ValueErrors
            raise InputError(
                f"{path}: found rows that cannot be read ({error}), expected {TABLE}. Replace the file."
            ) from error
    if table.empty:
        raise InputError(f"{path}: found no row, expected samples. Replace the file.")
    for name in texts:
        _refuse(path, table[name].isna(), name, "nothing", "a value")
        table[name] = table[name].astype(str)
    for name in features:
        _refuse(path, table[name].isna(), name, "nothing", "a number")
        if not pd.api.types.is_numeric_dtype(
            table[name]
        ):  # pandas takes a moment of time for a number, and fails at lists.
            other = [not isinstance(value, (str, int, float)) for value in table[name]]
            _refuse(path, np.array(other), name, table[name].astype(str), "a number")
        values = pd.to_numeric(table[name], errors="coerce")
        _refuse(path, values.isna(), name, table[name], "a number")
        _refuse(path, ~(values.abs() <= np.finfo(np.float32).max), name, table[name], "a finite number")
        table[name] = values
    return table


def _unpacked(path: Path) -> bytes:
    """Return the bytes of a text file, unpacked; raises InputError for a damaged file, or one larger than LARGEST_TABLE."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = bytearray()
            while len(content) <= LARGEST_TABLE and (block := stream.read(_BLOCK)):
                content += block
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as text ({error}); expected {TABLE}. Replace the file.") from error
    _refuse_size(path, len(content))
    return bytes(content)


def _refuse_size(path: Path, size: int) -> None:
    """Raise InputError for a table whose values take more bytes than LARGEST_TABLE."""
    if size > LARGEST_TABLE:
        raise InputError(
            f"{path}: found more than {LARGEST_TABLE} bytes unpacked, expected a table that fits into memory. Leave out columns "
            "or rows."
        )


def _parquet(path: Path, query: str) -> pd.DataFrame:
    """Return the result of a query on a Parquet file; raises InputError for a file of another kind, or with too many rows."""
    import duckdb

    # Without a temporary folder nothing is left beside the file.
    limits: dict[str, Any] = {"memory_limit": "4GB", "temp_directory": "", "threads": 1}
    try:
        with duckdb.connect(config=limits) as database:
            counted = database.execute("SELECT num_rows FROM parquet_file_metadata(?)", [str(path)]).fetchone()
            _refuse_size(path, int(counted[0]) * _SMALLEST_ROW if counted else 0)
            return database.execute(query, [str(path)]).df()
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}). Replace the file.") from error


def first_row(path: Path) -> int:
    """Return the number of a table's first row: 1, or 2 in a text file, whose line 1 is the header."""
    return 1 if path.suffix == ".parquet" else 2


def _refuse(path: Path, bad: Any, column: str, found: Any, expected: str) -> None:
    """Raise InputError for the first row where `bad` (rows,) holds. `found` is a text, or the values of all rows."""
    if not (places := np.flatnonzero(bad)).size:
        return
    first = int(places[0])
    row = f"{'row' if path.suffix == '.parquet' else 'line'} {first + first_row(path)}"
    value = found if isinstance(found, str) else f"'{found.iloc[first]}'"
    more = f", and in {len(places) - 1} more rows" if len(places) > 1 else ""
    raise InputError(
        f"{path}: found {value} in column '{column}' at {row}{more}, expected {expected}. Correct or remove the rows."
    )


def labels_of(
    path: Path, values: "pd.Series[str]", classes: Sequence[Any] | None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the classes and the class index of each value (rows,).

    classes: in the order of class indices; those found in the table, sorted, when None. Raises InputError for a value that is
    none of them, and for fewer than two classes.
    """
    found = sorted(
        values.unique(), key=lambda value: (not value.isdecimal(), value.zfill(20) if value.isdecimal() else value)
    )
    names = found if classes is None else [str(name) for name in classes]
    if len(names) < 2:
        raise InputError(
            f"{path}: found the class {_named(names)} alone in '{values.name}', expected two or more classes."
        )
    _refuse(path, ~values.isin(names), str(values.name), values, f"one of {', '.join(names)} (`classes` of the entry)")
    return names, pd.Index(names).get_indexer(pd.Index(values)).astype(np.int64)


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the table, divide its groups and write the features of each split, in the order of the table."""
    if missing := [key for key in SETTINGS if key not in settings]:
        raise InputError(
            f"datasets.{raw.dataset}: found no {', '.join(missing)}, expected {', '.join(SETTINGS)}. Add them to the entry "
            "(docs/data.md says what they mean)."
        )
    tables = raw.find()
    if len(tables) != 1:
        raise InputError(
            f"datasets.{raw.dataset}.path: found {len(tables)} tables in {raw.path}, expected one. Set it to one file."
        )
    (path,) = tables
    features = choose_columns(path, columns_of(path), settings)
    label, group = settings["label_column"], settings["group_column"]
    table = read_table(path, features, [label, group])
    classes, y = labels_of(path, table[label], settings["classes"])
    names, groups = np.unique(table[group].to_numpy(dtype=str), return_inverse=True)
    parts = group_split(groups, settings["test_share"], settings["validation_share"], seed, f"'{group}' groups")
    rows = {split: np.flatnonzero(np.isin(groups, part)) for split, part in zip(SPLITS, parts, strict=True)}
    for split in SPLITS:
        counts = np.bincount(y[rows[split]], minlength=len(classes))
        for absent in np.flatnonzero(counts == 0):
            n_split, n_class = (len(np.unique(groups[chosen])) for chosen in (rows[split], y == absent))
            raise InputError(
                f"{path}: found no row of class '{classes[absent]}' ('{label}') among the {n_split} groups for {split}, expected "
                f"every class in every split; {n_class} of {len(names)} groups have it. Change test_share or validation_share of "
                f"datasets.{raw.dataset}, or split_seed, or leave the class out."
            )
    x = table[features].to_numpy(np.float32)
    with writing(out_dir) as writer:
        for split in SPLITS:
            writer.array(f"x_{split}", x[rows[split]])
            writer.array(f"y_{split}", y[rows[split]])
            writer.array(f"groups_{split}", groups[rows[split]].astype(np.int64))
        writer.describe(
            raw.description(settings["title"])
            | {
                "kind": "features",
                "classes": classes,
                "variables": features,
                "units": ["as in the table"] * len(features),
                "sampling_rate": None,
                "split_rule": f"by {group}: {settings['test_share']:g} of the groups for test, "
                f"{settings['validation_share']:g} of the others for validation (seed {seed})",
                "exclusions": [],
            }
        )
