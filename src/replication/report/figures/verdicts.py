"""The verdicts at a glance: a row for each, with the numbers that decide it beside their threshold."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replication.report.claims.hypothesis import Outcome
from replication.report.evidence import Evidence
from replication.report.figures.style import BLUE, GREEN, GREY, VERMILION, WIDTH, Drawn, new_figure

VERDICT_COLUMNS = [
    "claim", "title", "dataset", "model", "quantity", "target", "number", "from", "distance", "to", "limit", "verdict",
    "qualifier",
]  # fmt: skip
COLOURS = {
    Outcome.REPRODUCED: BLUE,
    Outcome.REACHED: GREEN,
    Outcome.IN_PART: "#8c4f80",
    Outcome.NOT_REPRODUCED: VERMILION,
    Outcome.INCONCLUSIVE: "0.25",
    Outcome.DEPENDS: "#a06e00",
    Outcome.NOT_TESTABLE: GREY,
}
ROW, SMALL = 0.32, 7
"""Height of a row (inches), for two lines of text, and the size of its letters (points)."""
NUMBERS, VERDICTS = 6, 138
"""Where the texts at the right begin (points from the axis)."""
TITLE, NUMBER = 31, 36
"""Letters of a line of a title, and of a number."""
FARTHEST = 100
"""Margins at which the axis ends; intervals beyond are cut there."""


def verdicts(evidence: Evidence, claims: Sequence[Mapping[str, Any]]) -> Drawn:
    """Draw a row for each verdict of `claims.json`: how far its decisive numbers lie from the threshold, in margins."""
    judged = [claim for claim in claims if claim["outcome"]]
    rows = [row for claim in judged for row in _numbers(claim)]
    figure = new_figure(WIDTH, ROW * len(judged) + 0.8, evidence)
    axes = figure.subplots()
    for place, claim in enumerate(judged):
        _draw(axes, place, claim, [row for row in rows if row["claim"] == claim["id"]])
    axes.axvline(0, color="0.3", lw=0.8, zorder=1)
    axes.axvspan(0, FARTHEST, color="#eef4f9", lw=0, zorder=0)
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set(xlim=(-FARTHEST, FARTHEST), ylim=(len(judged) - 0.4, -0.6))
    axes.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "+1", "+10"])
    axes.set_xlabel("distance from the threshold, in margins of relevance")
    axes.set_title("against the claim  |  for the claim", fontsize=SMALL)
    axes.set_yticks(range(len(judged)), [textwrap.fill(f"{claim['id']}  {claim['title']}", TITLE) for claim in judged])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    return figure, [pd.DataFrame(rows)]


def _numbers(claim: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each number that decides a claim, with its distance from the threshold; one without any if none does."""
    shared = {**claim, "claim": claim["id"], "verdict": claim["outcome"]}
    rows = []
    for estimate in [estimate for estimate in claim["estimates"] if estimate["decides"]]:
        row = {**shared, **estimate, "dataset": estimate["name"], "number": estimate["text"]}
        if estimate["margins"]:
            threshold, limit = estimate["holds"]
            row["from"], row["distance"], row["to"] = (margin - threshold for margin in estimate["margins"])
            row["limit"] = None if limit is None else limit - threshold
        rows.append(row)
    return rows or [shared]


def _draw(axes: Axes, place: int, claim: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw a verdict: its numbers, one above the other, their texts, and its words."""
    colour, offsets = COLOURS[claim["outcome"]], 0.4 * (np.arange(len(rows)) - (len(rows) - 1) / 2)
    beside: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    for row, y in zip([row for row in rows if "number" in row], place + offsets, strict=False):
        text = f"{row['number']}, {row['target']}" if row["target"] else row["number"]
        if "distance" in row:
            low, mean, high = np.clip([row["from"], row["distance"], row["to"]], -FARTHEST, FARTHEST)
            axes.plot([low, high], [y, y], color=colour, lw=1.6)
            axes.plot([mean], [y], "o", color=colour, ms=4.5, mew=0)
            axes.plot([row["limit"] or np.nan], [y], "|", color="0.3", ms=12)
        else:
            axes.annotate("no interval", (0, y), (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
            text = f"{text} ({row['quantity']})"
        unbroken = text.replace(", +", ",\u00a0+").replace(", -", ",\u00a0-")
        axes.annotate(textwrap.fill(unbroken, NUMBER), (1, y), (NUMBERS, 0), fontsize=SMALL, **beside)
    words = "\n".join(filter(None, [claim["outcome"], claim["qualifier"]]))
    axes.annotate(words, (1, place), (VERDICTS, 0), color=colour, fontsize=SMALL, fontweight="bold", **beside)
