"""Figures S3, S5 and S6: accuracy by computation, cost of training and of a vote, accuracy by time."""

import math
from collections.abc import Sequence
from itertools import cycle

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter, ScalarFormatter

from replication.report.evidence import Evidence, by_setting
from replication.report.figures.style import (
    BLACK,
    BLUE,
    DASHES,
    GREEN,
    GREY,
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
    together,
    write_reason,
)
from replication.report.labels import MEASURED_TITLES, VARIANT_TITLES, model_title
from replication.report.printed_values import printed_value
from replication.report.statistics import interval, replicates

SCHEDULE_COLUMNS = ["dataset", "model", "passes", "quantity", "mean", "sd", "low", "high", "n"]
SCHEDULE_DASHES = {"sequential-all": ":", "joint-all": "--", "joint-1": "-", "single": "-."}
METHOD_COLOURS = {"cosine": VERMILION, "full": BLUE, "cross-entropy": GREEN, "supervised-contrastive": PURPLE}
METHOD_TITLES = {"cosine": "CLaI-C", "full": "CLaI-M"}

COST_COLUMNS = ["dataset", "model", "quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
VARIANTS = {"printed": (BLACK, "o"), "sequential": (VERMILION, "s"), "joint": (BLUE, "^"), "linear": (GREEN, "v")}
COSTS = {"seconds": "Seconds per epoch", "peak_memory_mb": "Peak memory (MiB)"}
SIZES = {"batches": "Batches $M$", "classes": "Classes $C$"}
RULE_COLOURS = {"printed": BLUE, "balanced": ORANGE, "parzen": PURPLE}

TIME_COLUMNS = ["dataset", "model", "quantity", "epoch", "x", "median", "low", "high", "n"]
TIME_PANELS = {"seconds": "Seconds of training", "operations": "Floating-point operations"}
# The record of CIFAR-10, on test images: Jordan (2024, arXiv 2404.00498). Its seconds are those of a GPU.
RECORD_ACCURACY, RECORD_OPERATIONS = 0.94, 3.6e14
NOT_KEPT = "found no times and operations in this evidence: run the study again"


def schedules(evidence: Evidence) -> Drawn:
    """Draw figure S3: validation accuracy by encoder passes (left, mean and sd), test accuracy at the end (right, interval)."""
    (study,) = evidence.expected
    history, metrics = evidence.frame(study, "history.csv"), evidence.metrics(study)
    cells = sorted(history["model"].unique(), key=lambda cell: [list(VARIANT_TITLES).index(v) for v in cell.split("_")])
    figure = new_figure(WIDTH, 3.1, evidence)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
    accuracy = metrics[metrics["metric"] == "accuracy"]
    colours = {cell: METHOD_COLOURS[cell.split("_")[0]] for cell in cells}
    styles = {cell: Style(colours[cell], SCHEDULE_DASHES[cell.split("_")[1]]) for cell in cells}
    curves(left, history, "passes", "validation_accuracy", styles, err_kws={"alpha": 0.12, "lw": 0})
    points(right, accuracy, y="model", hue="model", order=cells, hue_order=cells, palette=colours, markersize=4,
            linewidth=1.3)  # fmt: skip
    parts = []
    for cell in cells:
        curve = mean_sd(history[history["model"] == cell], ["passes"], "validation_accuracy")
        if len(curve) == 1:
            left.plot(curve["passes"], curve["mean"], "o", ms=4, color=colours[cell])
        around = interval(replicates(accuracy[accuracy["model"] == cell]))
        end = {
            "passes": curve["passes"].max(),
            "mean": around.mean,
            "low": around.low,
            "high": around.high,
            "n": around.n,
        }
        parts += [
            curve.assign(model=cell, quantity="validation_accuracy"),
            pd.DataFrame([end | {"model": cell, "quantity": "test_accuracy"}]),
        ]
    frame = pd.concat(parts).assign(dataset=study).reindex(columns=SCHEDULE_COLUMNS)
    left.set(xscale="log", xlabel="Encoder passes over the training samples", ylabel="Validation accuracy")
    right.set_yticks(range(len(cells)), [_cell_title(cell) for cell in cells])
    passes = frame.loc[frame["quantity"] == "test_accuracy", "passes"].round().astype(int)
    number = f"{passes.min()}" if passes.min() == passes.max() else f"{passes.min()} to {passes.max()}"
    right.set(xlabel=f"Test accuracy after {number} passes", ylabel="")
    figure.legend(handles=_schedule_handles(history, cells), loc="outside lower center", ncols=4)
    return figure, frame


def _schedule_handles(history: pd.DataFrame, cells: Sequence[str]) -> list[Line2D]:
    """Return entries of the legend: methods by colour, schedules by line or, where they have one epoch, by point."""
    methods = [name for name in METHOD_COLOURS if any(cell.startswith(f"{name}_") for cell in cells)]
    entries = [Line2D([], [], color=METHOD_COLOURS[name], lw=1.5, label=VARIANT_TITLES[name]) for name in methods]
    for schedule in [name for name in SCHEDULE_DASHES if any(cell.endswith(f"_{name}") for cell in cells)]:
        title = VARIANT_TITLES[schedule]
        if history[history["model"].str.endswith(f"_{schedule}")]["epoch"].max() > 1:
            entries.append(Line2D([], [], color="0.3", ls=SCHEDULE_DASHES[schedule], lw=1.3, label=title))
        else:
            entries.append(Line2D([], [], color="0.3", ls="", marker="o", ms=4, label=f"{title} (one epoch)"))
    return entries


def _cell_title(cell: str) -> str:
    """Return the name of a cell, short enough for an axis: CLaI-C, joint, one reference."""
    method, schedule = cell.split("_")
    return VARIANT_TITLES[method] if schedule == "single" else f"{METHOD_TITLES[method]}, {VARIANT_TITLES[schedule]}"


def cost(evidence: Evidence) -> Drawn:
    """Draw figure S5: seconds (top) and peak memory (bottom) against M and C, and (right) what sampled references cost a vote."""
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


def time_to_result(evidence: Evidence, printed: pd.DataFrame) -> Drawn:
    """Draw figure S6: validation accuracy against seconds (left) and operations (right), median and range over the seeds.

    Args:
        printed: the values that the paper prints.
    """
    (study,) = evidence.expected
    columns = ["model", "epoch", "validation_accuracy", *TIME_PANELS]
    history = evidence.frame(study, "history.csv").reindex(columns=columns)
    figure = new_figure(WIDTH, 3.4, evidence)
    panels = figure.subplots(1, 2, sharey=True)
    paper = printed_value(printed, "table1", "cifar10", "accuracy")[0] / 100
    styles = _method_styles(list(history["model"].unique()))
    parts = []
    for axes, (quantity, label) in zip(panels, TIME_PANELS.items(), strict=True):
        kept = history.dropna(subset=quantity)
        if kept.empty:
            write_reason(axes, NOT_KEPT)
            continue
        accuracy = ("validation_accuracy", "median"), ("validation_accuracy", "min"), ("validation_accuracy", "max")
        named = dict(zip(("median", "low", "high"), accuracy, strict=True)) | {"n": ("validation_accuracy", "count")}
        for cell, (colour, dash, _) in styles.items():
            curve = kept[kept["model"] == cell].groupby("epoch").agg(x=(quantity, "median"), **named).reset_index()
            sns.lineplot(curve, x="x", y="median", color=colour, linestyle=dash, lw=1.3, ax=axes)
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=colour, alpha=0.2, lw=0)
            parts.append(curve.assign(dataset=study, model=cell, quantity=quantity))
        _mark(axes, quantity, paper)
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
    if parts:
        figure.legend(handles=entries, loc="outside lower center", ncols=3)
    return figure, together(parts, TIME_COLUMNS)


def _mark(axes: Axes, quantity: str, paper: float) -> None:
    """Draw the paper's accuracy as a line, and the record: a point among operations, an accuracy alone among seconds."""
    axes.axhline(paper, color="0.3", ls=":", lw=1)
    if quantity == "operations":
        axes.plot(RECORD_OPERATIONS, RECORD_ACCURACY, "k*", ms=8)
    else:
        axes.axhline(RECORD_ACCURACY, color="k", ls=":", lw=0.6)


def _method_styles(cells: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Return colour, line style and title of each cell, in the order of methods; cells of one method differ in their lines."""
    methods = {cell: next((part for part in cell.split("_") if part in METHOD_COLOURS), "") for cell in cells}
    ordered = sorted(cells, key=lambda cell: ([*METHOD_COLOURS, ""].index(methods[cell]), cell))
    dashes = {method: cycle(DASHES) for method in methods.values()}
    styles = {}
    for cell in ordered:
        method = methods[cell]
        alone = method and list(methods.values()).count(method) == 1
        title = METHOD_TITLES.get(method, VARIANT_TITLES.get(method, method)) if alone else model_title(cell)
        styles[cell] = (METHOD_COLOURS.get(method, GREY), next(dashes[method]), title)
    return styles
