"""LaTeX of tables: cells, rows, groups of rows, and floats of groups."""

import re
from collections.abc import Sequence

import pandas as pd

HEADER = "% Needs \\usepackage{booktabs}, {graphicx}, {longtable} and {xcolor}. Generated: edit nothing here.\n"
ROWS_OF_A_PAGE = 46
"""Rows of 8 pt that fit on a page below a caption of several lines and above its notes."""
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
}  # fmt: skip


def scientific(value: float) -> str:
    """Return 1.23 x 10^4 as LaTeX; a dash for 0 and nan."""
    if pd.isna(value) or value == 0:
        return "--"
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa}\times 10^{{{int(exponent)}}}$"


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def row(*cells: str) -> str:
    """Return a row of cells, which are LaTeX already."""
    return " & ".join(cells) + r" \\" + "\n"


def named(name: str, *cells: str) -> str:
    """Return a row of a group: its name, indented, and cells, which are LaTeX already."""
    return row(rf"\quad {escape(name)}", *cells)


def paragraphs(*cells: str) -> str:
    """Return a row of paragraph cells: escaped, ragged, with breaks allowed inside long names and paths."""
    broken = [re.sub(r"(\\_|[/:=](?=\S)|\.(?=[a-z]))", r"\1\\allowbreak{}", escape(cell)) for cell in cells]
    return " & ".join(rf"\raggedright {cell}" for cell in broken) + " \\tabularnewline\n"


def spanning(text: str, columns: int) -> str:
    """Return a row of one cell, which is LaTeX already, across all columns."""
    return rf"\multicolumn{{{columns}}}{{l}}{{{text}}} \\" + "\n"


def group(title: str, columns: int, lines: Sequence[str] | str) -> str:
    """Return rows below a line with their title; a text in their place is the reason why there are none."""
    heading = rf"\textbf{{{escape(title)}}}"
    if isinstance(lines, str):
        return "\\midrule\n" + spanning(rf"{heading}, \emph{{{escape(lines)}}}", columns)
    return "\\midrule\n" + spanning(heading, columns) + "".join(lines)


def grouped(
    head: str,
    groups: Sequence[str],
    columns: str,
    text: str,
    label: str,
    miniature: bool,
    height: int = 1,
    continued: bool = False,
) -> str:
    """Return groups of rows below a head as one float, or as several where the rows are more than a page holds.

    Args:
        head: row that stands on top of each float.
        groups: rows that stay together, as `group` gives them.
        columns, text, label, miniature, continued: as of `floating`.
        height: of most rows, in lines: more than 1 where cells are paragraphs.
    """
    floats: list[list[str]] = [[]]
    for rows in groups:
        if floats[-1] and "".join([*floats[-1], rows]).count(r"\\") * height > ROWS_OF_A_PAGE:
            floats.append([])
        floats[-1].append(rows)
    return "\n".join(
        floating(head + "".join(rows), columns, text, label, miniature, continued=continued or part > 0)
        for part, rows in enumerate(floats)
    )


def floating(body: str, columns: str, text: str, label: str, miniature: bool, continued: bool = False) -> str:
    """Return a table* float in 8 pt, shrunk to the line where it is wider; the caption's notes stand below the table.

    Args:
        body: rows between the rules at top and bottom.
        columns: of the tabular.
        text: lines of the caption; the first is the caption itself, the others are notes.
        continued: whether this is a later part of a table, which keeps the number of the first.
    """
    caption, *notes = map(escape, text.split("\n"))
    heading = f"\\caption{{{caption}}}\n\\label{{{label}}}\n"
    if continued:
        heading, notes = f"\\addtocounter{{table}}{{-1}}\n\\caption{{{caption.split('. ')[0]} (continued)}}\n", []
    return (
        f"\\begin{{table*}}[tp]\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{4pt}}\n"
        f"\\setlength{{\\belowcaptionskip}}{{4pt}}\n{heading}"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{columns}}}\n{_mark(columns, miniature)}\\toprule\n{body}\\bottomrule\n"
        f"\\end{{tabular}}}}\n{_below(notes)}\\end{{table*}}\n"
    )


def long_table(head: str, body: str, columns: str, text: str, label: str, miniature: bool) -> str:
    """Return a table in 8 pt that runs over pages, for documents of one column.

    Args:
        head: row that stands on top of each page. body: the other rows.
        columns: paragraphs, no wider together than the line. text: as of `floating`.
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
    """Return the notes of a caption, which are LaTeX already, as lines in 7 pt; nothing without notes."""
    if not notes:
        return ""
    lines = "\\par\n".join(notes)
    return f"\\par\\smallskip\n\\noindent\\parbox{{\\linewidth}}{{\\scriptsize\\raggedright\n{lines}}}\n"
