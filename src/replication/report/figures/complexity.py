"""Supplementary figures of computation: accuracy by computation and time, cost of training and of a vote."""

import math
from collections.abc import Iterable
from itertools import cycle
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter, ScalarFormatter

from replication.report.evidence import Evidence, by_setting
from replication.report.figures.style import (
    BLACK,
    BLUE,
    DASHES,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    WIDTH,
    Drawn,
    Style,
    curves,
    mean_sd,
    new_figure,
    points,
    write_reason,
)
from replication.report.labels import MEASURED_TITLES, VARIANT_TITLES
from replication.report.printed_values import printed_value
from replication.report.statistics import interval, replicates

COMPUTATION_COLUMNS = ["dataset", "model", "quantity", "epoch", "x", "mean", "sd", "median", "low", "high", "n"]
SCHEDULE_DASHES = {"sequential-all": ":", "joint-all": "--", "joint-1": "-", "single": "-."}
METHOD_COLOURS = {"cosine": VERMILION, "full": BLUE, "cross-entropy": GREEN, "supervised-contrastive": PURPLE}
METHOD_TITLES = {"cosine": "CLaI-C", "full": "CLaI-M"}
TIME_PANELS = {"seconds": "Seconds of training", "operations": "Floating-point operations"}
# The record of CIFAR-10, on test images: Jordan (2024, arXiv 2404.00498). Its seconds are those of a GPU.
RECORD_ACCURACY, RECORD_OPERATIONS = 0.94, 3.6e14
NOT_KEPT = "found no times and operations in this evidence: run the study again"

COST_COLUMNS = ["dataset", "model", "quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
VARIANTS = {"printed": (BLACK, "o"), "sequential": (VERMILION, "s"), "joint": (BLUE, "^"), "linear": (GREEN, "v")}
COSTS = {"seconds": "Seconds per epoch", "peak_memory_mb": "Peak memory (MiB)"}
SIZES = {"batches": "Batches $M$", "classes": "Classes $C$"}
RULE_COLOURS = {"printed": BLUE, "balanced": ORANGE, "parzen": PURPLE}


def computation(evidence: Evidence, printed: pd.DataFrame) -> Drawn:
    """Draw accuracy by encoder passes for each schedule (top), and by seconds and operations for each method (bottom).

    Args:
        evidence: of two studies, of schedules and of methods.
        printed: the values that the paper prints.
    """
    figure = new_figure(WIDTH, 6.6, evidence)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[3.1, 3.4])[:, 0]
    by_schedule, by_time = evidence.expected
    paper = printed_value(printed, "table1", "cifar10", "accuracy")[0] / 100
    parts = []
    if evidence.has(by_schedule):
        parts.append(_draw_schedules(top, evidence, by_schedule))
    else:
        write_reason(top.subplots(), evidence.not_run(by_schedule))
    if evidence.has(by_time):
        parts.append(_draw_times(bottom, evidence, by_time, paper))
    else:
        write_reason(bottom.subplots(), evidence.not_run(by_time))
    return figure, pd.concat(parts).reindex(columns=COMPUTATION_COLUMNS)


def _methods(evidence: Evidence, study: str, cells: Iterable[str]) -> dict[str, str]:
    """Return the method or kernel of each of these cells of a study, in the order of the settings."""
    variants = evidence.expected[study]["cells"]
    return {
        cell: of_cell.get("method", of_cell.get("kernel")) for cell, of_cell in variants.items() if cell in set(cells)
    }


