"""Tables of a user, as .csv or .csv.gz, read row by row without trust."""

import csv
import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clailearn.errors import InputError
from clailearn.limits import check_file, lines_of

INDEX = re.compile(
    r"|Unnamed: ?\d+(\.\d+|_level_\d+)?|\.\.\.\d+|__index_level_\d+__|level_\d+|_?(row[_. ]?)?(index|idx|id)(\.\d+)?|"
    r"row[_. ]?(names?|num(ber)?|no|nr)?|.*[_. ]id",
    re.IGNORECASE,
)
"""Names of the column in which a table keeps the numbers of its rows or samples, as pandas, R and people write it."""
# A feature's largest value: that of float32.
_LARGEST = float(np.finfo(np.float32).max)


def rows(
    path: Path, names: Sequence[str], read: Callable[[str, str], Any]
) -> Iterator[tuple[str, NDArray[Any] | InputError]]:
    """Yield place and values, or the error, of each row of a table, whose header names the columns in any order.

    read: returns a value by its text and place, and raises InputError for one that is none, as `number` does.
    """
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        check_file(path)
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(lines_of(file, path))
            header = next(lines, [])
            if odd := [name for name in names if header.count(name) != 1]:
                found = f"{header.count(odd[0]) or 'no'} columns '{odd[0]}', expected one among {', '.join(header)}"
                raise InputError(f"{path}: found {found}. Correct the name, or the header, with commas between columns")
            columns, empty = [header.index(name) for name in names], True
            for fields in filter(None, lines):
                empty = False
                place = f"{path}:{lines.line_num}"
                try:
                    if len(fields) != len(header):
                        raise InputError(
                            f"{place}: found {len(fields)} values, expected {len(header)} as in the header"
                        )
                    yield place, np.array([read(fields[n], f"{place}: column '{header[n]}'") for n in columns])
                except InputError as error:
                    yield place, error
            if empty:
                raise InputError(f"{path}: found no row, expected samples below the header. Name another file")
    except InputError as error:
        yield str(path), error
    except (OSError, EOFError, zlib.error, ValueError, csv.Error) as error:
        yield str(path), InputError(f"{path}: cannot be read ({error}), expected a table as .csv or .csv.gz, in UTF-8")


def counts_rows(values: NDArray[Any]) -> bool:
    """Return whether numbers (rows,) are those of their rows, from 0 or from 1."""
    return set((values - np.arange(len(values))).tolist()) in ({0}, {1})


def number(text: str, place: str) -> float:
    """Return a number that float32 can hold, 1 and 0 for true and false; raise InputError for another text."""
    text = {"true": "1", "false": "0"}.get(text.strip().lower(), text)
    try:
        value = float(text if "_" not in text else "nan")  # Python takes 1_0 for ten.
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST:
        raise InputError(f"{place}: found '{text}', expected a finite number. Correct or remove the row")
    return value
