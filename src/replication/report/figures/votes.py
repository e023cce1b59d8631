"""Figure S9: test images beside the references with the strongest votes about them."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from clai.errors import InputError
from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, class_colour, new_figure, short_title, write_reason
from replication.runs.columns import COLUMNS as FILES

FILE = "votes.csv.gz"
COLUMNS = ["dataset", *FILES[FILE]]
_ROW = 0.72
"""Height of a row of pictures, in inches."""
_TEXT, _GAP = 1.75, 0.3
"""Widths of the text before a row and of the gaps in it, in widths of a picture."""


def draw(evidence: Evidence) -> Drawn:
    """Draw a row for each test image: the image, the references for its predicted class, and those against it."""
    frames = {key: evidence.frame(key, FILE) for key in evidence.at_hand()}
    frames = {key: frame for key, frame in frames.items() if not frame.empty}
    if not frames:
        figure = new_figure(WIDTH, 2.4, evidence)
        write_reason(figure.subplots(), "no votes in the evidence")
        return figure, pd.DataFrame(columns=COLUMNS)
    rows = [(key, image) for key, frame in frames.items() for image in frame["image"].unique()]
    most = max(int(frame["place"].max()) for frame in frames.values())
    widths = [_TEXT, 1, _GAP, *[1] * most, _GAP, *[1] * most]
    figure = new_figure(WIDTH, _ROW * len(rows) + 0.5, evidence)
    panels = figure.subplots(len(rows), len(widths), squeeze=False, gridspec_kw={"width_ratios": widths})
    for axes in panels.ravel():
        axes.axis("off")
    sides = {"image": panels[:, 1:2], "for": panels[:, 3 : 3 + most], "against": panels[:, 4 + most :]}
    for number, (key, image) in enumerate(rows):
        of_image = frames[key][frames[key]["image"] == image]
        classes = list(evidence.description(key)["classes"])
        for role, places in sides.items():
            _draw_side(places[number], evidence, key, classes, of_image[of_image["role"] == role])
        first = of_image[of_image["role"] == "image"].iloc[0]
        name = short_title(evidence, key) if number == 0 or rows[number - 1][0] != key else ""
        text = f"{name}\nclass {_index(evidence, key, classes, first['label'])}\n"
        text += f"predicted {_index(evidence, key, classes, first['predicted'])}"
        panels[number, 0].text(0, 0.5, text, va="center", ha="left", fontsize=7, transform=panels[number, 0].transAxes)
    for role, heading in (("image", "image"), ("for", "for the predicted class"), ("against", "against it")):
        _write_heading(sides[role][0], heading)
    return figure, pd.concat([frame.assign(dataset=key) for key, frame in frames.items()])


def _write_heading(places: Sequence[Axes], heading: str) -> None:
    """Write a heading above the first row, in a line that the titles of its pictures leave free."""
    for axes in places:
        axes.set_title(f"\n{axes.get_title() or ' '}", fontsize=7, pad=2)
    text = places[len(places) // 2].annotate(
        heading, (0.5, 1), (0, 13), xycoords="axes fraction", textcoords="offset points", ha="center", fontsize=8
    )
    text.set_in_layout(False)  # it is wider than a picture, whose column would grow


def _draw_side(
    places: Sequence[Axes], evidence: Evidence, dataset: str, classes: list[str], rows: pd.DataFrame
) -> None:
    """Draw pictures in frames of their class's colour, with class index and similarity above those of references."""
    for axes, (_, row) in zip(places, rows.sort_values("place").iterrows(), strict=False):
        index = _index(evidence, dataset, classes, row["label"])
        axes.axis("on")
        axes.imshow(_pixels(evidence, dataset, row), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, color=class_colour(index), linewidth=1.5)
        if row["role"] != "image":
            axes.set_title(f"{index}: {row['similarity']:.2f}", fontsize=7, pad=2)


def _index(evidence: Evidence, dataset: str, classes: list[str], label: Any) -> int:
    if label not in classes:
        raise InputError(
            f"{evidence.path(dataset, FILE)}: found the class {label!r}, expected one of {', '.join(classes)}; run its "
            "evaluation again"
        )
    return classes.index(label)


def _pixels(evidence: Evidence, dataset: str, row: pd.Series) -> NDArray[np.uint8]:
    """Return a picture, uint8 (height, width, 3); a single channel is drawn in grey."""
    height, width = int(row["height"]), int(row["width"])
    try:
        values = np.frombuffer(base64.b64decode(row["pixels"], validate=True), np.uint8).reshape(height, width, -1)
        return np.broadcast_to(values, (height, width, 3))
    except (binascii.Error, TypeError, ValueError) as error:
        raise InputError(
            f"{evidence.path(dataset, FILE)}: found pixels that are no picture of {height} x {width} ({error}), expected base64 "
            "of uint8; run its evaluation again"
        ) from error
