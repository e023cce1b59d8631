"""Supplementary figures of accuracy: votes about single images, and reliability."""

import base64
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from replication.report.evidence import Evidence
from replication.report.figures import style
from replication.report.figures.style import WIDTH, Drawn
from replication.runs.run import COLUMNS as FILES

RELIABILITY_COLUMNS = ["dataset", "model", "kind", "mapping", "bin", "n", "confidence", "accuracy"]
MAPPINGS = {"raw": "as given", "calibrated": "calibrated"}
RELIABLE = ("clai-m", "clai-c", "cross-entropy", "student-t-mixture", "supervised-contrastive")
"""Models whose reliability is drawn, at most four of a dataset, in order; of a user's own datasets every model is."""
FEWEST_IN_BIN = 50  # samples; a share of fewer says little

VOTES = "votes.csv.gz"
VOTE_COLUMNS = ["dataset", *FILES[VOTES]]
_TEXT, _GAP, _EDGE = 2.6, 0.3, 0.05
"""Widths of the text before a row, of the gaps in it, and around a picture: the unit is the width of a picture with its edges."""
_ROW, _HEADING = 1.5, 0.25
"""Heights of a row, with the numbers above its pictures, and of the headings, in the same unit."""
_LETTERS, _LINE = 24, 118
"""Of a line of that text, and of one with the names of a dataset's classes."""
_NAMES = 0.24
"""Height of such a line, in the same unit."""


def reliability(evidence: Evidence, fewest: int = FEWEST_IN_BIN, models: Sequence[str] = RELIABLE) -> Drawn:
    """Draw the observed share against the predicted probability: a column a dataset, raw above calibrated.

    A bin has at least the `fewest` samples. At most four of `models` are drawn, and without any all.
    """
    datasets = evidence.at_hand()
    figure = style.new_figure(min(WIDTH, 1.8 + 1.8 * len(datasets)), 4.3, evidence)
    panels = figure.subplots(2, len(datasets), squeeze=False, sharex=True, sharey=True)
    parts = []
    for column, dataset in zip(panels.T, datasets, strict=True):
        pooled = pool_bins(of_one_kind(evidence.frame(dataset, "reliability.csv")))
        if models:
            present = [model for model in models if model in set(pooled["model"])]
            pooled = pooled[pooled["model"].isin(present[:4])]
        for axes, (mapping, wording) in zip(column, MAPPINGS.items(), strict=True):
            shown = pooled[(pooled["mapping"] == mapping) & (pooled["n"] >= fewest)]
            axes.plot([0, 1], [0, 1], color="0.6", lw=0.8)
            style.curves(axes, shown, "confidence", "accuracy", style.of_models(pooled["model"]), errorbar=None, lw=1, marker="o",
                   ms=3, mew=0)  # fmt: skip
            axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
            axes.set_box_aspect(1)
            axes.set_ylabel(f"Observed share,\n{wording}" if dataset == datasets[0] else "")
        column[0].set_title(style.short_title(evidence, dataset, 22), fontsize=8)
        column[1].set_xlabel("Predicted probability", fontsize=7.5)
        parts.append(pooled.assign(dataset=dataset))
    models = [model for part in parts for model in part["model"].unique()]
    entries = style.handles(style.of_models(models), marker="o", ms=2.5)
    figure.legend(handles=entries, loc="outside lower center", ncols=min(5, len(datasets) + 1), handlelength=2.6)
    return figure, parts


