"""Supplementary figures of accuracy: votes about single images, kernels and targets, reliability, decision curves."""

import base64
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from replication.report.evidence import Evidence
from replication.report.figures import style
from replication.report.figures.style import WIDTH, Drawn
from replication.report.labels import RULES, VARIANT_TITLES, Metric
from replication.report.statistics import interval
from replication.report.tables.layout import by_variants, rows_by
from replication.runs.columns import COLUMNS as FILES

RELIABILITY_COLUMNS = ["dataset", "model", "kind", "mapping", "bin", "n", "confidence", "accuracy"]
MAPPINGS = {"raw": "as given", "calibrated": "calibrated"}
RELIABLE = ("clai-m", "clai-c", "cross-entropy", "student-t-mixture", "supervised-contrastive")
"""Models whose reliability is drawn, at most four of a dataset, in order; of a user's own datasets every model is."""
FEWEST_IN_BIN = 50  # samples; a share of fewer says little

ABLATION_COLUMNS = ["dataset", "model", "rule", "metric", "mean", "low", "high", "n"]
TARGET_COLOURS = {"zero": style.BLUE, "product": style.VERMILION}
ABLATION_METRICS = {"accuracy": "Accuracy (%)", "ece_scaled": "ECE after temperature scaling"}

DECISION_COLUMNS = ["dataset", "model", "threshold", "net_benefit", "gain", "sd", "n"]
DECISION_PANELS = {
    "CLaI and the same encoder": ["clai-m", "clai-c", "cross-entropy", "supervised-contrastive"],
    "Models of embeddings or kernels": ["student-t-mixture", "deep-kernel-gp", "gp"],
    "Models of hourly inputs": ["gradient-boosting", "logistic-regression", "constant"],
}
"""Models by panel, so that curves that lie close together stand apart; models that are not named here join the last one."""

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


def ablation(evidence: Evidence) -> Drawn:
    """Draw the mean over seeds of each kernel and target with its 95 % interval, a column a decision rule."""
    (study,) = evidence.expected
    metrics = by_variants(evidence, study)
    kernels = [name for name in VARIANT_TITLES if name in set(metrics["kernel"])]
    targets = [name for name in TARGET_COLOURS if name in set(metrics["target"])]
    figure = style.new_figure(WIDTH, 4.4, evidence)
    panels = figure.subplots(len(ABLATION_METRICS), len(RULES), sharey="row", sharex=True)
    cells = [f"{kernel}_{target}" for target in targets for kernel in kernels]
    rows: list[dict[str, Any]] = []
    for line, (metric, heading) in zip(panels, ABLATION_METRICS.items(), strict=True):
        for axes, rule in zip(line, RULES, strict=True):
            shown = metrics[(metrics["rule"] == rule) & (metrics["metric"] == metric)].dropna(subset="value")
            if not shown.empty:
                sns.pointplot(shown, x="kernel", y="value", hue="target", order=kernels, hue_order=targets,
                              palette=TARGET_COLOURS, errorbar=_t_interval, dodge=0.44 if len(targets) > 1 else False,
                              linestyle="none", markersize=3.2, linewidth=1.1, legend=False, ax=axes)  # fmt: skip
            axes.set_xticks(range(len(kernels)), kernels, rotation=45, ha="right", rotation_mode="anchor")
            axes.set(xlim=(-0.5, len(kernels) - 0.5), ylabel=heading if rule == RULES[0] else "", xlabel="")
            axes.grid(axis="x", visible=False)
            rows += rows_by(shown, [Metric(metric, heading)], {"model": cells}, {"dataset": study, "rule": rule})
    frame = pd.DataFrame(rows)
    # A t-interval of three seeds can pass below 0, which no error does.
    errors = frame.loc[frame["metric"] == "ece_scaled", ["mean", "high"]].to_numpy(dtype=float)
    panels[0, 0].yaxis.set_major_formatter(style.per_cent)
    panels[1, 0].set_ylim(0, 1.08 * np.nanmax(errors))
    for top, bottom, rule in zip(*panels, RULES, strict=True):
        top.set_title(f"rule: {rule}")
        bottom.set_xlabel("Kernel")
        bottom.set_visible(bottom.has_data())
        top.tick_params(labelbottom=not bottom.has_data())
    colours = [(TARGET_COLOURS[target], f"target {target}") for target in targets]
    entries = [Line2D([], [], marker="o", ms=3.2, lw=1.1, color=colour, label=text) for colour, text in colours]
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries))
    return figure, [frame]


def _t_interval(values: pd.Series) -> tuple[float, float]:
    """Return the 95 % t-interval of the mean of values of different seeds, as seaborn's `errorbar`."""
    around = interval(pd.Series(values.to_numpy()).rename_axis("seed"))
    return around.low, around.high


def decision_curves(evidence: Evidence) -> Drawn:
    """Draw net benefit over that of the better of all alarms and none, mean and sd over folds, a panel a group of models.

    `gain` is this difference, and `sd` its spread; the net benefits themselves would nearly coincide.
    """
    datasets = evidence.at_hand()
    figure = style.new_figure(WIDTH, 0.9 + 2.1 * len(datasets), evidence)
    panels = figure.subplots(len(datasets), len(DECISION_PANELS), squeeze=False, sharex=True, sharey="row")
    named = {model for models in DECISION_PANELS.values() for model in models}
    parts = []
    for line, dataset in zip(panels, datasets, strict=True):
        measured = evidence.frame(dataset, "decision.csv")
        measured["gain"] = measured["net_benefit"] - measured["always"].clip(lower=0)
        of_models = measured.dropna(subset="gain").groupby(["model", "threshold"], as_index=False)
        means = of_models.agg(
            net_benefit=("net_benefit", "mean"), gain=("gain", "mean"), sd=("gain", "std"), n=("gain", "count")
        )
        for axes, (heading, models) in zip(line, DECISION_PANELS.items(), strict=True):
            others = set(means["model"]) - named if axes is line[-1] else set()
            styles = style.of_models(set(means["model"]) & set(models) | others)
            axes.axhline(0, color="0.6", lw=0.8)
            style.curves(axes, measured, "threshold", "gain", styles, marker="o", ms=3.5, mew=0, lw=1.2,
                   err_kws={"alpha": 0.15, "lw": 0})  # fmt: skip
            axes.set_title(f"{style.short_title(evidence, dataset)}\n{heading}", fontsize=8)
        line[0].set_ylabel("Net benefit gained\n(true alarms per hour)")
        parts.append(means.assign(dataset=dataset))
    for axes in panels[-1]:
        axes.set_xlabel("Alarm threshold (probability)")
    drawn = [model for part in parts for model in part["model"]]
    entries = style.handles(style.of_models(drawn), marker="o", ms=2.5)
    figure.legend(handles=entries, loc="outside lower center", ncols=4, handlelength=2.6)
    return figure, parts


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
