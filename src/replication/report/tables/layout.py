"""The layout of tables: LaTeX of groups of rows, and the form that most tables have, mean (sd) by dataset and model.

A table is two functions. One makes a tidy frame from evidence, the other LaTeX from the frame. Cells are LaTeX already.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import Metric, in_order
from replication.report.statistics import interval, replicates, spread
from replication.runs.registry import CLAI

HEADER = "% Needs \\usepackage{booktabs}, {graphicx}, {longtable} and {xcolor}. Generated: edit nothing here.\n"
ROWS_OF_A_PAGE = 46
"""Rows of 8 pt that fit on a page below a caption of several lines and above its notes."""
_SPECIAL = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
})  # fmt: skip

DIFFERENCE = " minus "
"""Between the two models of a row that holds their difference."""
RESULT_COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "printed", "data"]


@dataclass(frozen=True)
class Sources:
    """What tables are made of: evidence, the values that the paper prints and that others report, and settings."""

    evidence: Evidence
    printed_values: pd.DataFrame
    reported_values: pd.DataFrame
    settings: Mapping[str, Any]


FrameOf = Callable[[Sources], pd.DataFrame]
TexOf = Callable[[pd.DataFrame, Sources, str], str]


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters escaped."""
    return text.translate(_SPECIAL)


def number(mean: float, sd: float = np.nan, digits: int = 3) -> str:
    """Return `mean (sd)`; the mean alone without a spread; a dash without a mean."""
    if pd.isna(mean):
        return "--"
    return f"{mean:.{digits}f}" if pd.isna(sd) else f"{mean:.{digits}f} ({sd:.{digits}f})"


def row(*cells: str) -> str:
    """Return a row of cells."""
    return " & ".join(cells) + r" \\" + "\n"


def indented(name: str, *cells: str) -> str:
    """Return a row of a group: its name, indented, and cells."""
    return row(rf"\quad {escape(name)}", *cells)


def paragraphs(*cells: str) -> str:
    """Return a row of paragraphs of plain text, ragged, with breaks allowed inside long names and paths."""
    broken = [re.sub(r"(\\_|[/:=](?=\S)|\.(?=[a-z]))", r"\1\\allowbreak{}", escape(cell)) for cell in cells]
    return " & ".join(rf"\raggedright {cell}" for cell in broken) + " \\tabularnewline\n"


def spanning(text: str, columns: int) -> str:
    """Return a row of one cell across all columns."""
    return rf"\multicolumn{{{columns}}}{{l}}{{{text}}} \\" + "\n"


def group(title: str, columns: int, lines: Sequence[str] | str) -> str:
    """Return rows below a line with their title; a text in their place is the reason why there are none."""
    heading = rf"\textbf{{{escape(title)}}}"
    if isinstance(lines, str):
        return "\\midrule\n" + spanning(rf"{heading}, \emph{{{escape(lines)}}}", columns)
    return "\\midrule\n" + spanning(heading, columns) + "".join(lines)


def floats(
    head: str,
    groups: Sequence[str],
    columns: str,
    text: str,
    label: str,
    miniature: bool,
    height: int = 1,
    part: int = 0,
) -> str:
    """Return groups of rows below a head as a table* float in 8 pt, or as several where the rows are more than a page holds.

    A float is shrunk to the line where it is wider; the caption's notes stand below it.

    Args:
        groups: rows that stay together, as `group` gives them.
        text: lines of the caption; the first is the caption itself, the others are notes.
        height: of most rows, in lines: more than 1 where cells are paragraphs.
        part: number of the first float; those after part 0 keep the number of the table and are marked as continued.
    """
    body = head + groups[0] if groups else head
    rest = list(groups[1:])
    while rest and (body + rest[0]).removeprefix(head).count(r"\\") * height <= ROWS_OF_A_PAGE:
        body += rest.pop(0)
    caption, *notes = map(escape, text.split("\n"))
    heading = f"\\caption{{{caption}}}\n\\label{{{label}}}\n"
    if part:
        heading, notes = f"\\addtocounter{{table}}{{-1}}\n\\caption{{{caption.split('. ')[0]} (continued)}}\n", []
    first = (
        f"\\begin{{table*}}[tp]\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{4pt}}\n"
        f"\\setlength{{\\belowcaptionskip}}{{4pt}}\n{heading}"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{columns}}}\n{_mark(columns, miniature)}\\toprule\n{body}\\bottomrule\n"
        f"\\end{{tabular}}}}\n{_below(notes)}\\end{{table*}}\n"
    )
    if not rest:
        return first
    return first + "\n" + floats(head, rest, columns, text, label, miniature, height, part + 1)


