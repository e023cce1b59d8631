"""Figure S5: cost of training against batches and classes, and accuracy of a vote by sampled references."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from replication.benchmark import analysis
from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, new_figure

COLUMNS = ["dataset", "model", "quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
VARIANTS = {
    "printed": ("#000000", "o"), "sequential": ("#D55E00", "s"), "joint": ("#0072B2", "^"), "linear": ("#009E73", "v"),
}  # fmt: skip
COSTS = {"seconds": "Seconds per epoch", "peak_memory_mb": "Peak memory (MiB)"}
SIZES = {"batches": "Batches $M$", "classes": "Classes $C$"}
RULE_COLOURS = {"printed": "#0072B2", "balanced": "#E69F00", "parzen": "#CC79A7"}


def draw(evidence: Evidence) -> Drawn:
    """Draw seconds (top) and peak memory (bottom) against M and C, and (right) what sampled references cost a vote."""
    (dataset,) = evidence.expected
    measured = evidence.frame(dataset, "benchmark.csv")
    figure = new_figure(WIDTH, 4.9, evidence)
    panels = figure.subplots(2, 3)
    curves = analysis.curves(measured)
    for line, (quantity, heading) in zip(panels, COSTS.items(), strict=True):
        for axes, (comparison, label) in zip(line, SIZES.items(), strict=False):
            _draw_costs(axes, curves[(curves["quantity"] == quantity) & (curves["comparison"] == comparison)])
            if quantity == "seconds":
                axes.set_yscale("log")
                axes.yaxis.set_minor_formatter(NullFormatter())
            else:
                axes.set_ylim(0, 1.15 * curves[curves["quantity"] == quantity]["high"].max())
            axes.set_xlabel(label)
        line[0].set_ylabel(heading)
    sampled = analysis.sampling(measured)
    _draw_votes(panels[0, 2], sampled, "error", "stated")
    panels[0, 2].set_yscale("log")
    panels[0, 2].set_ylabel("Error of the vote (no unit)")
    _draw_votes(panels[1, 2], sampled, "changed", "changed")
    panels[1, 2].set_ylabel("Decisions changed (share)")
    figure.legend(handles=_handles(sampled), loc="outside lower center", ncols=3)
    points = sampled.rename(columns={"rule": "variant", "n": "x"}).assign(comparison=_titles(sampled))
    frame = pd.concat([curves, points[["quantity", "comparison", "variant", "x", "mean"]]])
    return figure, frame.assign(dataset=dataset, model="measurements")


def _draw_costs(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw measured means (points), their range over repetitions (bars) and what passes predict (lines)."""
    for variant, (colour, marker) in VARIANTS.items():
        curve = curves[curves["variant"] == variant].sort_values("x")
        axes.plot(curve["x"], curve["predicted"], color=colour, lw=0.9)
        axes.vlines(curve["x"], curve["low"], curve["high"], color=colour, lw=1.2)
        axes.plot(curve["x"], curve["mean"], marker, ms=3.5, color=colour, ls="")
    axes.set_xscale("log", base=2)
    ticks = sorted(curves["x"].unique())
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
    axes.set_xscale("log")
    axes.set_xlabel("Sampled references")


def _handles(sampled: pd.DataFrame) -> list[Line2D]:
    """Return entries of the legend: variants, rules, and what points, lines and open points are."""
    handles = [
        Line2D([], [], color=colour, marker=marker, ms=3.5, ls="", label=analysis.VARIANT_TITLES[variant])
        for variant, (colour, marker) in VARIANTS.items()
    ]
    handles += [Line2D([], [], color=colour, lw=2.5, label=f"rule: {rule}") for rule, colour in RULE_COLOURS.items()]
    grey: dict[str, Any] = {"color": "0.3", "marker": "o", "ms": 3.5, "ls": ""}
    sets = sampled[["C", "share"]].drop_duplicates().sort_values("share", ascending=False)
    for classes, share in sets.itertuples(index=False):
        rare = share < sampled["share"].max()
        title = f"{classes:g} classes, one with a share of {share:g}" if rare else f"{classes:g} classes of equal size"
        handles.append(Line2D([], [], **grey, mfc="white" if rare else "0.3", label=title))
    return [*handles, Line2D([], [], color="0.3", lw=0.9, label="predicted, or stated by the vote")]


def _titles(sampled: pd.DataFrame) -> list[str]:
    return [
        f"sampling, {c:g} classes, share {share:g}" for c, share in zip(sampled["C"], sampled["share"], strict=True)
    ]
