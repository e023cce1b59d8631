"""Figure S8, specification curves: each reading, dataset and model with its interval (Simonsohn et al. 2020)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from replication.report.claims.finding import Part
from replication.report.claims.judgement import Judgement, judge
from replication.report.claims.reading import Reading, varying
from replication.report.claims.verdict import Outcome
from replication.report.evidence import Evidence
from replication.report.figures.style import BLUE, GREEN, GREY, VERMILION, WIDTH, Drawn, new_figure, write_reason
from replication.report.statistics import Interval

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


def specification_curves(evidence: Evidence, printed: pd.DataFrame) -> Drawn:
    """Draw figure S8, a panel for each claim: estimates in order, and below them the options of each one's reading.

    An estimate is the one that decides under a reading, on a dataset, for a model. Faint points are single seeds or folds.
    """
    by_number = {judgement.claim.number: judgement for judgement in judge(evidence, printed)}
    judgements = [by_number[number] for number in CLAIMS]
    shown = {j.claim.number: _sorted(j) for j in judgements}
    charts = {number: _chart(parts) for number, parts in shown.items()}
    rows = [judgements[start : start + PANELS_A_ROW] for start in range(0, len(judgements), PANELS_A_ROW)]
    lines = [max(1, *(len(charts[j.claim.number]) for j in row)) for row in rows]
    figure = new_figure(WIDTH, sum(CURVE + BETWEEN + LINE * n for n in lines) + 0.2, evidence)
    figure.set_layout_engine("constrained", hspace=0.02, h_pad=0.03)
    bands = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=[CURVE + BETWEEN + LINE * n for n in lines])
    for band, row, n in zip(bands[:, 0], rows, lines, strict=True):
        panels = band.subplots(
            2, PANELS_A_ROW, squeeze=False, gridspec_kw={"height_ratios": [CURVE, LINE * n], "hspace": 0}
        )
        for (curve, chart), judgement in zip(panels.T, row, strict=False):
            number = judgement.claim.number
            _draw_curve(curve, judgement, shown[number])
            _draw_chart(chart, shown[number], charts[number], n)
        for unused in panels.T[len(row) :]:
            _draw_legend(unused[0])
            unused[1].axis("off")
    _fix_layout(figure)
    return figure, pd.DataFrame([row for j in judgements for row in _rows(j.claim.number, shown[j.claim.number])],
                                columns=CLAIM_COLUMNS)  # fmt: skip


def _fix_layout(figure: Figure) -> None:
    """Lay the panels out once and round their places: the solver's last digits differ from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for band in figure.subfigs:
        band.bbox_relative.set_points(band.bbox_relative.get_points().round(4))
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position().get_points().round(4)))


def _sorted(judgement: Judgement) -> list[Part]:
    """Return the deciding parts that have an interval, by their estimate."""
    parts = [part for part in judgement.finding.points if part.hypothesis and isinstance(part.value, Interval)]
    return sorted((part for part in parts if part.outcome != Outcome.NOT_TESTABLE), key=_estimate)


def _estimate(part: Part) -> float:
    return part.value.mean if isinstance(part.value, Interval) else part.value


def _chart(parts: Sequence[Part]) -> list[tuple[str, list[bool]]]:
    """Return the lines of the chart: an option's name, and which estimates have it. Options that all have are left out."""
    lines = []
    for name in varying(part.reading for part in parts):
        options = [part.reading.choices.get(name, "") for part in parts]
        lines += [(f"{_choice(name)}{option}", [o == option for o in options]) for option in _ordered(options)]
    # One measure against several models, or several measures against one.
    measures = {part.quantity.split(",")[0] for part in parts}
    compared = [
        part.quantity.split(" minus ")[-1] if len(measures) == 1 else part.quantity.split(",")[0] for part in parts
    ]
    for values in ([_study(part.data) for part in parts], [part.model for part in parts], compared):
        if len(set(values)) > 1 and not _told_by_readings(values, parts):
            lines += [(_short(value), [v == value for v in values]) for value in _ordered(values)]
    return lines


def _choice(name: str) -> str:
    named = ("network", "epochs", "loss", "shares", "rule", "target")
    return "ECE: " if name == "ece" else f"{name}: " if name in named else ""


