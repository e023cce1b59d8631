"""Figures of the supplement: votes about single images, reliability, computation, and the verdicts at a glance."""

import base64
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter

from replication.report.claims.hypothesis import Outcome
from replication.report.evidence import Evidence, printed_reading
from replication.report.figures import style
from replication.report.figures.style import BLUE, GREEN, VERMILION, WIDTH, Drawn
from replication.report.labels import MODEL_OF, VARIANT_TITLES, model_title
from replication.report.texts import printed_value
from replication.runs.run import COLUMNS as FILES

RELIABILITY_COLUMNS = ["dataset", "model", "kind", "mapping", "bin", "n", "confidence", "accuracy"]
MAPPINGS = {"raw": "probabilities as given", "calibrated": "probabilities calibrated"}
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

    A bin has at least the `fewest` samples; bins are those of the positive rate where there are any, and of the top label
    otherwise. At most four of `models` are drawn, and without any all.
    """
    datasets = evidence.at_hand()
    figure = style.new_figure(min(WIDTH, 1.8 + 1.8 * len(datasets)), 4.3, evidence)
    panels = figure.subplots(2, len(datasets), squeeze=False, sharex=True, sharey=True)
    parts = []
    for column, dataset in zip(panels.T, datasets, strict=True):
        bins = evidence.frame(dataset, "reliability.csv")
        # The top label of a rare event is nearly always its absence, with a confidence near 1.
        rates = bins["kind"] == "positive-rate"
        pooled = pool_bins(bins[rates] if rates.any() else bins)
        if models:
            present = [model for model in models if model in set(pooled["model"])]
            pooled = pooled[pooled["model"].isin(present[:4])]
        pooled = pooled[pooled["n"] >= fewest]
        for axes, (mapping, wording) in zip(column, MAPPINGS.items(), strict=True):
            shown = pooled[pooled["mapping"] == mapping]
            axes.plot([0, 1], [0, 1], color="0.6", lw=0.8)
            look = {"lw": 1, "marker": "o", "ms": 3, "mew": 0}
            styles = style.model_styles(pooled["model"])
            style.curves(axes, shown, "confidence", "accuracy", styles, errorbar=None, **look)
            axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
            axes.set_box_aspect(1)
            axes.set_ylabel(f"Observed share\n({wording})" if dataset == datasets[0] else "")
        column[0].set_title(style.short_title(evidence, dataset, 22), fontsize=8)
        column[1].set_xlabel("Predicted probability", fontsize=7.5)
        parts.append(pooled.assign(name=dataset))
    models = [model for part in parts for model in part["model"].unique()]
    entries = style.handles(style.model_styles(models), marker="o", ms=2.5)
    figure.legend(handles=entries, loc="outside lower center", ncols=min(5, len(datasets)), handlelength=2.6)
    return figure, parts


def pool_bins(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return bins pooled over seeds and folds: n summed, confidence and accuracy weighted by n."""
    shares = ["confidence", "accuracy"]
    weighted = reliability.assign(**{name: reliability[name] * reliability["n"] for name in shares})
    pooled = weighted.groupby(["model", "kind", "mapping", "bin"])[["n", *shares]].sum().reset_index()
    return pooled.assign(**{name: pooled[name] / pooled["n"] for name in shares})


def votes(evidence: Evidence, images: int | None = None) -> Drawn:
    """Draw a row for each of the first test images: it, the references for its predicted class, and those of other classes."""
    texts = {"label": str, "predicted": str}  # classes may be called by numbers
    frames = {key: evidence.frame(key, VOTES).astype(texts) for key in evidence.at_hand()}
    frames = {key: of[of["image"].isin(of["image"].unique()[:images])] for key, of in frames.items() if not of.empty}
    if not frames:
        return style.without_data(evidence, "no votes in the evidence")
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
        for _, rows in frame.groupby("image", sort=False):
            for role, start in starts.items():
                _draw_side(axes, (start, top), classes, rows[rows["role"] == role].sort_values("place"))
            first = rows[rows["role"] == "image"].iloc[0]
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
    axes.text(0, -_HEADING, "above references:\nclass, similarity", va="top", fontsize=7, color="0.35")
    axes.set(xlim=(0, width), ylim=(top, -_HEADING), aspect="equal")
    axes.axis("off")
    figure.set_size_inches(WIDTH, (_HEADING + top) * WIDTH / width)
    return figure, [frame.assign(name=key) for key, frame in frames.items()]


