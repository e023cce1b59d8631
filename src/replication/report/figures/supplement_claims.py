"""Figure S7, specification curves: each reading, dataset and model with its interval (Simonsohn et al. 2020)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from replication.report.claims.hypothesis import Outcome, Reading, varying
from replication.report.evidence import Evidence
from replication.report.figures.style import BLUE, GREEN, GREY, VERMILION, WIDTH, Drawn, new_figure, write_reason

CLAIMS = ("1", "2", "3a", "3b", "4", "15", "5", "6", "11", "7", "8")
"""The claims with an interval for each reading, in the order of panels."""
CLAIM_COLUMNS = [
    "claim", "dataset", "data", "reading", "compared", "quantity", "unit", "replicate", "estimate", "low", "high", "n", "outcome",
]  # fmt: skip
COLOURS = {
    Outcome.REPRODUCED: BLUE,
    Outcome.EXCEEDED: GREEN,
    Outcome.NOT_REPRODUCED: VERMILION,
    Outcome.INCONCLUSIVE: GREY,
}
PANELS_A_ROW = 3
# Inches: of a curve, of a line of the chart of options, and of title, unit and gaps.
CURVE, LINE, BETWEEN = 0.95, 0.115, 0.5
SHADE = "#dbe9f4"
LONGEST = 22
"""Letters of the name of an option."""


class Point(NamedTuple):
    """An estimate that decides under a reading, on a dataset, for a model."""

    answer: Mapping[str, Any]
    number: Mapping[str, Any]
    reading: Reading


def specification_curves(evidence: Evidence, claims: Sequence[Mapping[str, Any]]) -> Drawn:
    """Draw figure S7, a panel for each claim: estimates in order, and below them the options of each one's reading.

    Faint points are single seeds or folds.

    Args:
        claims: as `claims.json` has them.
    """
    by_id = {claim["id"]: claim for claim in claims}
    shown = {number: _sorted(by_id[number]) for number in CLAIMS}
    charts = {number: _chart(points) for number, points in shown.items()}
    rows = [CLAIMS[start : start + PANELS_A_ROW] for start in range(0, len(CLAIMS), PANELS_A_ROW)]
    lines = [max(1, *(len(charts[number]) for number in row)) for row in rows]
    figure = new_figure(WIDTH, sum(CURVE + BETWEEN + LINE * n for n in lines) + 0.2, evidence)
    figure.set_layout_engine("constrained", hspace=0.02, h_pad=0.03)
    bands = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=[CURVE + BETWEEN + LINE * n for n in lines])
    for band, row, n in zip(bands[:, 0], rows, lines, strict=True):
        panels = band.subplots(
            2, PANELS_A_ROW, squeeze=False, gridspec_kw={"height_ratios": [CURVE, LINE * n], "hspace": 0}
        )
        for (curve, chart), number in zip(panels.T, row, strict=False):
            _draw_curve(curve, by_id[number], shown[number])
            _draw_chart(chart, shown[number], charts[number], n)
        for unused in panels.T[len(row) :]:
            _draw_legend(unused[0])
            unused[1].axis("off")
    _fix_layout(figure)
    return figure, pd.DataFrame(
        [row for number in CLAIMS for row in _rows(number, shown[number])], columns=CLAIM_COLUMNS
    )


def _fix_layout(figure: Figure) -> None:
    """Lay the panels out once and round their places: the solver's last digits differ from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for band in figure.subfigs:
        band.bbox_relative.set_points(band.bbox_relative.get_points().round(4))
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position().get_points().round(4)))


def _sorted(claim: Mapping[str, Any]) -> list[Point]:
    """Return the deciding estimates that have an interval, in their order."""
    points = [
        Point(answer, answer["numbers"][answer["decides"]], Reading(**answer["reading"])) for answer in claim["answers"]
    ]
    known = [point for point in points if point.answer["supports"] and point.number["low"] is not None]
    return sorted(known, key=lambda point: float(point.number["mean"]))


def _chart(points: Sequence[Point]) -> list[tuple[str, list[bool]]]:
    """Return the lines of the chart: an option's name, and which estimates have it. Options that all have are left out."""
    lines = []
    for name in varying(point.reading for point in points):
        options = [point.reading.choices.get(name, "") for point in points]
        lines += [(f"{_choice(name)}{option}", [o == option for o in options]) for option in sorted(set(options))]
    # One measure against several models, or several measures against one.
    quantities = [point.number["quantity"] for point in points]
    measures = [quantity.split(",")[0] for quantity in quantities]
    compared = [quantity.split(" minus ")[-1] for quantity in quantities] if len(set(measures)) == 1 else measures
    studies = [f"study {point.answer['study']}" if point.answer["study"] else point.answer["data"] for point in points]
    for values in (studies, [point.answer["model"] for point in points], compared):
        if len(set(values)) > 1 and not _told_by_readings(values, points):
            lines += [(_short(value), [v == value for v in values]) for value in sorted(set(values))]
    return lines