def _ordered(values: Sequence[str]) -> list[str]:
    return sorted(set(values))


def _told_by_readings(values: Sequence[str], parts: Sequence[Part]) -> bool:
    """Return whether the options tell these values apart already, as the cohort tells the data."""
    by_reading: dict[Reading, set[str]] = {}
    for value, part in zip(values, parts, strict=True):
        by_reading.setdefault(part.reading, set()).add(value)
    return all(len(found) == 1 for found in by_reading.values())


def _study(data: str) -> str:
    """Return the study of data that have one."""
    name, _, study = data.partition(", study ")
    return f"study {study}" if study else name


def _short(value: str) -> str:
    """Return a name in at most `LONGEST` letters, without what stands in parentheses."""
    text = value.removeprefix("effect size of the ").split(" (")[0]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _draw_curve(axes: Axes, judgement: Judgement, parts: Sequence[Part]) -> None:
    claim = judgement.claim
    axes.set_title(f"{claim.number}  {claim.short}", loc="right", fontsize=7, fontweight="bold")
    axes.grid(axis="x", visible=False)
    axes.set_xticks([])
    if not parts:
        axes.set_yticks([])
        write_reason(axes, "no evidence with an interval")
        return
    # A call for each colour: one for each estimate would take most of the time of the figure.
    for outcome, colour in COLOURS.items():
        alike = [(x, part) for x, part in enumerate(parts) if (part.outcome or Outcome.INCONCLUSIVE) == outcome]
        places = [x for x, _ in alike]
        low, mean, high = (
            [part.unit.factor * getattr(part.value, name) for _, part in alike] for name in ("low", "mean", "high")
        )
        single = [(x + 0.28, part.unit.factor * value) for x, part in alike for value in part.replicates]
        axes.vlines(places, low, high, color=colour, lw=1)
        axes.plot(*zip(*single, strict=True) if single else ((), ()), ".", color=colour, ms=2.4, alpha=0.6, mew=0)
        axes.plot(places, mean, "o", color=colour, ms=2.6)
    axes.axhline(0, color="0.3", lw=0.7)
    axes.set_xlim(-0.7, len(parts) - 0.3)
    _shade(axes, parts)
    axes.set_ylabel(_unit(parts), fontsize=7)


def _shade(axes: Axes, parts: Sequence[Part]) -> None:
    """Shade what bears the claim out by the margin, for each estimate on its own side."""
    low, high = axes.get_ylim()
    edges = [(part.unit.factor * edge for edge in part.hypothesis.region()) for part in parts if part.hypothesis]
    bottom, top = np.clip(np.array([tuple(pair) for pair in edges]).T, low, high).repeat(2, axis=1)
    sides = np.arange(len(parts)).repeat(2) + np.tile([-0.5, 0.5], len(parts))
    axes.fill_between(sides, bottom, top, color=SHADE, lw=0, zorder=0)
    axes.set_ylim(low, high)


def _unit(parts: Sequence[Part]) -> str:
    units = {part.unit.name.replace("percentage points", "points") for part in parts}
    return units.pop() or "difference" if len(units) == 1 else "difference"


def _draw_chart(axes: Axes, parts: Sequence[Part], chart: Sequence[tuple[str, list[bool]]], lines: int) -> None:
    """Mark the options of each estimate below it, with room for `lines` of them."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.grid(False)
    axes.set_xlim(-0.7, len(parts) - 0.3)
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
    handles.append(Patch(color=SHADE, label="bears the claim out by the margin"))
    axes.legend(handles=handles, loc="upper left", borderaxespad=0)


def _rows(number: str, parts: Sequence[Part]) -> list[tuple[object, ...]]:
    """Return the rows of the CSV: the mean of an estimate with its interval, then its seeds or folds."""
    rows: list[tuple[object, ...]] = []
    for part in parts:
        assert isinstance(part.value, Interval)
        f = part.unit.factor
        named = (number, part.key, part.data, part.reading.text(), part.model, part.quantity, part.unit.name)
        mean = (f * part.value.mean, f * part.value.low, f * part.value.high, part.value.n, str(part.outcome))
        rows.append((*named, "", *mean))
        rows += [(*named, unit, f * value, None, None, None, "") for unit, value in part.replicates.items()]
    return rows
