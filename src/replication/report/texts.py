"""Texts: what the paper prints, captions, the files beside outputs, tables and blocks of documents.

A caption is sentences written by hand, and a line of data, seeds and hardware from the evidence. A CSV has what an output shows,
a JSON its caption and the identities of its runs, whose records stand once, in the evidence that the JSON names.

Numbers in pages: before a reference to the cell that it comes from, a number is filled in and kept by a test.

    90.1<!--table1 pathmnist clai-m accuracy-->
    −0.1 (−0.4 to +0.2)<!--tableS2 pathmnist clai-m cross-entropy accuracy-->

A reference is a comment, which readers of the page do not see. It names an output of `paper_figures` and values of the row, as
`column=value` where several columns may have them; and the column, unless it is `mean`, with `low` and `high` of an interval.
Where several rows have these values, the one counts that has neither `study` nor `other` and the printed rule. The number itself
says how many decimals it has, and whether it has a sign.
"""

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from clailearn.errors import InputError
from replication.report.evidence import Evidence, run_cell, run_name
from replication.report.labels import MINI_NOTE
from replication.runs.registry import CONFIG, read_json

PRINTED, REPORTED = (pd.read_csv(CONFIG / f"{whose}_values.csv") for whose in ("printed", "reported"))
"""What the paper prints, and what others report."""
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


def printed(table: str) -> pd.DataFrame:
    """Return the values that the paper prints in a table, or in its text: columns row, metric, value, spread."""
    return PRINTED[PRINTED["table"] == table]


def printed_value(table: str, row: str, metric: str) -> float:
    """Return a value that the paper prints; nan where it prints none."""
    values = printed(table)
    found = values[(values["row"] == row) & (values["metric"] == metric)]
    return float("nan") if found.empty else float(found["value"].iloc[0])


def caption(fixed: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a caption: the first paragraph of `fixed` as a line, each further one as a note, and what the output rests on.

    These are sentences on data, seeds, folds, hardware and what was not run; the mark of synthetic data is the last one. `runs`
    are the records of the runs behind the output.
    """
    data = "; ".join(dict.fromkeys(evidence.title(key) for key in evidence.at_hand()))
    hardware = "; ".join(sorted({str(run["hardware"]) for run in runs}))
    lacking = {key: entry for key, entry in evidence.expected.items() if not evidence.has(key)}
    missing = "; ".join(f"{evidence.title(key)}, which needs {entry['needs']}" for key, entry in lacking.items())
    positive = "; ".join(filter(None, map(evidence.positive_class, evidence.at_hand())))
    parts = {
        "Data": data, "Positive class": positive, "Seeds": replicate_text(evidence, runs, "seed"),
        "Folds": replicate_text(evidence, runs, "fold"), "Hardware": hardware, "Not run": missing,
    }  # fmt: skip
    sentences = [f"{name}: {text}." for name, text in parts.items() if text]
    sentences += [MINI_NOTE] if evidence.miniature else []
    paragraphs = [" ".join(paragraph.split()) for paragraph in fixed.split("\n\n")]
    return "\n".join(filter(None, [*paragraphs, " ".join(sentences)]))


def replicate_text(evidence: Evidence, runs: Sequence[Mapping[str, Any]], unit: Literal["seed", "fold"]) -> str:
    """Return the seeds or folds of run records, such as 0-2; datasets are named where theirs differ.

    Models of a dataset may differ, such as 0-2 or 0-4: the n beside each number in the CSV tells which model has how many.
    """
    records = [(run_name(run), run_cell(run), int(run[unit])) for run in runs if run[unit] is not None]
    frame = pd.DataFrame(records, columns=["name", "cell", unit])
    ranges = frame.groupby(["name", "cell"], sort=False)[unit].agg(_ranges)
    named: dict[str, list[str]] = {}
    for name, texts in ranges.groupby("name", sort=False):
        named.setdefault(" or ".join(sorted(set(texts))), []).append(evidence.title(str(name)))
    if len(named) == 1:
        return next(iter(named))
    return "; ".join(f"{text} ({'; '.join(titles)})" for text, titles in named.items())


def _ranges(numbers: Iterable[int]) -> str:
    """Return 0-2, 5 for 0, 1, 2, 5."""
    texts = []
    for _, pairs in groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in pairs]
        texts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(texts)


def sidecar(text: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]], **further: Any) -> str:
    """Return the JSON beside an output: caption, data, evidence, the identities of its runs, and what is `further` there."""
    content = {
        "caption": text,
        "data": [evidence.title(key) for key in evidence.at_hand()],
        "evidence": evidence.root.name,
        "runs": [str(run["run"]) for run in runs],
        **further,
    }
    lines = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # An object without others is a line.
    return re.sub(r"(?<=.)\{[^{}]*\}", lambda leaf: re.sub(r"\n\s*", " ", leaf[0]), lines, flags=re.DOTALL) + "\n"


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV with six significant digits and Unix line ends."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """Write a table in Markdown; its last columns, so many, have numbers and are aligned to the right."""
    rule = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def replace_block(text: str, name: str, block: str) -> str:
    """Return a document with `block` between the lines `<!-- name:begin -->` and `<!-- name:end -->`, which it must have."""
    before, begin, rest = text.partition(f"<!-- {name}:begin -->\n")
    _, end, after = rest.partition(f"<!-- {name}:end -->")
    if not (begin and end):
        raise InputError(f"found no block {name} in the document, expected the lines that begin and end it")
    return f"{before}{begin}{block}\n{end}{after}"


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
