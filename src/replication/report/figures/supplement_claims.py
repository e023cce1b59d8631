"""Figure S7, specification curves: readings of the paper and options of ours with their intervals (Simonsohn et al. 2020)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from replication.report.claims.hypothesis import Outcome
from replication.report.evidence import Evidence
from replication.report.figures.style import BLUE, GREEN, GREY, VERMILION, WIDTH, Drawn, new_figure

CLAIM_COLUMNS = [
    "claim", "dataset", "data", "role", "target", "option", "part", "model", "quantity", "unit", "estimate", "low", "high", "n",
    "outcome", "margins_low", "margins", "margins_high",
]  # fmt: skip
COLOURS = {
    Outcome.REPRODUCED: BLUE,
    Outcome.EXCEEDED: GREEN,
    Outcome.NOT_REPRODUCED: VERMILION,
    Outcome.INCONCLUSIVE: "0.25",
}
ROW = 0.42
"""Height of a claim (inches)."""
SHADE = "#dbe9f4"
FARTHEST = 120
"""Margins at which the axis ends; intervals beyond are cut there."""


def specification_curves(evidence: Evidence, claims: Sequence[Mapping[str, Any]]) -> Drawn:
    """Draw a row for each claim of `claims.json`: its estimates in order, in margins of relevance."""
    judged = {claim["id"]: _judged(claim) for claim in claims}
    shown = [claim for claim in claims if judged[claim["id"]]]
    figure = new_figure(WIDTH, ROW * len(shown) + 1, evidence)
    axes = figure.subplots()
    for row, claim in enumerate(shown):
        _draw_claim(axes, row, judged[claim["id"]])
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set(xlim=(-FARTHEST, FARTHEST), ylim=(len(shown) - 0.5, -0.5))
    ticks = [sign * tick for tick in (10, 1) for sign in (-1, 1)] + [0]
    axes.set_xticks(sorted(ticks), [f"{tick:+d}" if tick else "0" for tick in sorted(ticks)])
    axes.set_xlabel("how far the number speaks for the claim, in margins of relevance")
    axes.set_yticks(range(len(shown)), [f"{claim['title']}  {claim['id']}" for claim in shown])
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color="0.3", lw=0.7, zorder=1)
    axes.grid(axis="y", visible=False)
    handles: list[Any] = [
        Line2D([], [], color=colour, marker="o", ms=4, lw=1.2, label=str(outcome))
        for outcome, colour in COLOURS.items()
    ]
    handles += [
        Line2D([], [], color=GREY, marker="o", ms=2, lw=0.6, label="substitute, or option of ours"),
        Patch(color=SHADE, label="holds"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    rows = [_row(claim["id"], estimate) for claim in shown for estimate in judged[claim["id"]]]
    return figure, [pd.DataFrame(rows)]


def _judged(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the estimates under readings of the paper and with options that an interval decides, in their order."""
    judged = [estimate for estimate in claim["estimates"] if estimate["role"] in ("test", "informs", "option")]
    known = [estimate for estimate in judged if estimate["margins"] and estimate["outcome"] in COLOURS]
    return sorted(known, key=lambda estimate: float(estimate["margins"][1]))


def _draw_claim(axes: Axes, row: int, estimates: Sequence[Mapping[str, Any]]) -> None:
    """Draw the paper's readings large and in colour, others small and grey, and shade what supports the claim."""
    half = 0.45 / len(estimates)  # of the strip of an estimate; parts of a claim may ask for more than others
    for place, estimate in zip(
        np.linspace(row + 0.45 - half, row - 0.45 + half, len(estimates)), estimates, strict=True
    ):
        low, high = (FARTHEST if edge is None else edge for edge in estimate["holds"])
        axes.fill_between([low, high], place - half, place + half, color=SHADE, lw=0, zorder=0)
        paper = estimate["role"] == "test"
        colour = COLOURS[Outcome(estimate["outcome"])] if paper else GREY
        start, mean, end = np.clip(estimate["margins"], -FARTHEST, FARTHEST)
        axes.plot([start, end], [place, place], color=colour, lw=1.2 if paper else 0.6, zorder=3 if paper else 2)
        axes.plot([mean], [place], "o", color=colour, ms=4 if paper else 2, mew=0, zorder=4 if paper else 2)


def _row(claim: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the figure shows of an estimate, with the evidence folder as the dataset."""
    margins = dict(zip(("margins_low", "margins", "margins_high"), estimate["margins"], strict=True))
    return {**estimate, "claim": claim, "dataset": estimate["key"], "estimate": estimate["mean"], **margins}
