"""Pieces that figures share: style, empty panels, colours, legends. Sizes are in inches, text is at least 7 pt."""

import logging
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.labels import CLASS_COLOURS, model_title
from replication.report.tables.layout import in_order
from replication.runs.models import MODELS, Model

# PDF fonts are subset at every save, and each step would be reported.
logging.getLogger("fontTools").setLevel(logging.WARNING)

STYLE: Any = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "0.9", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
    "pdf.fonttype": 42, "svg.hashsalt": "clai", "savefig.dpi": 200, "figure.dpi": 100,
}  # fmt: skip
WIDTH = 7.2
"""Width of a figure as wide as the line."""

GREY = "#a0a0a0"
UNREGISTERED = Model("", (), GREY, "train_model")

# The paper draws one embedding per dataset and does not name its model; its Mahalanobis form is the proposed one.
EMBEDDING_MODEL = "clai-m"

Drawn = tuple[Figure, pd.DataFrame]


def new_figure(width: float, height: float, evidence: Evidence) -> Figure:
    """Return an empty figure, with a mark if its data is synthetic."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if evidence.miniature:
        figure.suptitle("miniature synthetic data", fontsize=9, fontweight="bold", color="#B00020")
    return figure


def not_run(evidence: Evidence) -> Figure:
    """Return a figure that says what its datasets need."""
    figure = new_figure(4.8, 2.4, evidence)
    write_reason(figure.subplots(), "; ".join(evidence.not_run(key) for key in evidence.expected))
    return figure


def write_reason(axes: Axes, text: str) -> None:
    """Write into an empty panel why it is empty."""
    frame_only(axes)
    wrapped = "\n".join(textwrap.wrap(text, 30))
    axes.text(0.5, 0.5, wrapped, ha="center", va="center", transform=axes.transAxes, fontsize=8, color="0.35")


def frame_only(axes: Axes) -> None:
    """Take ticks and grid away and draw a pale frame, for panels whose axes have no meaning."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("0.8")


def short_title(evidence: Evidence, dataset: str) -> str:
    """Return a dataset's title without the mark of synthetic data, which the figure has already."""
    return evidence.title(dataset).replace(" (miniature synthetic)", "")


def class_colour(label: int) -> str:
    """Return the paper's colour of a class index; colours come round again where there are more classes."""
    return CLASS_COLOURS[int(label) % len(CLASS_COLOURS)]


def style_of(model: str) -> Model:
    """Return a model's entry in the registry; a grey one for a model without."""
    return MODELS.get(model, UNREGISTERED)


def model_handles(models: Iterable[str]) -> list[Line2D]:
    """Return entries of a legend, one a model, in the order of tables."""
    return [
        Line2D(
            [], [], color=style_of(model).colour, ls=style_of(model).dash, marker="o", ms=2.5, label=model_title(model)
        )
        for model in in_order(models)
    ]


def band(axes: Axes, x: Any, mean: Any, sd: Any, colour: str, alpha: float = 0.2) -> None:
    """Shade one standard deviation on either side of a curve."""
    axes.fill_between(
        x, np.asarray(mean) - np.asarray(sd), np.asarray(mean) + np.asarray(sd), color=colour, alpha=alpha, lw=0
    )
