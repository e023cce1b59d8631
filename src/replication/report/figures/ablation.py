"""Figure S2: kernels against targets, by decision rule."""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, new_figure
from replication.report.labels import RULES, VARIANT_TITLES
from replication.report.statistics import interval, replicates

COLUMNS = ["dataset", "model", "rule", "metric", "mean", "low", "high", "n"]
TARGET_COLOURS = {"zero": "#0072B2", "product": "#D55E00", "masked": "#009E73"}
METRICS = {"accuracy": "Accuracy", "ece_scaled": "ECE after temperature scaling"}


def draw(evidence: Evidence) -> Drawn:
    """Draw the mean over seeds of each kernel and target with its 95 % interval, a column a decision rule."""
    (study,) = evidence.expected
    metrics = evidence.frame(study, "metrics.csv")
    variants = [cell.split("_") for cell in metrics["model"].unique()]
    kernels = [name for name in VARIANT_TITLES if name in {kernel for kernel, _ in variants}]
    targets = [name for name in TARGET_COLOURS if name in {target for _, target in variants}]
    figure = new_figure(WIDTH, 4.4, evidence)
    panels = figure.subplots(len(METRICS), len(RULES), sharey="row", sharex=True)
    rows = []
    for line, (metric, heading) in zip(panels, METRICS.items(), strict=True):
        for axes, rule in zip(line, RULES, strict=True):
            for shift, target in enumerate(targets):
                for position, kernel in enumerate(kernels):
                    cell = f"{kernel}_{target}"
                    of_cell = (metrics["model"] == cell) & (metrics["rule"] == rule) & (metrics["metric"] == metric)
                    around = interval(replicates(metrics[of_cell]))
                    x = position + 0.22 * (shift - (len(targets) - 1) / 2)
                    if around.known:
                        axes.plot([x, x], [around.low, around.high], color=TARGET_COLOURS[target], lw=1.1)
                    axes.plot(x, around.mean, "o", ms=3.2, color=TARGET_COLOURS[target])
                    rows.append((study, cell, rule, metric, around.mean, around.low, around.high, around.n))
            axes.set_xticks(range(len(kernels)), kernels, rotation=45, ha="right", rotation_mode="anchor")
            axes.set_xlim(-0.5, len(kernels) - 0.5)
            axes.grid(axis="x", visible=False)
        line[0].set_ylabel(heading)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    # A t-interval of three seeds can pass below 0, which no error does.
    errors = frame.loc[frame["metric"] == "ece_scaled", ["mean", "high"]].to_numpy(dtype=float)
    panels[1, 0].set_ylim(0, 1.08 * np.nanmax(errors))
    for axes, rule in zip(panels[0], RULES, strict=True):
        axes.set_title(f"rule: {rule}")
    for axes in panels[-1]:
        axes.set_xlabel("Kernel")
    handles = [
        Line2D([], [], marker="o", ms=3.2, lw=1.1, color=TARGET_COLOURS[t], label=f"target {t}") for t in targets
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure, frame