def _choice(name: str) -> str:
    named = ("network", "epochs", "loss", "shares", "rule", "target")
    return "ECE: " if name == "ece" else f"{name}: " if name in named else ""


def _told_by_readings(values: Sequence[str], points: Sequence[Point]) -> bool:
    """Return whether the options tell these values apart already, as the cohort tells the data."""
    by_reading: dict[Reading, set[str]] = {}
    for value, point in zip(values, points, strict=True):
        by_reading.setdefault(point.reading, set()).add(value)
    return all(len(found) == 1 for found in by_reading.values())


def _short(value: str) -> str:
    """Return a name in at most `LONGEST` letters, without what stands in parentheses."""
    text = value.removeprefix("effect size of the ").split(" (")[0]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _draw_curve(axes: Axes, claim: Mapping[str, Any], points: Sequence[Point]) -> None:
    axes.set_title(f"{claim['id']}  {claim['title']}", loc="right", fontsize=7, fontweight="bold")
    axes.grid(axis="x", visible=False)
    axes.set_xticks([])
    if not points:
        axes.set_yticks([])
        write_reason(axes, "no evidence with an interval")
        return
    # A call for each colour: one for each estimate would take most of the time of the figure.
    for outcome, colour in COLOURS.items():
        alike = [(x, point) for x, point in enumerate(points) if point.answer["outcome"] == outcome]
        places = [x for x, _ in alike]
        low, mean, high = ([point.number[name] for _, point in alike] for name in ("low", "mean", "high"))
        single = [(x + 0.28, value) for x, point in alike for value in point.answer["replicates"].values()]
        axes.vlines(places, low, high, color=colour, lw=1)
        axes.plot(*zip(*single, strict=True) if single else ((), ()), ".", color=colour, ms=2.4, alpha=0.6, mew=0)
        axes.plot(places, mean, "o", color=colour, ms=2.6)
    axes.axhline(0, color="0.3", lw=0.7)
    axes.set_xlim(-0.7, len(points) - 0.3)
    _shade(axes, points)
    units = {point.number["unit"].replace("percentage points", "points") for point in points}
    axes.set_ylabel(units.pop() or "difference" if len(units) == 1 else "difference", fontsize=7)


def _shade(axes: Axes, points: Sequence[Point]) -> None:
    """Shade what supports the claim beyond the margin, for each estimate on its own side."""
    low, high = axes.get_ylim()
    edges = np.array([point.answer["supports"] for point in points], dtype=float)
    bottom, top = np.clip(np.where(np.isnan(edges), [-np.inf, np.inf], edges).T, low, high).repeat(2, axis=1)
    sides = np.arange(len(points)).repeat(2) + np.tile([-0.5, 0.5], len(points))
    axes.fill_between(sides, bottom, top, color=SHADE, lw=0, zorder=0)
    axes.set_ylim(low, high)


def _draw_chart(axes: Axes, points: Sequence[Point], chart: Sequence[tuple[str, list[bool]]], lines: int) -> None:
    """Mark the options of each estimate below it, with room for `lines` of them."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.grid(False)
    axes.set_xlim(-0.7, len(points) - 0.3)
    axes.set_ylim(lines - 0.4, -0.6)
    axes.set_yticks(range(len(chart)), [name for name, _ in chart], fontsize=7)
    axes.tick_params(length=0)
    for line, (_, has) in enumerate(chart):
        axes.plot(np.flatnonzero(has), [line] * sum(has), "s", color="0.25", ms=1.8, mew=0)


def _draw_legend(axes: Axes) -> None:
    axes.axis("off")
    handles: list[Any] = [
        Line2D([], [], color=colour, marker="o", ms=3, lw=1, label=str(outcome)) for outcome, colour in COLOURS.items()
    ]
    handles.append(Line2D([], [], ls="", marker=".", color="0.4", ms=3, alpha=0.6, label="one seed or fold"))
    handles.append(Patch(color=SHADE, label="supports the claim"))
    axes.legend(handles=handles, loc="upper left", borderaxespad=0)


def _rows(claim: str, points: Sequence[Point]) -> list[tuple[object, ...]]:
    """Return the rows of the CSV: the mean of an estimate with its interval, then its seeds or folds."""
    rows: list[tuple[object, ...]] = []
    for answer, number, reading in points:
        data = f"{answer['data']}, study {answer['study']}" if answer["study"] else answer["data"]
        named = (claim, answer["key"], data, reading.text(), answer["model"], number["quantity"], number["unit"])
        rows.append((*named, "", *(number[name] for name in ("mean", "low", "high", "n", "outcome"))))
        rows += [(*named, unit, value, None, None, None, "") for unit, value in answer["replicates"].items()]
    return rows
