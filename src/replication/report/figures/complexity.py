"""Supplementary figures of computation: accuracy by computation and time, time and memory of training, sampled votes."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from replication.report.evidence import Evidence, by_setting
from replication.report.figures import style
from replication.report.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, WIDTH, Drawn
from replication.report.labels import MEASURED_TITLES, MODEL_OF, VARIANT_TITLES, model_title
from replication.report.printed_values import printed_value

COMPUTATION_COLUMNS = ["dataset", "model", "quantity", "epoch", "x", "median", "low", "high", "n"]
METHOD_COLOURS = {"cosine": VERMILION, "full": BLUE, "cross-entropy": GREEN, "supervised-contrastive": PURPLE}
TIME_PANELS = {"seconds": "Seconds of training", "operations": "Floating-point operations (trillions)"}
DASHES = ("--", "-")
TIMED = {"sprint": ("full",)}
"""Cells whose published trainings had threads of their own; the seconds of others tell nothing of the method."""
# The record on the test images of CIFAR-10 (Jordan 2024, arXiv 2404.00498). Its seconds were measured on a GPU.
RECORD_ACCURACY, RECORD_OPERATIONS = 0.94, 3.6e14

GROWTH_COLUMNS = ["dataset", "model", "quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
VARIANTS = {"printed": (BLACK, "o"), "sequential": (VERMILION, "s"), "joint": (BLUE, "^"), "linear": (GREEN, "v")}
TIME_AND_MEMORY = {"seconds": "Seconds per epoch", "peak_memory_mb": "Peak memory (MiB)"}
SIZES = {"batches": "Batches $M$", "classes": "Classes $C$"}
RULE_COLOURS = {"printed": BLUE, "balanced": ORANGE, "parzen": PURPLE}


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
            by_epoch = history[history["model"] == cell].groupby("epoch")
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
    """Draw seconds (top) and peak memory (bottom) against M and C, and (right) what sampled references cost a vote."""
    (dataset,) = evidence.expected
    measured = evidence.frame(dataset, "benchmark.csv")
    grown, sampled = growth(measured), sampling(measured)
    figure = style.new_figure(WIDTH, 4.9, evidence)
    panels = figure.subplots(2, 3)
    for line, (quantity, heading) in zip(panels, TIME_AND_MEMORY.items(), strict=True):
        of_quantity = grown[grown["quantity"] == quantity]
        for axes, (comparison, label) in zip(line, SIZES.items(), strict=False):
            _draw_growth(axes, of_quantity[of_quantity["comparison"] == comparison])
            axes.set_xlabel(label)
            if quantity == "seconds":
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(NullFormatter())
            else:
                axes.set_ylim(0, 1.15 * of_quantity["high"].max())
        line[0].set_ylabel(heading)
    _draw_votes(panels[0, 2], sampled, "error", "stated")
    panels[0, 2].set(yscale="log", ylabel="Error of the vote (no unit)")
    panels[0, 2].yaxis.set_major_formatter("{x:g}")
    _draw_votes(panels[1, 2], sampled, "changed", "changed")
    panels[1, 2].set_ylabel("Decisions changed (share)")
    figure.legend(handles=_growth_handles(sampled), loc="outside lower center", ncols=3)
    sizes = zip(sampled["C"], sampled["share"], strict=True)
    titles = [f"sampling, {classes:g} classes, share {share:g}" for classes, share in sizes]
    points = sampled.rename(columns={"rule": "variant", "n": "x"}).assign(comparison=titles)
    parts = [grown, points[["quantity", "comparison", "variant", "x", "mean"]]]
    return figure, [part.assign(dataset=dataset, model="measurements") for part in parts]


def growth(measured: pd.DataFrame) -> pd.DataFrame:
    """Summarise seconds and peak memory of an epoch over M (comparison `batches`) and over C (`classes`).

    Columns: quantity, comparison, variant, x (M or C), mean, low, high (range over repetitions), predicted (mean seconds,
    NaN for memory), n (repetitions).
    """
    parts = []
    for comparison, axis in (("batches", "M"), ("classes", "C")):
        own = by_setting(measured[measured["comparison"] == comparison])
        predicted = own[own["quantity"] == "predicted"].groupby(["variant", axis])["value"].mean()
        for quantity in TIME_AND_MEMORY:
            values = own[own["quantity"] == quantity].groupby(["variant", axis], sort=False)["value"]
            part = values.agg(mean="mean", low="min", high="max", n="count")
            part = part.assign(predicted=predicted if quantity == "seconds" else float("nan")).reset_index()
            parts.append(part.rename(columns={axis: "x"}).assign(quantity=quantity, comparison=comparison))
    return pd.concat(parts)


def sampling(frame: pd.DataFrame) -> pd.DataFrame:
    """Average the quantities of votes of sampled references over samples of references.

    Columns: rule, C, share, n (number of references), quantity, mean.
    """
    part = by_setting(frame[frame["comparison"] == "sampling"])
    grouped = part.groupby(["variant", "C", "share", "n", "quantity"], sort=False)["value"].mean()
    return grouped.rename("mean").reset_index().rename(columns={"variant": "rule"})


def _draw_growth(axes: Axes, grown: pd.DataFrame) -> None:
    """Draw measured means (points), their range over repetitions (bars) and what passes predict (lines)."""
    for variant, (colour, marker) in VARIANTS.items():
        curve = grown[grown["variant"] == variant].sort_values("x")
        axes.plot(curve["x"], curve["predicted"], color=colour, lw=0.9)
        axes.vlines(curve["x"], curve["low"], curve["high"], color=colour, lw=1.2)
        axes.plot(curve["x"], curve["mean"], marker, ms=3.5, color=colour, ls="")
    axes.set_xscale("log", base=2)
    ticks = sorted(grown["x"].unique())
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])


def _draw_votes(axes: Axes, sampled: pd.DataFrame, of_points: str, of_lines: str) -> None:
    """Draw one quantity as points, open where a class is rare, and one as lines, against the number of references."""
    positive = sampled[sampled["mean"] > 0]
    for (rule, share), part in positive.groupby(["rule", "share"], sort=False):
        colour = RULE_COLOURS[str(rule)]
        points, line = part[part["quantity"] == of_points], part[part["quantity"] == of_lines]
        rare = share < sampled["share"].max()
        axes.plot(points["n"], points["mean"], "o", ms=3.5, color=colour, mfc="white" if rare else None)
        axes.plot(line["n"], line["mean"], color=colour, lw=0.9 if of_lines != of_points else 0.5)
    axes.set(xscale="log", xlabel="Sampled references")
    axes.xaxis.set_major_formatter("{x:g}")


def _growth_handles(sampled: pd.DataFrame) -> list[Line2D]:
    """Return entries of the legend: variants, rules, and what points, lines and open points are."""
    entries = [
        Line2D([], [], color=colour, marker=marker, ms=3.5, ls="", label=MEASURED_TITLES[variant])
        for variant, (colour, marker) in VARIANTS.items()
    ]
    entries += [Line2D([], [], color=colour, lw=2.5, label=f"rule: {rule}") for rule, colour in RULE_COLOURS.items()]
    sets = sampled[["C", "share"]].drop_duplicates().sort_values("share", ascending=False)
    for classes, share in sets.itertuples(index=False):
        rare = share < sampled["share"].max()
        title = f"{classes:g} classes, one with a share of {share:g}" if rare else f"{classes:g} classes of equal size"
        entries.append(
            Line2D([], [], color="0.3", marker="o", ms=3.5, ls="", mfc="white" if rare else "0.3", label=title)
        )
    return [*entries, Line2D([], [], color="0.3", lw=0.9, label="predicted, or stated by the vote")]
