"""What figures share: the theme, the palette, empty panels and curves. Sizes are in inches, text is at least 7 pt."""

import logging
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.labels import CLASS_COLOURS, MODEL_OF, model_title, models_in_order
from replication.runs.registry import MODELS, Entry

# PDF fonts are subset at every save, and each step would be reported.
logging.getLogger("fontTools").setLevel(logging.WARNING)

THEME: Any = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.sans-serif": ["DejaVu Sans"],
    **dict.fromkeys(("font.size", "axes.labelsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.8),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 3.5),
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}
WIDTH = 7.2
"""Width of a figure as wide as the line."""

# The colours of Okabe and Ito, which models have as well.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
DASHES = {"-": "", "--": (3.7, 1.6), "-.": (6.4, 1.6, 1, 1.6), ":": (1, 1.65)}
"""Line styles of matplotlib as seaborn names them."""


Drawn = tuple[Figure, list[pd.DataFrame]]
"""A figure, and the parts of the frame with what it shows."""


def new_figure(width: float, height: float, evidence: Evidence) -> Figure:
    """Return an empty figure, with a mark if its data is synthetic."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if evidence.miniature:
        figure.suptitle("miniature synthetic data", fontsize=9, fontweight="bold", color="#B00020")
    return figure


def without_data(evidence: Evidence, reason: str) -> Drawn:
    """Return a figure that says why it shows nothing."""
    figure = new_figure(4.8, 2.4, evidence)
    write_reason(figure.subplots(), reason)
    return figure, []


def per_cent(share: float, _: float) -> str:
    """Return a share in per cent, as a formatter of ticks."""
    return f"{100 * share:g}"


def write_reason(axes: Axes, text: str) -> None:
    """Write into an empty panel why it is empty."""
    frame_only(axes)
    wrapped = "\n".join(textwrap.wrap(text, 30))
    axes.text(0.5, 0.5, wrapped, ha="center", va="center", transform=axes.transAxes, fontsize=8, color="0.35")


def frame_only(axes: Axes) -> None:
    """Take ticks and grid away and draw a pale frame, for panels whose axes have no meaning."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="0.8")


def short_title(evidence: Evidence, dataset: str, letters: int = 0) -> str:
    """Return a title without the study and the mark of synthetic data, in lines of so many letters where they are given."""
    title = evidence.data_title(dataset).replace(" (miniature synthetic)", "")
    title = title.replace(" s of", "\u00a0s of")  # A number stays with its unit.
    title = title.replace("$", r"\$")  # which begins no formula
    return textwrap.fill(title, letters) if letters else title


def class_colour(label: int) -> str:
    """Return the paper's colour of a class index; colours come round again where there are more classes."""
    return CLASS_COLOURS[int(label) % len(CLASS_COLOURS)]


def scatter(axes: Axes, points: pd.DataFrame, colour: str | None = None, **options: Any) -> None:
    """Draw samples at x and y, in the colours of their classes or in one colour."""
    palette = {label: class_colour(label) for label in points["label"].unique()}
    colours = {"color": colour} if colour or not palette else {"hue": "label", "palette": palette}
    sns.scatterplot(points, x="x", y="y", legend=False, rasterized=True, ax=axes, **colours, **options)
    _unlabel(axes)
    frame_only(axes)


def curves(axes: Axes, frame: pd.DataFrame, x: str, y: str, styles: Mapping[str, Entry], **options: Any) -> None:
    """Draw the curve of each model in `styles`: the mean of its rows with one standard deviation on either side.

    `options` are those of `seaborn.lineplot`.
    """
    shown = frame[frame["model"].isin(styles)].dropna(subset=y)
    if shown.empty:
        return
    palette = {name: style.colour for name, style in styles.items()}
    dashes = {name: DASHES[style.dash] for name, style in styles.items()}
    looks = {"palette": palette, "dashes": dashes, "hue_order": list(styles), "style_order": list(styles)}
    drawn = {"errorbar": "sd", "err_kws": {"alpha": 0.2, "lw": 0}, "lw": 1.3}
    sns.lineplot(shown, x=x, y=y, hue="model", style="model", legend=False, ax=axes, **looks | drawn | options)
    _unlabel(axes)


def _unlabel(axes: Axes) -> None:
    """Take away the labels of seaborn, which hides those of axes without numbers."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_label_text("", visible=True)


def model_styles(models: Iterable[str]) -> dict[str, Entry]:
    """Return the entries of models, which have colour and dash, in the order of tables."""
    return {model: model_style(model) for model in models_in_order(models)}


def model_style(model: str) -> Entry:
    """Return the entry of a model of the registry, or of the one behind a method."""
    return MODELS[MODEL_OF.get(model, model)]


def handles(styles: Mapping[str, Entry], **options: Any) -> list[Line2D]:
    """Return entries of a legend, one a model."""
    return [
        Line2D([], [], color=style.colour, ls=style.dash, label=model_title(model), **options)
        for model, style in styles.items()
    ]
