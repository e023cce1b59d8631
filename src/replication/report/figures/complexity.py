"""Supplementary figures of computation: accuracy by computation and time, time and memory of training."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from replication.report.evidence import Evidence, by_setting
from replication.report.figures import style
from replication.report.figures.style import BLUE, GREEN, PURPLE, VERMILION, WIDTH, Drawn
from replication.report.labels import MODEL_OF, VARIANT_TITLES, model_title
from replication.report.printed_values import printed_value

COMPUTATION_COLUMNS = ["dataset", "model", "quantity", "epoch", "x", "median", "low", "high", "n"]
METHOD_COLOURS = {"cosine": VERMILION, "full": BLUE, "cross-entropy": GREEN, "supervised-contrastive": PURPLE}
TIME_PANELS = {"seconds": "Seconds of training", "operations": "Floating-point operations (trillions)"}
DASHES = ("--", "-")
TIMED = {"sprint": ("full",)}
"""Cells whose published trainings had threads of their own; the seconds of others tell nothing of the method."""
# The record on the test images of CIFAR-10 (Jordan 2024, arXiv 2404.00498). Its seconds were measured on a GPU.
RECORD_ACCURACY, RECORD_OPERATIONS = 0.94, 3.6e14

GROWTH_COLUMNS = ["dataset", "model", "quantity", "comparison", "x", "mean", "low", "high", "predicted", "n"]
TIME_AND_MEMORY = {"seconds": "Seconds per epoch", "peak_memory_mb": "Peak memory (MiB)"}
SIZES = {"batches": "Batches $M$", "classes": "Classes $C$"}


def computation(evidence: Evidence, printed: pd.DataFrame) -> Drawn:
    """Draw validation accuracy against seconds (left) and operations (right): median and range over the seeds.

    Lines mark the paper's accuracy and the record, which is a point among operations. Each study has a dash of its own. Seconds
    are those of the cells `TIMED`.
    """
    figure = style.new_figure(WIDTH, 3.6, evidence)
    studies = evidence.at_hand()
    paper = printed_value(printed, "table1", "cifar10", "accuracy")[0] / 100
    panels = figure.subplots(1, 2, sharey=True)
    parts, entries = [], []
    for study, dash in zip(studies, DASHES, strict=False):
        history = evidence.frame(study, "history.csv")
        for cell, variants in evidence.expected[study]["cells"].items():
            by_epoch = history[history["cell"] == cell].groupby("epoch")
            if "length" in variants or not len(by_epoch):
                continue
            method = variants.get("method", variants.get("kernel"))
            look: dict[str, Any] = {"color": METHOD_COLOURS[method], "ls": dash}
            for axes, quantity in zip(panels, TIME_PANELS, strict=True):
                if quantity == "seconds" and cell not in TIMED.get(study, ()):
                    continue
                curve = by_epoch["validation_accuracy"].agg(median="median", low="min", high="max", n="count")
                curve = curve.assign(x=by_epoch[quantity].median()).reset_index()
                axes.plot(curve["x"], curve["median"], lw=1.3, **look)
                axes.fill_between(curve["x"], curve["low"], curve["high"], color=look["color"], alpha=0.2, lw=0)
                parts.append(curve.assign(dataset=study, model=cell, quantity=quantity))
            title = model_title(method) if method in MODEL_OF else VARIANT_TITLES[method]
            entries.append(Line2D([], [], lw=1.5, label=f"{title}, {study}", **look))
    for axes, label in zip(panels, TIME_PANELS.values(), strict=True):
        axes.axhline(paper, color="0.3", ls=":", lw=1)
        axes.set(xscale="log", xlabel=label)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("Validation accuracy (%)")
    panels[0].yaxis.set_major_formatter(style.per_cent)
    panels[0].xaxis.set_major_formatter(ScalarFormatter())
    panels[1].plot(RECORD_OPERATIONS, RECORD_ACCURACY, "k*", ms=8)
    panels[1].xaxis.set_major_formatter(lambda operations, _: f"{operations / 1e12:g}")
    entries += [
        Line2D([], [], color="0.3", ls=":", lw=1, label=f"the paper's accuracy ({100 * paper:.2f} %)"),
        Line2D([], [], color="k", ls="", marker="*", ms=8, label=f"record ({100 * RECORD_ACCURACY:.1f} %)"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=3)
    return figure, parts


def time_and_memory(evidence: Evidence) -> Drawn:
    """Draw seconds (top) and peak memory (bottom) of Algorithm 3 against M (left) and C (right)."""
    (dataset,) = evidence.expected
    grown = growth(evidence.frame(dataset, "benchmark.csv"))
    figure = style.new_figure(WIDTH, 4.2, evidence)
    panels = figure.subplots(2, 2, sharey="row")
    for line, (quantity, heading) in zip(panels, TIME_AND_MEMORY.items(), strict=True):
        of_quantity = grown[grown["quantity"] == quantity]
        for axes, (comparison, label) in zip(line, SIZES.items(), strict=True):
            _draw_growth(axes, of_quantity[of_quantity["comparison"] == comparison])
            axes.set_xlabel(label)
            if quantity == "seconds":
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(NullFormatter())
            else:
                axes.set_ylim(0, 1.15 * of_quantity["high"].max())
        line[0].set_ylabel(heading)
    entries = [
        Line2D([], [], color="0.2", marker="o", ms=3.5, ls="", label="measured"),
        Line2D([], [], color="0.2", lw=0.9, label="predicted from counted passes"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=2)
    return figure, [grown.assign(dataset=dataset, model="measurements")]


def growth(measured: pd.DataFrame) -> pd.DataFrame:
    """Summarise seconds and peak memory of an epoch of Algorithm 3 over M (comparison `batches`) and over C (`classes`).

    Columns: quantity, comparison, x (M or C), mean, low, high (range over repetitions), predicted (mean seconds, NaN for memory),
    n (repetitions).
    """
    parts = []
    for comparison, axis in (("batches", "M"), ("classes", "C")):
        own = by_setting(measured[measured["comparison"] == comparison])
        predicted = own[own["quantity"] == "predicted"].groupby(axis)["value"].mean()
        for quantity in TIME_AND_MEMORY:
            values = own[own["quantity"] == quantity].groupby(axis)["value"]
            part = values.agg(mean="mean", low="min", high="max", n="count")
            part = part.assign(predicted=predicted if quantity == "seconds" else float("nan"))
            part = part.rename_axis("x").reset_index()
            parts.append(part.assign(quantity=quantity, comparison=comparison))
    return pd.concat(parts)


def _draw_growth(axes: Axes, grown: pd.DataFrame) -> None:
    """Draw measured means (points), their range over repetitions (bars) and what passes predict (line)."""
    axes.plot(grown["x"], grown["predicted"], color="0.2", lw=0.9)
    axes.vlines(grown["x"], grown["low"], grown["high"], color="0.2", lw=1.2)
    axes.plot(grown["x"], grown["mean"], "o", ms=3.5, color="0.2", ls="")
    axes.set_xscale("log", base=2)
    axes.set_xticks(grown["x"], [f"{x:g}" for x in grown["x"]])
