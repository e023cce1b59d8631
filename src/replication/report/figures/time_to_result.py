"""Figure S6: accuracy against wall time and against operations, by method."""

import math
from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter, ScalarFormatter

from replication.report.evidence import Evidence
from replication.report.figures.parts import GREY, WIDTH, Drawn, new_figure, write_reason
from replication.report.figures.schedules import COLOURS, SHORT_TITLES
from replication.report.labels import VARIANT_TITLES, model_title
from replication.report.printed_values import printed_value

COLUMNS = ["dataset", "model", "quantity", "epoch", "x", "median", "low", "high", "n"]
PANELS = {"seconds": "Seconds of training", "operations": "Floating-point operations"}
# The record of CIFAR-10, on test images: Jordan (2024, arXiv 2404.00498). Its seconds are those of a GPU.
RECORD_ACCURACY, RECORD_OPERATIONS = 0.94, 3.6e14
NOT_KEPT = "found no times and operations in this evidence: run the study again"


def draw(evidence: Evidence, printed: pd.DataFrame) -> Drawn:
    """Draw validation accuracy against seconds (left) and operations (right): median and range over the seeds, by epoch.

    Args:
        printed: the values that the paper prints.
    """
    (study,) = evidence.expected
    history = evidence.frame(study, "history.csv").reindex(columns=["model", "epoch", "validation_accuracy", *PANELS])
    figure = new_figure(WIDTH, 3.4, evidence)
    panels = figure.subplots(1, 2, sharey=True)
    paper = printed_value(printed, "table1", "cifar10", "accuracy")[0] / 100
    styles = _styles(list(history["model"].unique()))
    parts: list[pd.DataFrame] = []
    for axes, (quantity, label) in zip(panels, PANELS.items(), strict=True):
        kept = history.dropna(subset=quantity)
        if kept.empty:
            write_reason(axes, NOT_KEPT)
            continue
        for cell, (colour, dash, _) in styles.items():
            curve = (
                kept[kept["model"] == cell]
                .groupby("epoch")
                .agg(
                    x=(quantity, "median"),
                    median=("validation_accuracy", "median"),
                    low=("validation_accuracy", "min"),
                    high=("validation_accuracy", "max"),
                    n=("validation_accuracy", "count"),
                )
            )
            axes.plot(curve["x"], curve["median"], color=colour, ls=dash, lw=1.3)
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=colour, alpha=0.2, lw=0)
            parts.append(curve.reset_index().assign(dataset=study, model=cell, quantity=quantity))
        _mark(axes, quantity, paper)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        powers = LogFormatterSciNotation(minor_thresholds=(math.inf, math.inf))
        axes.xaxis.set_major_formatter(powers if quantity == "operations" else ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(label)
    panels[0].set_ylabel("Validation accuracy")
    handles = [Line2D([], [], color=colour, ls=dash, lw=1.5, label=title) for colour, dash, title in styles.values()]
    handles += [
        Line2D([], [], color="0.3", ls=":", lw=1, label=f"the paper's accuracy ({100 * paper:.2f} %)"),
        Line2D([], [], color="k", ls="", marker="*", ms=8, label=f"record ({100 * RECORD_ACCURACY:.1f} %)"),
    ]
    if parts:
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(parts) if parts else pd.DataFrame(columns=COLUMNS)


def _mark(axes: Axes, quantity: str, paper: float) -> None:
    """Draw the paper's accuracy as a line, and the record: a point among operations, an accuracy alone among seconds."""
    axes.axhline(paper, color="0.3", ls=":", lw=1)
    if quantity == "operations":
        axes.plot(RECORD_OPERATIONS, RECORD_ACCURACY, "k*", ms=8)
    else:
        axes.axhline(RECORD_ACCURACY, color="k", ls=":", lw=0.6)


def _styles(cells: list[str]) -> dict[str, tuple[str, str, str]]:
    """Return colour, line style and title of each cell, in the order of methods; cells of one method differ in their lines."""
    methods = {cell: next((part for part in cell.split("_") if part in COLOURS), "") for cell in cells}
    ordered = sorted(cells, key=lambda cell: ([*COLOURS, ""].index(methods[cell]), cell))
    dashes = {method: cycle(["-", "--", "-.", ":"]) for method in methods.values()}
    styles = {}
    for cell in ordered:
        method = methods[cell]
        alone = method and list(methods.values()).count(method) == 1
        title = SHORT_TITLES.get(method, VARIANT_TITLES.get(method, method)) if alone else model_title(cell)
        styles[cell] = (COLOURS.get(method, GREY), next(dashes[method]), title)
    return styles
