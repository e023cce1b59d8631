"""Figure S3: accuracy against computation, by method and training schedule."""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, band, new_figure
from replication.report.labels import VARIANT_TITLES
from replication.report.statistics import interval, replicates

COLUMNS = ["dataset", "model", "passes", "quantity", "mean", "sd", "low", "high", "n"]
DASHES = {"sequential-all": ":", "joint-all": "--", "joint-1": "-", "single": "-."}
COLOURS = {
    "cosine": "#D55E00", "full": "#0072B2", "cross-entropy": "#009E73", "supervised-contrastive": "#CC79A7",
}  # fmt: skip

SHORT_TITLES = {"cosine": "CLaI-C", "full": "CLaI-M"}


def draw(evidence: Evidence) -> Drawn:
    """Draw validation accuracy against encoder passes (left, mean and sd) and test accuracy at the end (right, 95 % interval)."""
    (study,) = evidence.expected
    history, metrics = evidence.frame(study, "history.csv"), evidence.metrics(study)
    cells = sorted(history["model"].unique(), key=lambda cell: [list(VARIANT_TITLES).index(v) for v in cell.split("_")])
    figure = new_figure(WIDTH, 3.1, evidence)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
    rows = []
    for position, cell in enumerate(cells):
        method, schedule = cell.split("_")
        colour, dash = COLOURS[method], DASHES[schedule]
        of_cell = history[history["model"] == cell]
        curve = of_cell.groupby("passes")["validation_accuracy"].agg(["mean", "std", "count"])
        left.plot(
            curve.index, curve["mean"], color=colour, ls=dash, lw=1.3, marker="o" if len(curve) == 1 else "", ms=4
        )
        band(left, curve.index, curve["mean"], curve["std"], colour, alpha=0.12)
        rows += [
            (study, cell, p, "validation_accuracy", r["mean"], r["std"], np.nan, np.nan, int(r["count"]))
            for p, r in curve.iterrows()
        ]
        around = interval(replicates(metrics[(metrics["model"] == cell) & (metrics["metric"] == "accuracy")]))
        if around.known:
            right.plot([around.low, around.high], [position, position], color=colour, lw=1.3)
        right.plot(around.mean, position, "o", ms=4, color=colour)
        rows.append(
            (study, cell, curve.index.max(), "test_accuracy", around.mean, np.nan, around.low, around.high, around.n)
        )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    left.set_xscale("log")
    left.set_xlabel("Encoder passes over the training samples")
    left.set_ylabel("Validation accuracy")
    right.set_yticks(range(len(cells)), [_cell_title(cell) for cell in cells])
    right.invert_yaxis()
    passes = frame.loc[frame["quantity"] == "test_accuracy", "passes"].round().astype(int)
    number = f"{passes.min()}" if passes.min() == passes.max() else f"{passes.min()} to {passes.max()}"
    right.set_xlabel(f"Test accuracy after {number} passes")
    figure.legend(handles=_handles(history, cells), loc="outside lower center", ncols=4)
    return figure, frame


def _handles(history: pd.DataFrame, cells: list[str]) -> list[Line2D]:
    """Return entries of the legend: methods by colour, schedules by line or, where they have one epoch, by point."""
    methods = [name for name in COLOURS if any(cell.startswith(f"{name}_") for cell in cells)]
    handles = [Line2D([], [], color=COLOURS[name], lw=1.5, label=VARIANT_TITLES[name]) for name in methods]
    for schedule in [name for name in DASHES if any(cell.endswith(f"_{name}") for cell in cells)]:
        title = VARIANT_TITLES[schedule]
        if history[history["model"].str.endswith(f"_{schedule}")]["epoch"].max() > 1:
            handles.append(Line2D([], [], color="0.3", ls=DASHES[schedule], lw=1.3, label=title))
        else:
            handles.append(Line2D([], [], color="0.3", ls="", marker="o", ms=4, label=f"{title} (one epoch)"))
    return handles


def _cell_title(cell: str) -> str:
    """Return the name of a cell, short enough for an axis: CLaI-C, joint, one reference."""
    method, schedule = cell.split("_")
    return VARIANT_TITLES[method] if schedule == "single" else f"{SHORT_TITLES[method]}, {VARIANT_TITLES[schedule]}"
