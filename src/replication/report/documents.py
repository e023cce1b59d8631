"""Figures and blocks of documents that come from tracked files.

A figure in the prose is a Markdown reference, `[97.5][auc]`. Its definition at the end of the document names the CSV file that
it comes from, and in the title the rows and the form:

    [auc]: ../paper_figures/table1.csv "dataset=cifar10; model=clai-m; metric=roc_auc; {mean:.1f}"

The parts before the last select rows: `column=value`, `column=` for an empty cell, `column=a|b` for several values, `column=a|`
for a or an empty cell, as of a model that has no rule. The last part is a format string over the columns of the row. Of several
rows, `{mean.min:.1f}` and `{mean.max:.1f}` give the extremes. With `column=a - b` the rows of b are subtracted from those of a,
replicate by replicate, and `mean`, `low`, `high`, `n` are those of the 95 % t-interval, corrected where replicates are folds.
The format `.1p` is `.1f` times 100, without a sign of per cent.

The file may also be the page of claims: `claims_numbers` says which columns its rows have.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from clai.errors import InputError
from replication.report.statistics import interval, replicates

DEFINITION = re.compile(r'^\[([\w-]+)\]: (\S+\.(?:csv|md)) "([^"]*)"$', flags=re.MULTILINE)
FIGURE = re.compile(r"\[([^\[\]]+)\]\[([\w-]+)\]")
MINUS = " - "
CLAIM = re.compile(r"^## (\w+)\. ")
NUMBER = re.compile(r"^([+-]?[\d.]+)(?: \[([+-]?[\d.]+), ([+-]?[\d.]+)\])?$")


class Values:
    """The values of one column of the selected rows, for format strings."""

    def __init__(self, column: pd.Series) -> None:
        self.column = column

    @property
    def min(self) -> "Values":
        return Values(pd.Series([self.column.min()]))

    @property
    def max(self) -> "Values":
        return Values(pd.Series([self.column.max()]))

    def __format__(self, form: str) -> str:
        if len(self.column) != 1:
            raise InputError(
                f"found {len(self.column)} rows, expected one: select it by further columns, or take .min or .max"
            )
        value = self.column.iloc[0]
        return format(100 * value, form[:-1] + "f") if form.endswith("p") else format(value, form)


def fill_figures(text: str, place: Path) -> str:
    """Return a document with every figure as its definition gives it.

    Args:
        text: the document.
        place: its file; paths of the definitions are relative to its folder.

    Raises:
        InputError: a figure has no definition, a definition no figure, or a definition does not give one value.
    """
    definitions = {name: (file, title) for name, file, title in DEFINITION.findall(text)}
    used = {name for _, name in FIGURE.findall(text)}
    for name in sorted(used ^ set(definitions)):
        lack = "a definition" if name in used else "a figure that uses it"
        raise InputError(f"{place}: [{name}] lacks {lack}; add it, or delete the other part")

    def filled(match: re.Match[str]) -> str:
        name = match[2]
        file, title = definitions[name]
        try:
            return f"[{figure(place.parent / file, title)}][{name}]"
        except (InputError, KeyError, AttributeError, ValueError, OSError) as error:
            raise InputError(
                f'{place}: [{name}] is defined as {file} "{title}", which gives no figure ({error}); change its definition'
            ) from error

    return FIGURE.sub(filled, text)


def figure(file: Path, title: str) -> str:
    """Return the figure that a title takes from a CSV file or from the page of claims."""
    *filters, form = title.split("; ")
    frame = claims_numbers(file.read_text()) if file.suffix == ".md" else pd.read_csv(file, low_memory=False)
    difference: tuple[str, str, str] | None = None
    for part in filters:
        column, _, wanted = part.partition("=")
        if MINUS in wanted:
            difference = (column, *wanted.split(MINUS, 1))  # type: ignore[assignment]
        else:
            frame = frame[_cells(frame, column).isin(wanted.split("|"))]
    if difference is not None:
        column, *sides = difference
        first, second = (_only(frame[_cells(frame, column) == side]) for side in sides)
        found = interval((first - second).dropna())
        columns = {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n}
        frame = pd.DataFrame([columns])
    if frame.empty:
        raise InputError("found no such row")
    return form.format_map({str(name): Values(column) for name, column in frame.items()})


def claims_numbers(page: str) -> pd.DataFrame:
    """Return the numbers in the tables of the page of claims, as it prints them.

    Returns:
        One row a number. Columns, all text: claim, its number; data; quantity, the cell below "Quantity" or the head of the
        column; value, and the ends of its interval, low and high, or None.
    """
    rows: list[dict[str, str | None]] = []
    claim, head = "", list[str]()
    for line in page.splitlines():
        if match := CLAIM.match(line):
            claim = match[1]
        if not line.startswith("| "):
            head = []
        elif not head:
            head = [cell.strip() for cell in line.strip("| ").split(" | ")]
        else:
            cells = dict(zip(head, (cell.strip() for cell in line.removeprefix("| ").split(" | ")), strict=False))
            named = {cells["Quantity"]: cells["Value"]} if {"Quantity", "Value"} <= cells.keys() else cells
            for quantity, cell in named.items():
                if number := NUMBER.match(cell):
                    value, low, high = number.groups()
                    where = {"claim": claim, "data": cells.get("Data"), "quantity": quantity}
                    rows.append({**where, "value": value, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["claim", "data", "quantity", "value", "low", "high"], dtype="string")


def replace_block(text: str, name: str, block: str) -> str:
    """Return a document with `block` between the lines `<!-- name:begin -->` and `<!-- name:end -->`.

    Raises:
        InputError: the two lines are not there, in order.
    """
    first, last = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    begin, end = text.find(first), text.find(last)
    if not 0 <= begin < end:
        raise InputError(
            f"found no block {name} in the document, expected the lines {first} and {last}, in this order; add them"
        )
    return f"{text[: begin + len(first)]}\n{block}\n{text[end:]}"


def untraced(text: str, allowed: Mapping[str, str]) -> list[str]:
    """Return the lines of a document's prose that hold a digit outside of figures, code and `allowed` patterns.

    Args:
        allowed: regular expressions of numbers that are no results, by what they are.
    """
    prose = DEFINITION.sub("", text)
    prose = re.sub(r"<!-- (\w+):begin -->.*<!-- \1:end -->", "", prose, flags=re.DOTALL)
    prose = re.sub(r"^```.*?^```$|^ {4}.*?$", "", prose, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", FIGURE.sub("", prose))
    for pattern in allowed.values():
        prose = re.sub(pattern, "", prose)
    return [line for line in prose.splitlines() if re.search(r"\d", line)]


def _cells(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return a column as text: whole numbers without a point, missing values empty."""
    values = frame[column]
    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    return values.astype("string").fillna("")


def _only(frame: pd.DataFrame) -> pd.Series:
    """Return the values of the replicates, each of which has one row."""
    if frame.empty:
        raise InputError("found no rows to subtract")
    if frame.duplicated(["seed", "fold"]).any():
        raise InputError("found several rows of a seed and fold: select by further columns")
    return replicates(frame)
