"""A table of features, CSV or Parquet: a row a sample, with numbers, a label and a group that stays in one split.

The entry in the configuration names the columns. A group is what samples resemble each other in: a subject, a patient, a
site. pandas reads CSV, duckdb Parquet.
"""

import csv
import gzip
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clailearn.errors import InputError
from replication.datasets.files import read_parquet, reading
from replication.datasets.identifiers import in_order, missing, positive_last, refuse_odd_texts, trimmed
from replication.datasets.prepared import narrowed, writing
from replication.datasets.sources import Raw
from replication.datasets.splits import rows_of_groups

FILES = ("*.csv", "*.csv.gz", "*.parquet")
TABLE = "one table with a header, .csv, .csv.gz or .parquet"
EXPECTS = f"{TABLE}, of the columns that the dataset's entry names"
ALL_OTHERS = "all others"
INDEX = re.compile(
    r"|Unnamed: ?\d+(\.\d+|_level_\d+)?|\.\.\.\d+|__index_level_\d+__|level_\d+|_?(row[_. ]?)?(index|idx|id)(\.\d+)?|"
    r"row[_. ]?(names?|num(ber)?|no|nr)?|.*[_. ]id",
    re.IGNORECASE,
)
"""Names of the column in which a table keeps the numbers of its rows or samples, as pandas, R and people write it."""


def _is(path: Path, ending: str) -> bool:
    return path.suffix.lower() == ending


def _read_csv(path: Path, **options: Any) -> pd.DataFrame:
    packed: Any = "gzip" if _is(path, ".gz") else None
    return pd.read_csv(
        path, compression=packed, keep_default_na=False, skip_blank_lines=False, encoding="utf-8-sig", **options
    )


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns in order; raises InputError for a file without a header or a name that repeats."""
    with reading(path, TABLE):
        if _is(path, ".parquet"):
            names = [str(name) for name in read_parquet(path, most=0)]
        else:  # as a row, because pandas renames columns that repeat
            header = _read_csv(path, header=None, nrows=1, dtype=str)
            names = header.iloc[0].tolist()
    if "\0" in "".join(names):
        raise InputError(f"{path}: found characters of two bytes, as in UTF-16, expected UTF-8. Save it so.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(
            f"{path}: found more than one column {_named(repeated)}, expected every name once. Rename them."
        )
    return names


def choose_columns(path: Path, names: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Return the feature columns that the settings name; raise InputError for one that is not there, or label or group, too."""
    label, group, features = settings["label_column"], settings["group_column"], settings["feature_columns"]
    others = [name for name in names if name not in (label, group)]
    chosen = others if features == ALL_OTHERS else list(features)
    if absent := [name for name in (label, group, *chosen) if name not in names]:
        if mark := re.search(r"[;\t|]", "".join(names)):
            raise InputError(
                f"{path}: found {mark[0]!r} between columns, expected ','. Save the table with commas between columns and "
                f"decimal points: in pandas, read_csv(..., sep={mark[0]!r}, decimal=',').to_csv(..., index=False)."
            )
        raise InputError(
            f"{path}: found no column {_named(absent)}, expected the ones that label_column, group_column and "
            f"feature_columns name. The table has {_named(names)}: correct the entry."
        )
    if features == ALL_OTHERS:
        _refuse_index(path, [name for name in chosen if INDEX.fullmatch(name)])
    if label == group or (both := [name for name in chosen if name in (label, group)]):
        raise InputError(
            f"{path}: found {_named([label] if label == group else both)} in two of label_column, group_column and "
            "feature_columns, expected each column in one. Correct the entry."
        )
    if not chosen:
        raise InputError(f"{path}: found no column beside label and group, expected features. Add them to the table.")
    return chosen


