"""The layout of tables: numbers as cells, LaTeX, and the form that most tables have, mean (sd) by dataset and model.

A table is two functions. One makes a tidy frame from evidence, the other LaTeX from the frame. `results` gives both from a list
of metrics.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import model_title
from replication.report.statistics import interval, replicates, spread
from replication.runs.models import MODELS

HEADER = "% Needs \\usepackage{booktabs}, {graphicx}, {longtable} and {xcolor}. Generated: edit nothing here.\n"
ROWS_OF_A_PAGE = 46
"""Rows of 8 pt that fit on a page below a caption of several lines and above its notes."""
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
}  # fmt: skip
RESULT_COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "printed", "data"]


@dataclass(frozen=True)
class Metric:
    """A metric as a column of a table.

    Args:
        key: its name in the evidence.
        percent: whether tables show it in per cent, not as a fraction.
        decimals: digits behind the point of what is not in per cent: 5 where values are mostly below 0.001.
    """

    key: str
    title: str
    percent: bool = False
    decimals: int = 3

    @property
    def scale(self) -> float:
        """Factor from the evidence, where all metrics are fractions, to the table's unit."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Digits behind the point."""
        return 2 if self.percent else self.decimals


METRICS = {
    metric.key: metric
    for metric in (
        Metric("accuracy", "Accuracy", percent=True),
        Metric("precision", "Precision", percent=True),
        Metric("recall", "Recall", percent=True),
        Metric("macro_f1", "Macro F1", percent=True),
        Metric("roc_auc", "ROC-AUC", percent=True),
        Metric("kappa", "Cohen's kappa"),
        Metric("ece", "ECE"),
        Metric("ece_scaled", "ECE, scaled"),
        Metric("auroc", "AUROC"),
        Metric("auprc", "AUPRC"),
        Metric("f1", "F1"),
        Metric("f1_validation", "F1"),
        Metric("utility", "Utility"),
        Metric("prevalence", "Positive share"),
        Metric("ece_calibrated", "ECE, calibrated", decimals=5),
        Metric("ece_positive_rate", "Positive-rate ECE"),
        Metric("ece_positive_rate_calibrated", "Positive-rate ECE, calibrated", decimals=5),
        Metric("brier", "Brier score"),
        Metric("brier_reliability", "Reliability", decimals=5),
        Metric("brier_resolution", "Resolution", decimals=5),
        Metric("brier_calibrated", "Brier score, calibrated"),
        Metric("alignment", "Alignment"),
        Metric("centred_alignment", "Centred alignment"),
        Metric("above_floor", "Loss $-$ floor"),
        Metric("validation_accuracy", "Validation", percent=True),
        Metric("shift", "Validation minus test", percent=True),
        Metric("training_minutes", "Train (min)", decimals=1),
        Metric("cpu_minutes", "CPU (min)", decimals=1),
        Metric("power", "Power"),
        Metric("temperature", "Temperature"),
        Metric("log_loss", "Log loss"),
    )
}
"""The metrics of all tables by key."""


def chosen(keys: str, **titles: str) -> list[Metric]:
    """Return metrics by their keys, which spaces separate; `titles` gives some of them another title in one table."""
    return [replace(METRICS[key], title=titles.get(key, METRICS[key].title)) for key in keys.split()]


@dataclass(frozen=True)
class Sources:
    """What tables are made of.

    Evidence, the values that the paper prints and that others report, and for table S1 the open choices and the settings.
    """

    evidence: Evidence
    printed_values: pd.DataFrame
    reported_values: pd.DataFrame
    choices: pd.DataFrame
    settings: Mapping[str, Any]


FrameOf = Callable[[Sources], pd.DataFrame]
TexOf = Callable[[pd.DataFrame, Sources, str], str]


def results(metrics: Sequence[Metric], label: str, always: Sequence[str] = ()) -> tuple[FrameOf, TexOf]:
    """Return the two functions of a table of mean (sd): datasets as groups, models as rows, metrics as columns.

    Args:
        label: for references in LaTeX.
        always: models that have rows for every dataset, run or not. Without any, only datasets at hand have rows.
    """
    return partial(results_frame, metrics=metrics, always=always), partial(results_tex, metrics=metrics, label=label)


