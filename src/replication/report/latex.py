"""LaTeX: rows and floats of tables, and typesetting a document."""

import re
from collections.abc import Sequence

PASSES = 3
"""Runs of LaTeX, after which labels and the widths of long tables have settled."""

HEADER = "% Needs \\usepackage{booktabs}, {graphicx}, {longtable} and {xcolor}. Generated: edit nothing here.\n"

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
}  # fmt: skip

END_OF_ROW = r"\\"
ROWS_OF_A_PAGE = 46
"""Rows of 8 pt that fit on a page below a caption of several lines and above its notes."""


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def row(*cells: str) -> str:
    """Return a row of cells, which are LaTeX already."""
    return " & ".join(cells) + r" \\" + "\n"


def paragraphs(*cells: str) -> str:
    """Return a row of paragraph cells: escaped, ragged, with breaks allowed inside long names and paths."""
    broken = [re.sub(r"(\\_|[/:=](?=\S)|\.(?=[a-z]))", r"\1\\allowbreak{}", escape(cell)) for cell in cells]
    return " & ".join(rf"\raggedright {cell}" for cell in broken) + " \\tabularnewline\n"


def spanning(text: str, columns: int) -> str:
    """Return a row of one cell, which is LaTeX already, across all columns."""
    return rf"\multicolumn{{{columns}}}{{l}}{{{text}}} \\" + "\n"


def group(title: str, columns: int, lines: Sequence[str]) -> str:
    """Return rows below a line with their title."""
    return "\\midrule\n" + spanning(rf"\textbf{{{escape(title)}}}", columns) + "".join(lines)


def missing_group(title: str, columns: int, reason: str) -> str:
    """Return the rows of a dataset that was not run: its title and the reason."""
    return "\\midrule\n" + spanning(rf"\textbf{{{escape(title)}}}, \emph{{{escape(reason)}}}", columns)


def floating(body: str, columns: str, caption: str, label: str, miniature: bool, part: str = "") -> str:
    """Return a table* float in 8 pt, shrunk to the line where it is wider; the caption's notes stand below the table.

    Args:
        body: rows from the first \\toprule to the last \\bottomrule.
        columns: of the tabular.
        caption: lines; the first is the caption, the others are notes.
        part: text behind the caption of a later part of a table, which keeps the number of the first.
    """
    sentences, *notes = caption.split("\n")
    heading = f"\\addtocounter{{table}}{{-1}}\n\\caption{{{escape(sentences)} {part}}}\n"
    if not part:
        heading = f"\\caption{{{escape(sentences)}}}\n\\label{{{label}}}\n"
    return (
        f"\\begin{{table*}}[tp]\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{4pt}}\n"
        f"\\setlength{{\\belowcaptionskip}}{{4pt}}\n{heading}"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{columns}}}\n{_mark(columns, miniature)}{body}\\end{{tabular}}}}\n"
        f"{below([] if part else notes)}\\end{{table*}}\n"
    )


def grouped(
    head: str, groups: Sequence[str], columns: str, caption: str, label: str, miniature: bool, lines: int = 1
) -> str:
    """Return groups of rows below a head as one float, or as several where the rows are more than a page holds.

    Args:
        head: row that stands on top of each float.
        groups: rows that stay together, as `group` and `missing_group` give them.
        columns, caption, label, miniature: as of `floating`.
        lines: of most rows, more than one where cells are paragraphs.
    """
    floats: list[list[str]] = [[]]
    for rows in groups:
        if floats[-1] and "".join([*floats[-1], rows]).count(END_OF_ROW) * lines > ROWS_OF_A_PAGE:
            floats.append([])
        floats[-1].append(rows)
    return "\n".join(
        floating(
            f"\\toprule\n{head}{''.join(rows)}\\bottomrule\n",
            columns,
            caption,
            label,
            miniature,
            "(continued)" if n else "",
        )
        for n, rows in enumerate(floats)
    )


def long_table(head: str, body: str, columns: str, caption: str, label: str, miniature: bool) -> str:
    """Return a table in 8 pt that runs over pages, for documents of one column.

    Args:
        head: row that stands on top of each page. body: the other rows.
        columns: paragraphs, no wider together than the line. caption: as of `floating`.
    """
    sentences, *notes = caption.split("\n")
    return (
        "{\\footnotesize\n\\setlength{\\tabcolsep}{4pt}\n\\setlength{\\LTcapwidth}{\\linewidth}\n"
        f"\\begin{{longtable}}{{{columns}}}\n\\caption{{{escape(sentences)}}}\\label{{{label}}}\\\\\n"
        f"{_mark(columns, miniature)}\\toprule\n{head}\\midrule\n\\endfirsthead\n"
        f"\\toprule\n{head}\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n{body}\\end{{longtable}}\n{below(notes)}}}\n"
    )


def _mark(columns: str, miniature: bool) -> str:
    number = len(re.sub(r"p\{[^}]*\}", "p", re.sub(r"@\{[^}]*\}", "", columns)))
    return rf"\multicolumn{{{number}}}{{c}}{{\textbf{{Miniature synthetic data}}}} \\" + "\n" if miniature else ""


def below(notes: Sequence[str]) -> str:
    """Return the notes of a caption as lines in 7 pt; nothing without notes."""
    if not notes:
        return ""
    lines = "\\par\n".join(escape(note) for note in notes)
    return f"\\par\\smallskip\n\\noindent\\parbox{{\\linewidth}}{{\\scriptsize\\raggedright\n{lines}}}\n"
