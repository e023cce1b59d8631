"""The layout of tables, and its two forms: LaTeX and Markdown.

A layout holds texts as a reader sees them: columns, and rows in groups. `pivot` makes it of a tidy frame by a block, which says
which columns name a row and which metrics stand in columns. `to_latex` and `to_markdown` print layouts below each other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, Evidence, owners, titles
from replication.report.labels import METRICS, MODEL_OF, VALUES, Metric
from replication.report.texts import table
from replication.runs.registry import MODELS

DASH = "–"
"""What stands for a number that there is not."""
NEEDS = (
    "% Needs \\usepackage{booktabs}, {graphicx} and {xcolor}, and LuaLaTeX for letters beyond Latin. "
    "Generated: edit nothing here.\n"
)
COMPARED = {*MODELS, *MODEL_OF} - {"constant"}
"""Models and methods whose best value is printed in bold. A constant answer is well calibrated and says nothing."""
LINES_OF_A_PAGE = 46
"""Lines of 8 pt that fit on a page below a caption of several lines and above its notes."""
LETTERS = 6.0
"""Letters of 8 pt in a centimetre of a line."""
COLOUR = re.compile("#[0-9a-f]{6}")
"""A cell that shows a colour."""
_SPECIAL = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
})  # fmt: skip


class Best(str):
    """A cell in bold."""


@dataclass(frozen=True)
class Group:
    """Rows below their title, and why there are none, or none of ours.

    behind: of each row the name in the evidence and the cells (one, or two that are compared) whose runs it is made of.
    """

    title: str
    rows: Sequence[Sequence[str]]
    reason: str = ""
    behind: Sequence[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Layout:
    """Columns, of which the first so many name a row, and groups of rows.

    `widths` has a column's width (cm) where its cells are paragraphs.
    """

    heads: Sequence[str]
    groups: Sequence[Group]
    names: int = 1
    widths: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """Which rows and columns of a frame a table shows.

    Args:
        columns: headings by metric, or by value of the column `across`, or by column of the frame. Metrics, or their keys, have
            headings of their own.
        rows: headings of the columns that name a row, by column of the frame.
        where: by column of the frame the values of the rows that are shown. Without a word on `rule` and `shares` these are the
            printed reading.
        across: the column of the frame whose values are the columns of the table.
        limits: whether the columns low and high are shown as an interval.
        best: whether the best value of our models in a group is printed in bold.
        widths: by column its width (cm), where its cells are paragraphs.
    """

    columns: Mapping[str, str] | Sequence[str | Metric]
    rows: Mapping[str, str] = field(default_factory=lambda: {"model": "Model"})
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    across: str = "metric"
    limits: bool = False
    best: bool = False
    widths: Mapping[str, float] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, Metric]:
        """Return metrics by key, those of the block in place of others."""
        return METRICS | {column.key: column for column in self.columns if isinstance(column, Metric)}

    @property
    def heads(self) -> dict[str, str]:
        """Return the headings of the columns of numbers."""
        if isinstance(self.columns, Mapping):
            return dict(self.columns)
        keys = [column if isinstance(column, str) else column.key for column in self.columns]
        return {key: self.metrics[key].title for key in keys}

    def admits(self, name: str, dataset: str) -> bool:
        """Return whether the block may show a dataset, or a study on one."""
        return name in self.where.get("study", [name]) and dataset in self.where.get("dataset", [dataset])

    def select(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a frame that the block shows."""
        printed = {"rule": [PRINTED_RULE, ""], "shares": [PRINTED_SHARES, ""]}
        free = {*self.rows, self.across}
        where = {column: values for column, values in printed.items() if column not in free} | dict(self.where)
        if not set(self.heads) <= set(frame):
            where[self.across] = list(self.heads)
        known = [frame[column].isin(values) for column, values in where.items() if column in frame]
        return frame[np.logical_and.reduce(known)] if known else frame


def pivot(frame: pd.DataFrame, block: Block, evidence: Evidence, reasons: Mapping[str, str] | None = None) -> Layout:
    """Return a block of a frame: a group for each dataset or study, in order, and a row for each combination of the names.

    Args:
        frame: dataset and model, or study and cell, the columns of the block, and metric, mean, sd, low, high and `setup`, a text
            beside the title of the data, as far as it has them.
        reasons: by name why a dataset or study has no numbers, which stands beside its title.
    """
    shown = block.select(frame)
    named = owners(shown)["name"]
    groups = []
    for name in evidence.expected:
        part, reason = shown[named == name], (reasons or {}).get(name, "")
        if len(part) or reason:
            rows, behind = _rows(part, block, evidence) if len(part) else ([], [])
            setup = list(part["setup"].dropna().unique()) if "setup" in part else []
            groups.append(Group(": ".join([evidence.title(name), *setup]), rows, reason, behind))
    columns, heads = [*block.rows, *block.heads], [*block.rows.values(), *block.heads.values()]
    widths = {columns.index(column): width for column, width in block.widths.items()}
    return Layout(heads, groups, len(block.rows), widths)


