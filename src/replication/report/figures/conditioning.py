"""Figure 1: multiclass conditioning in stages, drawn from real embeddings."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from replication.report.evidence import Evidence
from replication.report.figures.parts import (
    EMBEDDING_MODEL,
    GREY,
    WIDTH,
    Drawn,
    class_colour,
    frame_only,
    new_figure,
    write_reason,
)
from replication.report.labels import CLASS_LABELS

COLUMNS = ["dataset", "stage", "x", "y", "label", "status", "model"]
# Marker, size and opacity of a sample, by what the stage k knows of its class.
STATUSES = {"unknown": (".", 12, 0.5), "conditioned": ("x", 9, 0.45), "current": ("+", 20, 0.95)}
STATUS_TITLES = {
    "unknown": "class not yet conditioned",
    "current": "class $k$ of the panel",
    "conditioned": "class before $k$",
}


def draw(evidence: Evidence) -> Drawn:
    """Draw 2-D views of test samples before training and of phi(., k) for k = 1, 2, 3 and C.

    In the panel of k, class k and, paler, the classes before it have their colours; all others are grey.
    """
    (dataset,) = evidence.expected
    frame = evidence.frame(dataset, "stages.csv.gz")
    figure = new_figure(WIDTH, 2.3, evidence)
    figure.set_layout_engine("constrained", rect=(0, 0.17, 1, 0.83))  # two legends stand below
    if frame.empty:
        write_reason(figure.subplots(), "no stages in the evidence")
        return figure, pd.DataFrame(columns=COLUMNS)
    last = int(frame["stage"].max())
    shown = sorted({0, 1, 2, 3, last} & set(frame["stage"]))
    panels = list(np.atleast_1d(figure.subplots(1, len(shown), gridspec_kw={"wspace": 0.22})))
    parts = []
    for axes, stage in zip(panels, shown, strict=True):
        view = frame[frame["stage"] == stage].copy()
        view["status"] = np.select(
            [view["label"] == stage - 1, view["label"] < stage - 1], ["current", "conditioned"], "unknown"
        )
        for status, (marker, size, alpha) in STATUSES.items():
            points = view[view["status"] == status]
            colours = [GREY if status == "unknown" else class_colour(label) for label in points["label"]]
            axes.scatter(points["x"], points["y"], s=size, c=colours, marker=marker, alpha=alpha, linewidths=0.7,
                         rasterized=True)  # fmt: skip
        frame_only(axes)
        axes.set_box_aspect(1)
        axes.margins(0.08)
        axes.set_xlabel("before conditioning" if stage == 0 else f"$k={stage}$" + (" $=C$" if stage == last else ""))
        parts.append(view)
    labels = CLASS_LABELS[dataset]
    squares = [
        Line2D([], [], ls="", marker="s", ms=4.5, color=class_colour(label), label=f"{label + 1} {labels[label]}")
        for label in range(len(labels))
    ]
    figure.legend(handles=squares, loc="lower center", ncols=len(squares), handletextpad=0, columnspacing=0.6)
    glyphs = [
        Line2D([], [], ls="", marker=STATUSES[status][0], mew=1.1, color=GREY if status == "unknown" else "0.2",
               alpha=1 if status != "conditioned" else 0.6, label=title)
        for status, title in STATUS_TITLES.items()
    ]  # fmt: skip
    figure.legend(handles=glyphs, loc="lower center", bbox_to_anchor=(0.5, 0.09), ncols=len(glyphs), handletextpad=0.1)
    _arrows(figure, panels, shown)
    return figure, pd.concat(parts).assign(dataset=dataset, model=EMBEDDING_MODEL)


def _arrows(figure: Figure, panels: Sequence[Axes], stages: Sequence[int]) -> None:
    """Draw an arrow labelled phi(., k) into every panel after the first; dotted where stages are left out."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for before, after, previous, stage in zip(panels, panels[1:], stages, stages[1:], strict=False):
        left, right = before.get_position(), after.get_position()
        start, end, height = left.x1 + 0.003, right.x0 - 0.003, (left.y0 + left.y1) / 2
        line = ":" if stage > previous + 1 else "-"
        figure.add_artist(
            FancyArrowPatch(
                (start, height), (end, height), arrowstyle="->", mutation_scale=8, lw=1, ls=line, color="0.2",
                shrinkA=0, shrinkB=0, transform=figure.transFigure,
            )
        )  # fmt: skip
        label = rf"$\phi(\cdot,{stage if stage != max(stages) else 'C'})$"
        figure.text((start + end) / 2, left.y1 + 0.02, label, ha="center", va="bottom", fontsize=8)