def long_table(head: str, body: str, columns: str, text: str, label: str, miniature: bool) -> str:
    """Return a table in 8 pt that runs over pages, for documents of one column, with its head on top of each.

    `columns` are paragraphs, no wider together than the line, and `text` is as of `floats`.
    """
    caption, *notes = map(escape, text.split("\n"))
    return (
        "{\\footnotesize\n\\setlength{\\tabcolsep}{4pt}\n\\setlength{\\LTcapwidth}{\\linewidth}\n"
        f"\\begin{{longtable}}{{{columns}}}\n\\caption{{{caption}}}\\label{{{label}}}\\\\\n"
        f"{_mark(columns, miniature)}\\toprule\n{head}\\midrule\n\\endfirsthead\n"
        f"\\toprule\n{head}\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n{body}\\end{{longtable}}\n{_below(notes)}}}\n"
    )


def _mark(columns: str, miniature: bool) -> str:
    span = len(re.sub(r"p\{[^}]*\}", "p", columns))
    return rf"\multicolumn{{{span}}}{{c}}{{\textbf{{Miniature synthetic data}}}} \\" + "\n" if miniature else ""


def _below(notes: Sequence[str]) -> str:
    """Return the notes of a caption as lines in 7 pt; nothing without notes."""
    lines = "\\par\n".join(notes)
    return (
        f"\\par\\smallskip\n\\noindent\\parbox{{\\linewidth}}{{\\scriptsize\\raggedright\n{lines}}}\n" if notes else ""
    )