def of_one_kind(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return the bins of the positive rate where there are any, and those of the top label otherwise.

    The top label of a rare event is nearly always its absence, with a confidence near 1.
    """
    rates = reliability["kind"] == "positive-rate"
    return reliability[rates] if rates.any() else reliability


def pool_bins(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return bins pooled over seeds and folds: n summed, confidence and accuracy weighted by n."""
    shares = ["confidence", "accuracy"]
    weighted = reliability.assign(**{name: reliability[name] * reliability["n"] for name in shares})
    pooled = weighted.groupby(["model", "kind", "mapping", "bin"])[["n", *shares]].sum().reset_index()
    return pooled.assign(**{name: pooled[name] / pooled["n"] for name in shares})


def votes(evidence: Evidence) -> Drawn:
    """Draw a row for each test image: the image, the references for its predicted class, and those of other classes."""
    frames = {key: evidence.frame(key, VOTES) for key in evidence.at_hand()}
    frames = {key: frame for key, frame in frames.items() if not frame.empty}
    if not frames:
        figure = style.new_figure(WIDTH, 2.4, evidence)
        style.write_reason(figure.subplots(), "no votes in the evidence")
        return figure, []
    most = max(int(frame["place"].max()) for frame in frames.values())
    starts = {"image": _TEXT, "for": _TEXT + 1 + _GAP, "against": _TEXT + 1 + most + 2 * _GAP}
    width = starts["against"] + most
    figure = style.new_figure(WIDTH, WIDTH, evidence)
    # One axes for all pictures, in widths of one: axes for each would take many times as long to lay out.
    axes = figure.subplots()
    top = 0.0
    for key, frame in frames.items():
        classes = list(evidence.description(key)["classes"])
        above = [style.short_title(evidence, key)]
        for _, of_image in frame.groupby("image", sort=False):
            for role, start in starts.items():
                _draw_side(axes, (start, top), classes, of_image[of_image["role"] == role].sort_values("place"))
            first = of_image[of_image["role"] == "image"].iloc[0]
            said = {"is": first["label"], "predicted": first["predicted"]}
            lines = [textwrap.fill(f"{words} {classes.index(name)} {name}", _LETTERS) for words, name in said.items()]
            axes.text(0, top + _ROW - 0.5, "\n".join([*above, *lines]), va="center", fontsize=7)
            above, top = [], top + _ROW
        named = textwrap.fill(", ".join(f"{index} {name}" for index, name in enumerate(classes)), _LINE)
        axes.text(0, top + _NAMES / 2, named, va="top", fontsize=7)
        top += _NAMES * (named.count("\n") + 2)
    for role, heading, pictures in (
        ("image", "image", 1), ("for", "for the predicted class", most), ("against", "of other classes", most),
    ):  # fmt: skip
        axes.text(starts[role] + pictures / 2, -_HEADING, heading, ha="center", va="top", fontsize=8)
    axes.set(xlim=(0, width), ylim=(top, -_HEADING), aspect="equal")
    axes.axis("off")
    figure.set_size_inches(WIDTH, (_HEADING + top) * WIDTH / width)
    return figure, [frame.assign(dataset=key) for key, frame in frames.items()]


def _draw_side(axes: Axes, corner: tuple[float, float], classes: list[str], rows: pd.DataFrame) -> None:
    """Draw pictures in frames of their class's colour, with class index and similarity above those of references."""
    left, top = corner[0], corner[1] + _ROW - 1
    for place, (_, row) in enumerate(rows.iterrows()):
        index = classes.index(row["label"])
        pixels = np.frombuffer(base64.b64decode(row["pixels"]), np.uint8).reshape(row["height"], row["width"], -1)
        rgb = np.broadcast_to(pixels, (*pixels.shape[:2], 3))  # one channel is grey
        x = left + place
        axes.imshow(rgb, interpolation="nearest", extent=(x + _EDGE, x + 1 - _EDGE, top + 1 - _EDGE, top + _EDGE))
        frame = Rectangle((x + _EDGE, top + _EDGE), 1 - 2 * _EDGE, 1 - 2 * _EDGE)
        axes.add_patch(frame)
        frame.set(fill=False, edgecolor=style.class_colour(index), linewidth=1.5)
        if row["role"] != "image":
            axes.text(x + 0.5, top, f"{index}: {row['similarity']:.2f}", ha="center", va="bottom", fontsize=7)