def _draw_side(axes: Axes, corner: tuple[float, float], classes: list[str], rows: pd.DataFrame) -> None:
    """Draw pictures in frames of their class's colour, with class index and similarity above those of references."""
    left, top = corner[0], corner[1] + _ROW - 1
    for column, (_, row) in enumerate(rows.iterrows()):
        index = classes.index(row["label"])
        pixels = np.frombuffer(base64.b64decode(row["pixels"]), np.uint8).reshape(row["height"], row["width"], -1)
        rgb = np.broadcast_to(pixels, (*pixels.shape[:2], 3))  # one channel is grey
        x = left + column
        axes.imshow(rgb, interpolation="nearest", extent=(x + _EDGE, x + 1 - _EDGE, top + 1 - _EDGE, top + _EDGE))
        frame = Rectangle((x + _EDGE, top + _EDGE), 1 - 2 * _EDGE, 1 - 2 * _EDGE)
        axes.add_patch(frame)
        frame.set(fill=False, edgecolor=style.class_colour(index), linewidth=1.5)
        if row["role"] != "image":
            axes.text(x + 0.5, top, f"{index}, {row['similarity']:.2f}", ha="center", va="bottom", fontsize=7)


COMPUTATION_COLUMNS = [
    "dataset", "study", "cell", "model", "epoch", "operations", "minutes", "median", "low", "high", "n",
]  # fmt: skip
DASHES = ("--", "-", ":")
# On the test images of CIFAR-10 (Jordan 2024, arXiv 2404.00498)
JORDAN_ACCURACY, JORDAN_OPERATIONS = 0.94, 3.6e14