def _draw_schedules(figure: SubFigure, evidence: Evidence, study: str) -> pd.DataFrame:
    """Draw validation accuracy by encoder passes (left, mean and sd), and test accuracy at the end (right, interval)."""
    history, metrics = evidence.frame(study, "history.csv"), evidence.metrics(study)
    methods = _methods(evidence, study, history["model"])
    schedules = {cell: evidence.expected[study]["cells"][cell]["schedule"] for cell in methods}
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
    accuracy = metrics[metrics["metric"] == "accuracy"]
    colours = {cell: METHOD_COLOURS[method] for cell, method in methods.items()}
    styles = {cell: Style(colours[cell], SCHEDULE_DASHES[schedules[cell]]) for cell in methods}
    curves(left, history, "passes", "validation_accuracy", styles, err_kws={"alpha": 0.12, "lw": 0})
    points(right, accuracy, y="model", hue="model", order=list(methods), hue_order=list(methods), palette=colours, markersize=4,
           linewidth=1.3)  # fmt: skip
    parts = []
    for cell in methods:
        curve = mean_sd(history[history["model"] == cell], ["passes"], "validation_accuracy").rename(
            columns={"passes": "x"}
        )
        if len(curve) == 1:
            left.plot(curve["x"], curve["mean"], "o", ms=4, color=colours[cell])
        around = interval(replicates(accuracy[accuracy["model"] == cell]))
        end = {"x": curve["x"].max(), "mean": around.mean, "low": around.low, "high": around.high, "n": around.n}
        parts += [curve.assign(model=cell, quantity="validation_accuracy"),
                  pd.DataFrame([end | {"model": cell, "quantity": "test_accuracy"}])]  # fmt: skip
    frame = pd.concat(parts).assign(dataset=study)
    left.set(xscale="log", xlabel="Encoder passes over the training samples", ylabel="Validation accuracy")
    titles = [
        VARIANT_TITLES[method] if schedules[cell] == "single"
        else f"{METHOD_TITLES[method]}, {VARIANT_TITLES[schedules[cell]]}"
        for cell, method in methods.items()
    ]  # fmt: skip
    right.set_yticks(range(len(methods)), titles)
    passes = frame.loc[frame["quantity"] == "test_accuracy", "x"].round().astype(int)
    number = f"{passes.min()}" if passes.min() == passes.max() else f"{passes.min()} to {passes.max()}"
    right.set(xlabel=f"Test accuracy after {number} passes", ylabel="")
    entries = [
        Line2D([], [], color=METHOD_COLOURS[name], lw=1.5, label=VARIANT_TITLES[name]) for name in METHOD_COLOURS
    ]
    for schedule in [name for name in SCHEDULE_DASHES if name in schedules.values()]:
        once = bool(history[history["model"].map(schedules) == schedule]["epoch"].max() == 1)
        line: dict[str, Any] = (
            {"ls": "", "marker": "o", "ms": 4} if once else {"ls": SCHEDULE_DASHES[schedule], "lw": 1.3}
        )
        entries.append(Line2D([], [], color="0.3", label=VARIANT_TITLES[schedule] + " (one epoch)" * once, **line))
    figure.legend(handles=entries, loc="outside lower center", ncols=4)
    return frame