def read_table(
    path: Path, features: Sequence[str], texts: Sequence[str], classes: Sequence[Any] | None
) -> pd.DataFrame:
    """Read the features as numbers, others as text; raise InputError, with the place, for what is missing or no finite number."""
    with reading(path, TABLE), warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
        if _is(path, ".parquet"):
            table = read_parquet(path)[[*features, *texts]]
        else:
            table = _read_csv(
                path,
                index_col=False,  # Otherwise a first row longer than the header would shift all columns.
                dtype=dict.fromkeys(texts, str),
                na_values={name: ["", "nan", "NaN", "NA"] for name in features} | {name: [""] for name in texts},
                low_memory=False,
            )[[*features, *texts]]
    if table.empty:
        raise InputError(f"{path}: found no row, expected samples. Replace the file.")
    for name in texts:
        _refuse(path, table[name].isna(), name, "nothing", "a value")
        _refuse(path, table[name].map(type).eq(bytearray), name, table[name], "a text or a number")
        table[name] = trimmed(table[name].astype(str))
        refuse_odd_texts(table[name].to_numpy(dtype=str), f"{path}: column '{name}'", classes)
    for name in features:
        column = table[name]
        _refuse(path, column.isna(), name, "nothing", "a number")
        number = pd.api.types.is_numeric_dtype(column)
        values = column if number else pd.to_numeric(column.astype(str), errors="coerce")
        _refuse(
            path, ~(values.abs() <= np.finfo(np.float32).max), name, column,
            "a finite number, with a decimal point (`feature_columns` may leave the column out)",
        )  # fmt: skip
        table[name] = values
    return table


def _place(path: Path, row: int) -> str:
    """Return where a row, counted from 0, is: its line as an editor counts them, or its number in a Parquet file."""
    if _is(path, ".parquet"):
        return f"row {row + 1}"
    opened = gzip.open if _is(path, ".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        for _ in range(row + 1):
            next(lines)
        return f"line {lines.line_num + 1}"


def _refuse(path: Path, bad: Any, column: str, found: Any, expected: str) -> None:
    """Raise InputError for the first row where `bad` (rows,) holds. `found` is a text, or the values of all rows."""
    if not (places := np.flatnonzero(bad)).size:
        return
    first = int(places[0])
    value = found if isinstance(found, str) else f"'{found.iloc[first]}'"
    more = f", and in {len(places) - 1} more rows" if len(places) > 1 else ""
    raise InputError(
        f"{path}: found {value} in column '{column}' at {_place(path, first)}{more}, expected {expected}. Correct or remove "
        "the rows."
    )


def labels_of(
    path: Path, values: "pd.Series[str]", classes: Sequence[Any] | None, positive: str | int | None = None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the classes, those found where `classes` is None, `positive` last, and the class index of each value (rows,)."""
    found = in_order(values.unique())
    names = found if classes is None else trimmed(classes).tolist()
    _refuse(path, ~values.isin(names), str(values.name), values, f"one of {', '.join(names)}, as `classes` has them")
    names = positive_last(names, positive)
    return names, pd.Index(names).get_indexer(pd.Index(values)).astype(np.int64)


def _refuse_index(path: Path, names: Sequence[str]) -> None:
    if names:
        raise InputError(
            f"{path}: found {_named(names)}, an index or identifier, expected features. Leave it out of the table (in "
            "pandas, to_csv(..., index=False)), or list the features in feature_columns."
        )


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read the table, divide its groups and write the features of each split, in the order of the table."""
    tables = raw.find()
    if len(tables) != 1:
        raise InputError(
            f"datasets.{raw.dataset}.path: found {len(tables)} tables in {raw.path}, expected one. Set it to one file."
        )
    (path,) = tables
    features = choose_columns(path, columns_of(path), settings)
    label, group = settings["label_column"], settings["group_column"]
    table = read_table(path, features, [label, group], settings["classes"])
    if settings["feature_columns"] == ALL_OTHERS:
        whole = table[features].select_dtypes("integer")
        _refuse_index(
            path, [name for name in map(str, whole) if set(whole[name] - np.arange(len(whole))) in ({0}, {1})]
        )
    unknown = missing(table[label].to_numpy(dtype=str), settings["classes"])
    _refuse(path, unknown, label, table[label], "a value (`classes` may name it)")
    _refuse(path, missing(table[group].to_numpy(dtype=str)), group, table[group], "a value")
    classes, y = labels_of(path, table[label], settings["classes"], settings.get("positive"))
    groups = np.unique(table[group].to_numpy(dtype=str), return_inverse=True)[1].astype(np.int64)
    test, validation = settings["test_share"], settings["validation_share"]
    parts = rows_of_groups(groups, y, classes, test, validation, seed, f"'{group}' groups")
    x = narrowed(table[features].to_numpy(np.float64))
    with writing(out_dir) as writer:
        writer.splits(parts, x=x, y=y, groups=groups)
        writer.describe(
            raw.description(settings["title"]),
            kind="features",
            classes=classes,
            variables=features,
            units=["as in the table"] * len(features),
            split_rule=f"by {group}: {test:g} of the groups for test, {validation:g} of the others for validation (seed {seed})",
        )
