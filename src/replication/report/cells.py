"""Numbers in pages: before a reference to the cell that it comes from, a number is filled in and kept by a test.

    90.1<!--table1 pathmnist clai-m accuracy-->
    −0.1 (−0.4 to +0.2)<!--tableS2 pathmnist clai-m cross-entropy accuracy-->

A reference is a comment, which readers of the page do not see. It names an output of `paper_figures` and values of the row, as
`column=value` where several columns may have them; and the column, unless it is `mean`, with `low` and `high` of an interval.
Where several rows have these values, the one counts that has neither `study` nor `other` and the printed rule. The number itself
says how many decimals it has, and whether it has a sign.
"""

import math
import re
import shlex
from functools import cache
from pathlib import Path

import pandas as pd

from clailearn.errors import InputError
from replication.runs.registry import read_json

NUMBER = r"[−+]?\d+(?:\.\d+)?"
FILLED = re.compile(rf"(?P<shown>{NUMBER}(?:\s\({NUMBER}\sto\s{NUMBER}\))?)<!--(?P<cell>[^>]+)-->")
_USUAL = {
    "study": [],
    "other": [],
    "rule": ["printed"],
    "shares": ["population"],
    "option": [""],
    "part": [""],
    "role": ["test", "beside"],
}


def fill(page: str, outputs: Path) -> str:
    """Return a page with the numbers of its cells; raise InputError for a reference that names no row, or several."""
    return FILLED.sub(lambda match: f"{_shown(match, outputs)}<!--{match['cell']}-->", page)


def _shown(match: re.Match[str], outputs: Path) -> str:
    numbers = iter(_numbers(outputs, match["cell"]))
    return re.sub(NUMBER, lambda old: formatted(next(numbers), old[0]), match["shown"])


def formatted(number: float, old: str) -> str:
    """Return a number as another one is written: with as many decimals, with a sign if that has one, and a true minus."""
    return f"{number:{'+' if old[0] in '+−' else ''}.{len(old.partition('.')[2])}f}".replace("-", "−")


@cache
def _numbers(outputs: Path, cell: str) -> list[float]:
    """Return the number of a reference and, where its row has them, the limits of its interval."""
    file, *words = shlex.split(cell)
    whole = frame = _frame(outputs, file)
    texts, values = whole.astype(str), [word for word in words if word not in whole]
    for value in values:
        column, _, own = value.partition("=")
        same = texts[column] == own if column in texts else (texts == value).any(axis=1)
        frame = frame[same[frame.index]]
    for column, usual in _USUAL.items():
        if len(frame) > 1 and column in frame and not frame[column].isin(values).any():
            frame = frame[frame[column].isna() | frame[column].isin(usual)]
    if len(frame) != 1:
        raise InputError(
            f"<!--{cell}-->: found {len(frame)} rows, expected one. Name more values of it, or correct them"
        )
    columns = [word for word in words if word in whole] or ["mean"]
    return [float(frame.iloc[0].get(column, math.nan)) for column in [*columns, "low", "high"]]


@cache
def _frame(outputs: Path, name: str) -> pd.DataFrame:
    if name == "claims":
        claims = read_json(outputs / "claims.json")["claims"]
        return pd.DataFrame([{"claim": claim["id"], **row} for claim in claims for row in claim["estimates"]])
    return pd.read_csv(outputs / ("supplement" if "S" in name else "") / f"{name}.csv", low_memory=False)