def _draw_times(figure: SubFigure, evidence: Evidence, study: str, paper: float) -> pd.DataFrame:
    """Draw validation accuracy against seconds (left) and operations (right): median and range over the seeds.

    Lines mark the paper's accuracy and the record, which is a point among operations.
    """
    history = evidence.frame(study, "history.csv").reindex(
        columns=["model", "epoch", "validation_accuracy", *TIME_PANELS]
    )
    panels = figure.subplots(1, 2, sharey=True)
    styles = _method_styles(evidence, study, history["model"])
    how = {"median": "median", "low": "min", "high": "max", "n": "count"}
    accuracy = {name: ("validation_accuracy", function) for name, function in how.items()}
    parts = [pd.DataFrame(columns=COMPUTATION_COLUMNS)]
    for axes, (quantity, label) in zip(panels, TIME_PANELS.items(), strict=True):
        kept = history.dropna(subset=quantity)
        if kept.empty:
            write_reason(axes, NOT_KEPT)
            continue
        for cell, (colour, dash, _) in styles.items():
            curve = kept[kept["model"] == cell].groupby("epoch").agg(x=(quantity, "median"), **accuracy).reset_index()
            sns.lineplot(curve, x="x", y="median", color=colour, linestyle=dash, lw=1.3, ax=axes)
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=colour, alpha=0.2, lw=0)
            parts.append(curve.assign(dataset=study, model=cell, quantity=quantity))
        axes.axhline(paper, color="0.3", ls=":", lw=1)
        if quantity == "operations":
            axes.plot(RECORD_OPERATIONS, RECORD_ACCURACY, "k*", ms=8)
        else:
            axes.axhline(RECORD_ACCURACY, color="k", ls=":", lw=0.6)
        axes.set(xscale="log", xlabel=label, ylabel="Validation accuracy")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        powers = LogFormatterSciNotation(minor_thresholds=(math.inf, math.inf))
        axes.xaxis.set_major_formatter(powers if quantity == "operations" else ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    entries = [Line2D([], [], color=colour, ls=dash, lw=1.5, label=title) for colour, dash, title in styles.values()]
    entries += [
        Line2D([], [], color="0.3", ls=":", lw=1, label=f"the paper's accuracy ({100 * paper:.2f} %)"),
        Line2D([], [], color="k", ls="", marker="*", ms=8, label=f"record ({100 * RECORD_ACCURACY:.1f} %)"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=3)
    return pd.concat(parts)


def _method_styles(evidence: Evidence, study: str, cells: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Return colour, line style and title of each cell, by method; cells of one method differ in their lines."""
    methods = _methods(evidence, study, cells)
    dashes = {method: cycle(DASHES) for method in methods.values()}
    styles = {}
    for cell in sorted(methods, key=lambda cell: list(METHOD_COLOURS).index(methods[cell])):
        method = methods[cell]
        alone = list(methods.values()).count(method) == 1
        title = METHOD_TITLES.get(method, VARIANT_TITLES[method]) if alone else evidence.model_title(study, cell)
        styles[cell] = (METHOD_COLOURS[method], next(dashes[method]), title)
    return styles


def cost(evidence: Evidence) -> Drawn:
    """Draw seconds (top) and peak memory (bottom) against M and C, and (right) what sampled references cost a vote."""
    (dataset,) = evidence.expected
    measured = evidence.frame(dataset, "benchmark.csv")
    figure = new_figure(WIDTH, 4.9, evidence)
    panels = figure.subplots(2, 3)
    costs, sampled = growth(measured), sampling(measured)
    for line, (quantity, heading) in zip(panels, COSTS.items(), strict=True):
        of_quantity = costs[costs["quantity"] == quantity]
        for axes, (comparison, label) in zip(line, SIZES.items(), strict=False):
            _draw_costs(axes, of_quantity[of_quantity["comparison"] == comparison])
            axes.set(xlabel=label, ylabel=heading if comparison == "batches" else "")
            if quantity == "seconds":
                axes.set_yscale("log")
                axes.yaxis.set_minor_formatter(NullFormatter())
            else:
                axes.set_ylim(0, 1.15 * of_quantity["high"].max())
    _draw_votes(panels[0, 2], sampled, "error", "stated")
    panels[0, 2].set(yscale="log", ylabel="Error of the vote (no unit)")
    _draw_votes(panels[1, 2], sampled, "changed", "changed")
    panels[1, 2].set_ylabel("Decisions changed (share)")
    figure.legend(handles=_cost_handles(sampled), loc="outside lower center", ncols=3)
    sizes = zip(sampled["C"], sampled["share"], strict=True)
    titles = [f"sampling, {classes:g} classes, share {share:g}" for classes, share in sizes]
    points = sampled.rename(columns={"rule": "variant", "n": "x"}).assign(comparison=titles)
    frame = pd.concat([costs, points[["quantity", "comparison", "variant", "x", "mean"]]])
    return figure, frame.assign(dataset=dataset, model="measurements")


def growth(measured: pd.DataFrame) -> pd.DataFrame:
    """Summarise seconds and peak memory of an epoch over M (comparison `batches`) and over C (`classes`).

    Columns: quantity, comparison, variant, x (M or C), mean, low, high (range over repetitions), predicted (mean seconds,
    NaN for memory), n (repetitions).
    """
    parts = []
    for comparison, axis in (("batches", "M"), ("classes", "C")):
        own = by_setting(measured[measured["comparison"] == comparison])
        predicted = own[own["quantity"] == "predicted"].groupby(["variant", axis])["value"].mean()
        for quantity in COSTS:
            values = own[own["quantity"] == quantity].groupby(["variant", axis], sort=False)["value"]
            part = values.agg(mean="mean", low="min", high="max", n="count")
            part = part.assign(predicted=predicted if quantity == "seconds" else float("nan")).reset_index()
            parts.append(part.rename(columns={axis: "x"}).assign(quantity=quantity, comparison=comparison))
    return pd.concat(parts).reindex(columns=COST_COLUMNS[2:])


def sampling(frame: pd.DataFrame) -> pd.DataFrame:
    """Average the quantities of votes of sampled references over samples of references.

    Columns: rule, C, share, n (number of references), quantity, mean.
    """
    part = by_setting(frame[frame["comparison"] == "sampling"])
    if part.empty:
        return pd.DataFrame(columns=["rule", "C", "share", "n", "quantity", "mean"])
    grouped = part.groupby(["variant", "C", "share", "n", "quantity"], sort=False)["value"].mean()
    return grouped.rename("mean").reset_index().rename(columns={"variant": "rule"})


def _draw_costs(axes: Axes, costs: pd.DataFrame) -> None:
    """Draw measured means (points), their range over repetitions (bars) and what passes predict (lines)."""
    for variant, (colour, marker) in VARIANTS.items():
        curve = costs[costs["variant"] == variant].sort_values("x")
        axes.plot(curve["x"], curve["predicted"], color=colour, lw=0.9)
        axes.vlines(curve["x"], curve["low"], curve["high"], color=colour, lw=1.2)
        axes.plot(curve["x"], curve["mean"], marker, ms=3.5, color=colour, ls="")
    axes.set_xscale("log", base=2)
    ticks = sorted(costs["x"].unique())
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


def _cost_handles(sampled: pd.DataFrame) -> list[Line2D]:
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