def computation(evidence: Evidence) -> Drawn:
    """Draw validation accuracy against operations: median and range over the seeds. Each study has a dash of its own."""
    figure = style.new_figure(0.75 * WIDTH, 3.8, evidence)
    paper = printed_value("table1", "cifar10", "accuracy") / 100
    axes = figure.subplots()
    parts, entries = [], []
    for study, dash in zip(evidence.at_hand(), DASHES, strict=False):
        history = evidence.frame(study, "history.csv")
        for cell, variants in evidence.expected[study]["cells"].items():
            by_epoch = history[history["cell"] == cell].groupby("epoch")
            if "length" in variants or not len(by_epoch):
                continue
            method = variants.get("method", variants.get("kernel"))
            look: dict[str, Any] = {"color": style.model_style(method).colour, "ls": dash}
            curve = by_epoch["validation_accuracy"].agg(median="median", low="min", high="max", n="count")
            so_far = by_epoch[["operations", "seconds"]].median()
            curve = curve.assign(operations=so_far["operations"], minutes=so_far["seconds"] / 60).reset_index()
            axes.plot(curve["operations"], curve["median"], lw=1.3, **look)
            axes.fill_between(curve["operations"], curve["low"], curve["high"], color=look["color"], alpha=0.2, lw=0)
            parts.append(curve.assign(name=study, cell=cell))
            title = model_title(method) if method in MODEL_OF else VARIANT_TITLES[method]
            entries.append(Line2D([], [], lw=1.5, label=f"{title}, {study}", **look))
    axes.axhline(paper, color="0.3", ls=":", lw=1)
    axes.set(xscale="log", xlabel="Floating-point operations (trillions)", ylabel="Validation accuracy (%)")
    axes.plot(JORDAN_OPERATIONS, JORDAN_ACCURACY, "k*", ms=8)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda operations, _: f"{operations / 1e12:g}")
    axes.yaxis.set_major_formatter(style.per_cent)
    entries += [
        Line2D([], [], color="0.3", ls=":", lw=1, label=f"the paper's accuracy ({100 * paper:.2f} %)"),
        Line2D([], [], color="k", ls="", marker="*", ms=8, label=f"Jordan 2024 ({100 * JORDAN_ACCURACY:.1f} %)"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=2)
    return figure, parts


REFERENCE_COLUMNS = ["dataset", "study", "cell", "model", "references", "mean", "sd", "n"]
NUMBERS_OF = re.compile(r"log_loss_(?:scaled|calibrated)(?:_of_(\d+))?")
"""Log loss after a fit on validation data, with all references or with so many of each class."""


def references(evidence: Evidence) -> Drawn:
    """Draw log loss against the references of a class, a panel a study: mean and sd over seeds or folds.

    A model without references is a level line.
    """
    studies = evidence.at_hand()
    figure = style.new_figure(min(WIDTH, 1.8 + 2 * len(studies)), 2.8, evidence)
    panels = figure.subplots(1, len(studies), squeeze=False)[0]
    parts = []
    for axes, study in zip(panels, studies, strict=True):
        values = evidence.frame(study, "metrics.csv")
        asked = values["metric"].str.fullmatch(NUMBERS_OF.pattern) & printed_reading(values)
        shown = values[asked].rename(columns={"cell": "model"})
        number = pd.to_numeric(shown["metric"].str.extract(NUMBERS_OF, expand=False).astype(object))
        ticks = sorted(set(number.dropna()))
        shown = shown.assign(references=number, place=number.map(ticks.index, na_action="ignore").fillna(len(ticks)))
        styles = style.model_styles(shown["model"])
        voting = shown["model"].isin(shown.loc[number.notna(), "model"])
        style.curves(axes, shown[voting], "place", "value", styles, marker="o", ms=3, mew=0)
        for model, level in shown[~voting].groupby("model")["value"].mean().items():
            axes.axhline(level, color=styles[str(model)].colour, ls=styles[str(model)].dash, lw=1)
        axes.set_xticks(range(len(ticks) + 1), [*(f"{tick:g}" for tick in ticks), "all"])
        axes.set_xlabel("References a class")
        axes.set_title(style.short_title(evidence, study, 20), fontsize=8)
        found = shown.groupby(["model", "references"], dropna=False, sort=False)["value"].agg(
            mean="mean", sd="std", n="count"
        )
        parts.append(found.reset_index().assign(name=study))
    panels[0].set_ylabel("Log loss, calibrated")
    models = [model for part in parts for model in part["model"]]
    entries = style.handles(style.model_styles(models), lw=1.5)
    figure.legend(handles=entries, loc="outside lower center", ncols=min(4, 2 * len(studies)))
    return figure, parts


VERDICT_COLUMNS = [
    "claim", "title", "dataset", "study", "model", "quantity", "target", "number", "from", "distance", "to", "limit", "verdict",
    "qualifier",
]  # fmt: skip
COLOURS = {
    Outcome.REPRODUCED: BLUE,
    Outcome.REACHED: GREEN,
    Outcome.IN_PART: "#8c4f80",
    Outcome.NOT_REPRODUCED: VERMILION,
    Outcome.INCONCLUSIVE: "0.25",
    Outcome.DEPENDS: "#a06e00",
    Outcome.NOT_TESTABLE: "#a0a0a0",
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
    rows = [row for claim in judged for row in _numbers(claim, evidence)]
    figure = style.new_figure(WIDTH, ROW * len(judged) + 0.8, evidence)
    axes = figure.subplots()
    for line, claim in enumerate(judged):
        _draw(axes, line, claim, [row for row in rows if row["claim"] == claim["id"]])
    axes.axvline(0, color="0.3", lw=0.8, zorder=1)
    axes.axvspan(0, FARTHEST, color="#eef4f9", lw=0, zorder=0)
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set(xlim=(-FARTHEST, FARTHEST), ylim=(len(judged) - 0.4, -0.6))
    axes.set_xticks([-10, -1, 0, 1, 10], ["−10", "−1", "0", "+1", "+10"])
    axes.set_xlabel("distance from the threshold, in margins (logarithmic beyond 1)")
    axes.set_title("against the claim  |  for the claim", fontsize=SMALL)
    axes.set_yticks(range(len(judged)), [textwrap.fill(f"{claim['id']}  {claim['title']}", TITLE) for claim in judged])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    return figure, [pd.DataFrame(rows)]


def _numbers(claim: Mapping[str, Any], evidence: Evidence) -> list[dict[str, Any]]:
    """Return a row for each number that decides a claim, with its distance from the threshold; one without any if none does."""
    shared = {**claim, "claim": claim["id"], "verdict": claim["outcome"]}
    rows = []
    for estimate in [estimate for estimate in claim["estimates"] if estimate["decides"]]:
        name, dataset = estimate["name"], evidence.dataset_of(estimate["name"])
        study, model = None if name == dataset else name, estimate["model"] or None
        row = {**shared, **estimate, "dataset": dataset, "study": study, "model": model, "number": estimate["text"]}
        del row["name"]
        if estimate["margins"]:
            threshold, limit = estimate["holds"]
            row["from"], row["distance"], row["to"] = (margin - threshold for margin in estimate["margins"])
            row["limit"] = None if limit is None else limit - threshold
        rows.append(row)
    return rows or [shared]


def _draw(axes: Axes, line: int, claim: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    colour, offsets = COLOURS[claim["outcome"]], 0.4 * (np.arange(len(rows)) - (len(rows) - 1) / 2)
    beside: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    for row, y in zip([row for row in rows if "number" in row], line + offsets, strict=False):
        text = f"{row['number']}, {row['target']}" if row["target"] else row["number"]
        if "distance" in row:
            low, mean, high = np.clip([row["from"], row["distance"], row["to"]], -FARTHEST, FARTHEST)
            axes.plot([low, high], [y, y], color=colour, lw=1.6)
            axes.plot([mean], [y], "o", color=colour, ms=4.5, mew=0)
            axes.plot([row["limit"] or np.nan], [y], "|", color="0.3", ms=12)
        else:
            axes.annotate("no interval", (0, y), (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
            text = f"{text} ({row['quantity']})"
        unbroken = text.replace(", +", ",\u00a0+").replace(", −", ",\u00a0−")
        axes.annotate(textwrap.fill(unbroken, NUMBER), (1, y), (NUMBERS, 0), fontsize=SMALL, **beside)
    words = "\n".join(filter(None, [claim["outcome"], claim["qualifier"]]))
    axes.annotate(words, (1, line), (VERDICTS, 0), color=colour, fontsize=SMALL, fontweight="bold", **beside)