def results_frame(sources: Sources, metrics: Sequence[Metric], always: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of `result_rows` for all models of all datasets."""
    evidence = sources.evidence
    datasets = list(evidence.expected) if always else evidence.at_hand()
    rows = [row for key in datasets for row in result_rows(evidence, key, models_of(evidence, key, always), metrics)]
    return pd.DataFrame(rows, columns=[name for name in RESULT_COLUMNS if always or name != "printed"])


def results_tex(frame: pd.DataFrame, sources: Sources, text: str, metrics: Sequence[Metric], label: str) -> str:
    """Return the LaTeX of `results`; limits low and high in the frame are shown as an interval."""
    heads = ["Model", *(metric.title for metric in metrics)]
    return by_dataset(frame, sources, heads, partial(model_lines, metrics=metrics), text, label)


def result_rows(
    evidence: Evidence, dataset: str, models: Sequence[str], metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """Return the rows of `rows_by` for models of a dataset under the printed reading."""
    named = {"dataset": dataset, "data": evidence.data(dataset)}
    return rows_by(evidence.metrics(dataset), metrics, {"model": models}, named)


def rows_by(
    measured: pd.DataFrame, metrics: Sequence[Metric], by: Mapping[str, Iterable[str]], named: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a row for each combination of the values of some columns, and each metric.

    A row has the combination, `named`, the metric's key and the `summary` of its values in the table's unit. Its n is 0 for what
    was not run.

    Args:
        measured: the columns of `by`, and seed, fold, metric and value.
        by: the values of each column, in the order of rows.
    """
    rows: list[dict[str, Any]] = []
    for combination in product(*by.values()):
        part = measured[(measured[list(by)] == combination).all(axis=1)]
        shared = {**named, **dict(zip(by, combination, strict=True))}
        for metric in metrics:
            values = replicates(part[part["metric"] == metric.key]) * metric.scale
            rows.append({**shared, "metric": metric.key, **summary(values)})
    return rows


def summary(values: pd.Series) -> dict[str, Any]:
    """Return mean, sd and n of values over seeds or folds, the limits low and high of their 95 % t-interval, and their index."""
    (mean, sd, n), around = spread(values), interval(values)
    of = " ".join(map(str, values.index))
    return {"mean": mean, "sd": sd, "n": n, "low": around.low, "high": around.high, "of": of}


def models_of(evidence: Evidence, dataset: str, always: Sequence[str] = ()) -> list[str]:
    """Return `always`, and then the other models that have metrics on a dataset, in the order of tables."""
    measured = in_order(evidence.frame(dataset, "metrics.csv")["model"])
    return [*always, *(model for model in measured if model not in always)]


def in_order(models: Iterable[str]) -> list[str]:
    """Return each model once, in the order of the registry; others behind, by name."""
    known = list(MODELS)
    return sorted(set(models), key=lambda model: (known.index(model) if model in known else len(known), model))


def lacking(evidence: Evidence, dataset: str, file: str) -> str:
    """Return why a dataset has no rows: it was not run, or its evidence lacks a file."""
    return f"not computed: its evidence has no {file}" if evidence.has(dataset) else evidence.not_run(dataset)


def by_dataset(
    frame: pd.DataFrame,
    sources: Sources,
    heads: Sequence[str],
    lines: Callable[[pd.DataFrame], list[str]],
    text: str,
    label: str,
    *,
    columns: str = "",
    title: Callable[[str], str] | None = None,
    file: str = "",
    above: str = "",
) -> str:
    """Return a table with a group of rows for each dataset, or the reason why it has none.

    Args:
        frame: a row without a model says that its dataset has none.
        lines: gives the rows of a dataset, from its part of the frame.
        columns: of the tabular; by default all but the first are centred.
        title: gives the title of a dataset; by default the name of the data.
        file: the file of the evidence that the rows come from, where a dataset may lack it.
        above: LaTeX above the heads.
    """
    evidence = sources.evidence
    groups = []
    for dataset in evidence.expected:
        part = frame[frame["dataset"] == dataset]
        part = part.dropna(subset="model") if "model" in part else part
        missing = not evidence.has(dataset) or (file and part.empty)
        rows = lacking(evidence, dataset, file) if missing else lines(part)
        groups.append(group((title or evidence.title)(dataset), len(heads), rows))
    columns = columns or "l" + "c" * (len(heads) - 1)
    return grouped(above + row(*heads), groups, columns, text, label, evidence.miniature)


def model_lines(
    frame: pd.DataFrame, metrics: Sequence[Metric], title: Callable[[str], str] = model_title, key: str = "metric"
) -> list[str]:
    """Return a row for each model, with its numbers; `title` gives the model's name, `key` is as of `cells`."""
    return [
        named(title(str(model)), *cells(part, metrics, limits="low" in part, key=key))
        for model, part in frame.groupby("model", sort=False)
    ]


def cells(
    rows: pd.DataFrame,
    metrics: Sequence[Metric],
    mean: str = "mean",
    sd: str | None = "sd",
    limits: bool = False,
    key: str = "metric",
) -> list[str]:
    """Return one model's numbers as cells, one a metric: `mean (sd) [low, high]`, without the parts that it lacks.

    Args:
        rows: a row for each metric.
        mean, sd: names of the columns to show.
        limits: whether to show the columns low and high.
        key: name of the column that holds the metric's key.
    """
    by_metric = {str(entry[key]): entry for entry in rows.to_dict("records")}
    texts = []
    for metric in metrics:
        values = by_metric.get(metric.key, {mean: np.nan})
        text = number(values[mean], values.get(sd, np.nan), metric.digits)
        if limits and pd.notna(values[mean]) and pd.notna(values["low"]):
            text += f" [{values['low']:.{metric.digits}f}, {values['high']:.{metric.digits}f}]"
        texts.append(text)
    return texts


def number(mean: float, sd: float = np.nan, digits: int = 3) -> str:
    """Return `mean (sd)`; the mean alone without a spread; a dash without a mean."""
    if pd.isna(mean):
        return "--"
    return f"{mean:.{digits}f}" if pd.isna(sd) else f"{mean:.{digits}f} ({sd:.{digits}f})"


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
    head: str, groups: Sequence[str], columns: str, text: str, label: str, miniature: bool, height: int = 1
) -> str:
    """Return groups of rows below a head as one float, or as several where the rows are more than a page holds.

    Args:
        head: row that stands on top of each float.
        groups: rows that stay together, as `group` gives them.
        columns, text, label, miniature: as of `floating`.
        height: of most rows, in lines: more than 1 where cells are paragraphs.
    """
    floats: list[list[str]] = [[]]
    for rows in groups:
        if floats[-1] and "".join([*floats[-1], rows]).count(r"\\") * height > ROWS_OF_A_PAGE:
            floats.append([])
        floats[-1].append(rows)
    return "\n".join(
        floating(head + "".join(rows), columns, text, label, miniature, continued=part > 0)
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
        heading, notes = f"\\addtocounter{{table}}{{-1}}\n\\caption{{{caption} (continued)}}\n", []
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