def reasons(evidence: Evidence, file: str) -> dict[str, str]:
    """Return by name why datasets or studies have no numbers: they were not run, or their evidence lacks a file."""
    found = {name: evidence.not_run(name) for name in evidence.expected if not evidence.has(name)}
    lacking = [name for name in evidence.at_hand() if not evidence.path(name, file).exists()]
    return found | dict.fromkeys(lacking, f"not computed: its evidence has no {file}")


def _rows(part: pd.DataFrame, block: Block, evidence: Evidence) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    """Return the rows of a group, ordered by the columns that name them, and what is behind each.

    A name is not repeated below itself.
    """
    part = part.assign(**owners(part).rename(columns={"cell": "of"}))
    if "model" in block.rows:
        part = part.assign(model=titles(evidence, part))
    ranks = [_ranks(part[column], list(VALUES.get(column, ()))) for column in reversed(list(block.rows))]
    part = part.iloc[np.lexsort(ranks)]
    rows: list[list[str]] = []
    behind: list[tuple[str, ...]] = []
    above: tuple[Any, ...] = ()
    best = _best(part, block) if block.best else {}
    for names, own in part.groupby(list(block.rows), sort=False, dropna=False):
        told = [_word(column, name) for column, name in zip(block.rows, names, strict=True)]
        new = ["" if names[: n + 1] == above[: n + 1] else name for n, name in enumerate(told)]
        above = names
        entries = own.to_dict("records")
        across = {entry.get(block.across): entry for entry in reversed(entries)}
        cells = {column: _cell(entries[0], across, column, block) for column in block.heads}
        bold = [column for column, cell in cells.items() if cell.split(" ")[0] == best.get(column)]
        ours = entries[0]["of"] in COMPARED
        rows.append([*new, *(Best(cell) if ours and column in bold else cell for column, cell in cells.items())])
        behind.append(tuple(value for key in ("name", "of", "other") if isinstance(value := entries[0][key], str)))
    return rows, behind


def _best(part: pd.DataFrame, block: Block) -> dict[str, str]:
    """Return the best value of each metric among our models, as printed."""
    ours, best = part[part["of"].isin(COMPARED)], {}
    for metric in [block.metrics[key] for key in block.heads]:
        means = ours.loc[ours["metric"] == metric.key, "mean"].dropna()
        if metric.better and len(means) > 1:
            best[metric.key] = number(means.max() if metric.better == "higher" else means.min(), metric)
    return best


def _ranks(values: pd.Series, known: list[str]) -> np.ndarray:
    """Return numbers, and otherwise the place of each value in the order of tables, or else of appearance."""
    if pd.api.types.is_numeric_dtype(values):
        return values.to_numpy()
    order = [*known, *(value for value in values.unique() if value not in known)]
    return values.map({value: position for position, value in enumerate(order)}).to_numpy()


def _word(column: str, value: Any) -> str:
    if pd.isna(value):
        return ""
    title = METRICS[value].title if column == "metric" else VALUES.get(column, {}).get(value)
    return title or (value if isinstance(value, str) else f"{value:g}")


def _cell(first: Mapping[Any, Any], across: Mapping[Any, Mapping[Any, Any]], column: str, block: Block) -> str:
    """Return a cell of the rows with one name: a column of the first one, or the numbers of the one that is `across`."""
    entry = first if column in first else across.get(column, {"mean": np.nan, "metric": column})
    shown = column if column in first else "mean"
    value = entry[shown]
    if isinstance(value, str):
        return value
    around = entry if shown == "mean" else {}
    sd, low, high = (around.get(name, np.nan) for name in ("sd", "low", "high"))
    star = isinstance(entry.get("other"), str) and not block.limits and (low > 0 or high < 0)
    limits = (low, high) if block.limits else ()
    return f"{number(value, block.metrics[shown if shown in METRICS else entry['metric']], sd, *limits)}{'*' * star}"


def number(mean: float, metric: Metric, sd: float = np.nan, low: float = np.nan, high: float = np.nan) -> str:
    """Return `mean (sd) [low, high]` without the parts that are not known, with true minus signs; a dash without a mean."""
    if pd.isna(mean):
        return DASH
    if 0 <= mean < metric.least:
        return f"<{metric.least:g}"
    texts = [f"{value:.{metric.digits}f}".replace("-", "−") for value in (mean, sd, low, high)]
    spread = "" if pd.isna(sd) else f" ({texts[1]})"
    return f"{texts[0]}{spread}" + ("" if pd.isna(low) else f" [{texts[2]}, {texts[3]}]")


def to_markdown(layouts: Sequence[Layout], text: str) -> str:
    """Return layouts as tables in Markdown, with their caption above and its notes below."""
    caption, *notes = map(_plain, text.split("\n"))
    return "\n\n".join([caption, *map(markdown, layouts), *notes]) + "\n"