def result_rows(
    evidence: Evidence, dataset: str, models: Sequence[str], metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """Return the rows of `rows_by` for models of a dataset under the printed reading."""
    shared = {"dataset": dataset, "data": evidence.data(dataset)}
    measured = evidence.metrics(dataset).rename(columns={"cell": "model"})
    return rows_by(measured, metrics, {"model": models}, shared)


def rows_by(
    measured: pd.DataFrame, metrics: Sequence[Metric], by: Mapping[str, Iterable[str]], shared: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a row for each combination of the values of some columns, and each metric.

    A row has the combination, what is `shared`, the metric's key and the `summary` of its values in the table's unit. Its n is 0
    for what was not run. Beside the columns `by`, `measured` has seed, fold, metric and value.
    """
    scales: dict[Any, float] = {metric.key: metric.scale for metric in metrics}
    columns = [*by, "metric"]
    known = measured[measured["metric"].isin(scales)]
    found = {key: summary(replicates(part) * scales[key[-1]]) for key, part in known.groupby(columns)}
    nothing = summary(pd.Series(dtype=float))
    keys = product(*by.values(), scales)
    return [{**shared, **dict(zip(columns, key, strict=True)), **found.get(key, nothing)} for key in keys]


def summary(values: pd.Series) -> dict[str, Any]:
    """Return mean, sd and n of values over seeds or folds, the limits low and high of their 95 % t-interval."""
    (mean, sd, n), around = spread(values), interval(values)
    return {"mean": mean, "sd": sd, "n": n, "low": around.low, "high": around.high}


def models_of(evidence: Evidence, dataset: str, always: Sequence[str] = ()) -> list[str]:
    """Return `always`, and then the other models that have metrics on a dataset, in the order of tables."""
    measured = in_order(evidence.frame(dataset, "metrics.csv")["cell"])
    return [*always, *(model for model in measured if model not in always)]


def lacking(evidence: Evidence, dataset: str, file: str) -> str:
    """Return why a dataset has no rows: it was not run, or its evidence lacks a file."""
    return f"not computed: its evidence has no {file}" if evidence.has(dataset) else evidence.not_run(dataset)


@dataclass(frozen=True)
class Block:
    """Columns of a table; the blocks of a table stand below each other.

    Args:
        metrics: the columns of numbers.
        names: headings of the columns that name a row, by column of the frame.
        shows: the datasets and studies that have rows; without any, all.
        limits: whether the columns low and high are shown as an interval.
    """

    metrics: Sequence[Metric]
    names: Mapping[str, str] = field(default_factory=lambda: {"model": "Model"})
    shows: Collection[str] = ()
    limits: bool = False


def results(*blocks: Block, label: str) -> TexOf:
    """Return `results_tex` with its declaration."""
    return partial(results_tex, blocks=blocks, label=label)


def results_tex(
    frame: pd.DataFrame,
    sources: Sources,
    text: str,
    blocks: Sequence[Block],
    label: str,
    title: Callable[[Evidence, str], str] = Evidence.title,
    first: Sequence[str] = (),
) -> str:
    """Return a table of mean (sd): datasets as groups of rows, or the reason why one has none, and metrics as columns.

    Args:
        frame: dataset, the columns that blocks name, metric, mean and data, and as far as it has them sd, low, high and printed.
            A row without a metric says in `data` why its dataset has no others.
        label: for references in LaTeX.
        title: gives the title of a dataset.
        first: groups of rows above those of the first block, in place of a row with printed values in each group.

    A block leaves out datasets that have no row for its first metric.
    """
    evidence = sources.evidence
    tables: list[str] = []
    said: set[str] = set()  # why a dataset has no rows, once
    for block in blocks:
        heads = [*block.names.values(), *(metric.title for metric in block.metrics)]
        groups = [] if tables else [*first]
        for dataset in block.shows or evidence.expected:
            rows = frame[frame["dataset"] == dataset]
            part = rows[rows["metric"].isin([metric.key for metric in block.metrics])]
            missing = not evidence.has(dataset) or rows["metric"].isna().all()
            if (missing and dataset in said) or (not missing and block.metrics[0].key not in set(part["metric"])):
                continue
            printed = [] if first else _printed_line(part, evidence, dataset, block.metrics)
            lines: list[str] | str = [*printed, *_lines(part, evidence, dataset, block)]
            if missing:
                said.add(dataset)
                reason = evidence.not_run(dataset) if rows.empty else str(rows["data"].iloc[0])
                across = rf"\multicolumn{{{len(heads) - 1}}}{{l}}{{\emph{{{escape(reason)}}}}}"
                lines = [*printed, indented("This work", across)] if printed else reason
            groups.append(group(title(evidence, dataset), len(heads), lines))
        columns = "l" * len(block.names) + "c" * len(block.metrics)
        if groups:
            tables.append(floats(row(*heads), groups, columns, text, label, evidence.miniature, part=len(tables)))
    return "\n".join(tables)


def _printed_line(part: pd.DataFrame, evidence: Evidence, dataset: str, metrics: Sequence[Metric]) -> list[str]:
    """Return the row with the paper's values, if it has any; it names the data where ours are others."""
    if "printed" not in part or part["printed"].isna().all():
        return []
    intended = evidence.expected[dataset]["title"]
    paper = "Paper" if evidence.title(dataset) == intended else f"Paper, on {intended}"
    return [indented(paper, *cells(part[part["model"] == CLAI[0]], metrics, "printed", None))]


def _lines(part: pd.DataFrame, evidence: Evidence, dataset: str, block: Block) -> list[str]:
    """Return the rows of a dataset, one for each combination of the block's names; a name is not repeated below itself."""
    lines: list[str] = []
    above: tuple[Any, ...] = ()
    for names, own in part.groupby(list(block.names), sort=False):
        shown = ["" if names[: n + 1] == above[: n + 1] else str(name) for n, name in enumerate(names)]
        above = names
        if "model" in block.names and (model := shown[place := list(block.names).index("model")]):
            shown[place] = "Difference" if DIFFERENCE in model else evidence.model_title(dataset, model)
        lines.append(indented(shown[0], *map(escape, shown[1:]), *cells(own, block.metrics, limits=block.limits)))
    return lines


def cells(
    rows: pd.DataFrame, metrics: Sequence[Metric], mean: str = "mean", sd: str | None = "sd", limits: bool = False
) -> list[str]:
    """Return one model's numbers as cells, one a metric: `mean (sd) [low, high]`, without the parts that it lacks.

    A star marks a difference of two models whose interval excludes 0. `rows` has a row for each metric; `mean` and `sd` name the
    columns to show.
    """
    entries, texts = {entry["metric"]: entry for entry in rows.to_dict("records")}, []
    for metric in metrics:
        values = entries.get(metric.key, {mean: np.nan})
        text = number(values[mean], values.get(str(sd), np.nan), metric.digits)
        if limits and pd.notna(values[mean]) and pd.notna(values["low"]):
            text += f" [{values['low']:.{metric.digits}f}, {values['high']:.{metric.digits}f}]"
        if DIFFERENCE in str(values.get("model")) and (values["low"] > 0 or values["high"] < 0):
            text += "$^*$"
        texts.append(text)
    return texts