def markdown(layout: Layout) -> str:
    """Return a layout as a table in Markdown, where the title of a group is a row."""
    rows = []
    for group in layout.groups:
        title = ": ".join(filter(None, [f"**{_plain(group.title)}**", _plain(group.reason)]))
        rows += [[title] + [""] * (len(layout.heads) - 1)] if group.title else []
        rows += [[_plain(cell) for cell in row] for row in group.rows]
    return table([_plain(head) for head in layout.heads], rows, len(layout.heads) - layout.names)


def _plain(cell: str) -> str:
    text = f"`{cell}`" if COLOUR.fullmatch(cell) else re.sub(r"([|*])", r"\\\1", cell)
    return f"**{text}**" if isinstance(cell, Best) else text


def to_latex(layouts: Sequence[Layout], text: str, label: str, miniature: bool) -> str:
    """Return layouts as table* floats in 8 pt, as many as their rows need; the caption's notes stand below the first.

    Args:
        text: lines of the caption; the first is the caption itself, the others are notes.
        label: for references. Floats after the first keep the number of the table and are marked as continued.
        miniature: whether the data are synthetic, which every float says.
    """
    caption, *notes = map(_escape, text.split("\n"))
    lines = "\\par\n".join(notes)
    box = f"\\par\\smallskip\n\\noindent\\parbox{{\\linewidth}}{{\\scriptsize\\raggedright\n{lines}}}\n"
    pages = [(layout, groups) for layout in layouts for groups in _pages(layout)]
    floats = []
    for part, (layout, groups) in enumerate(pages):
        heading = f"\\caption{{{caption}}}\n\\label{{{label}}}\n"
        if part:
            heading = f"\\addtocounter{{table}}{{-1}}\n\\caption{{{caption.split('. ')[0]} (continued)}}\n"
        below = box if notes and not part else ""
        floats.append(
            f"\\begin{{table*}}[tp]\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{4pt}}\n"
            f"\\setlength{{\\belowcaptionskip}}{{4pt}}\n{heading}"
            "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
            f"{_tabular(layout, groups, miniature)}}}\n{below}\\end{{table*}}\n"
        )
    return NEEDS + "\n".join(floats)


def _pages(layout: Layout) -> list[list[Group]]:
    """Return the groups of a layout page by page: none is broken."""
    pages: list[list[Group]] = [[]]
    lines, widths = 0, layout.widths.items()
    for group in layout.groups:
        heights = [[1, *(ceil(len(row[column]) / (LETTERS * width)) for column, width in widths)] for row in group.rows]
        height = 1 + sum(map(max, heights))
        if pages[-1] and lines + height > LINES_OF_A_PAGE:
            pages.append([])
            lines = 0
        pages[-1].append(group)
        lines += height
    return pages


def _tabular(layout: Layout, groups: Sequence[Group], miniature: bool) -> str:
    span, paragraphs = len(layout.heads), {column: f"p{{{width}cm}}" for column, width in layout.widths.items()}
    columns = "".join(paragraphs.get(column, "l" if column < layout.names else "c") for column in range(span))
    body = rf"\multicolumn{{{span}}}{{c}}{{\textbf{{Miniature synthetic data}}}} \\" + "\n" if miniature else ""
    body += f"\\toprule\n{_line(layout.heads, layout.widths)}"
    for group in groups:
        reason = rf", \emph{{{_escape(group.reason)}}}" if group.reason else ""
        title = rf"\multicolumn{{{span}}}{{l}}{{\textbf{{{_escape(group.title)}}}{reason}}} \\" + "\n"
        body += "\\midrule\n" + (title if group.title else "")
        body += "".join(rf"\quad {_line(row, layout.widths)}" for row in group.rows)
    return f"\\begin{{tabular}}{{{columns}}}\n{body}\\bottomrule\n\\end{{tabular}}"


def _line(row: Sequence[str], widths: Mapping[int, float]) -> str:
    """Return a row; paragraphs are ragged, with breaks allowed inside long names and paths."""
    cells = [_escape(cell) for cell in row]
    for column in widths:
        broken = re.sub(r"(\\_|[/:=](?=\S)|\.(?=[a-z]))", r"\1\\allowbreak{}", cells[column])
        cells[column] = rf"\raggedright {broken}"
    return " & ".join(cells) + " \\tabularnewline\n"


def _escape(cell: str) -> str:
    """Return a cell with LaTeX's special characters escaped; of a colour such as #1f77b4 a square in it."""
    if COLOUR.fullmatch(cell):
        return rf"\textcolor[HTML]{{{cell.lstrip('#').upper()}}}{{\rule{{0.8em}}{{0.8em}}}}"
    text = cell.translate(_SPECIAL)
    return rf"\textbf{{{text}}}" if isinstance(cell, Best) else text
