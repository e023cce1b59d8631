"""Figures 1 to 4 of the paper."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from sklearn.cluster import DBSCAN

from replication.report.claims.computed import CIFAR10_GROUPS
from replication.report.claims.readings import TARGETS
from replication.report.evidence import Evidence
from replication.report.figures import style
from replication.report.figures.style import WIDTH, Drawn
from replication.report.labels import MODEL_OF, models_in_order
from replication.runs.registry import CLAI, MODELS, PICTURED_MODEL, REPOSITORY_DATASETS

STAGE_COLUMNS = ["dataset", "stage", "x", "y", "label", "status", "model"]
# Marker, size and opacity of a sample, by what the stage k knows of its class.
STATUSES = {"unknown": (".", 12, 0.5), "conditioned": ("x", 9, 0.45), "current": ("+", 20, 0.95)}
STATUS_TITLES = {"unknown": "class after $k$", "current": "class $k$ of the panel", "conditioned": "class before $k$"}
EMBEDDING_COLUMNS = ["dataset", "model", "x", "y", "label"]
TRAINING_COLUMNS = ["dataset", "study", "cell", "model", "epoch", "quantity", "mean", "sd", "n"]
SIGNAL_COLUMNS = ["dataset", "model", "hour", "signal", "value", "sd", "low", "high", "stays", "event"]
# The paper draws CLaI beside a Gaussian process and does not say which kernel CLaI has: both are shown.
PROCESS = "gp"
EVENT = "0.85"
LATER = "0.83"
"""The grey of classes that a stage does not know yet, paler than that of any class."""
TITLE, NAME = 34, 15
"""Letters of a line of a title, and of the name of a class."""
NEAR, FAR, ISLAND = 0.04, 0.2, 0.25
"""Distance of neighbours on an island, and least distance of an island with a name of its own from its class's median, as shares
of a panel's width; and the least share of its class that such an island has."""


def stages(evidence: Evidence) -> Drawn:
    """Draw figure 1: 2-D views of test samples before training and of phi(., k) for k = 1, 2, 3 and C.

    In the panel of k, class k, to the right, and, paler, the classes before it have their colours; all others are grey.
    """
    (dataset,) = evidence.expected
    frame = evidence.frame(dataset, "stages.csv.gz")
    figure = style.new_figure(WIDTH, 2.15, evidence)
    figure.set_layout_engine("constrained", rect=(0, 0.17, 1, 0.83))  # two legends stand below
    if frame.empty:
        style.write_reason(figure.subplots(), "no stages in the evidence")
        return figure, []
    last = int(frame["stage"].max())
    shown = sorted({0, 1, 2, 3, last} & set(frame["stage"]))
    panels = list(np.atleast_1d(figure.subplots(1, len(shown), gridspec_kw={"wspace": 0.1})))
    parts = []
    for letter, axes, stage in zip("abcde", panels, shown, strict=False):
        axes.set_title(f"({letter})", fontsize=8, loc="left")
        view = frame[frame["stage"] == stage].copy()
        known = [view["label"] == stage - 1, view["label"] < stage - 1]
        if view.loc[known[0], "x"].mean() < view["x"].mean():  # The sign of a principal component is chance.
            view["x"] = -view["x"]
        view["status"] = np.select(known, ["current", "conditioned"], "unknown")
        for status, (marker, size, alpha) in STATUSES.items():
            points = view[view["status"] == status]
            colour = LATER if status == "unknown" else None
            edge = {"edgecolor": "face"} if marker == "." else {}
            style.scatter(axes, points, colour, marker=marker, s=size, alpha=alpha, linewidth=0.7, **edge)
        axes.set_box_aspect(1)
        axes.margins(0.08)
        asked = "C" if stage == last else stage
        axes.set_xlabel("before the encoder" if stage == 0 else rf"$k={asked}$: $\phi(\cdot, {asked})$")
        parts.append(view.assign(name=dataset, cell=PICTURED_MODEL))
    _stage_legends(figure, evidence.expected[dataset]["class_labels"])
    return figure, parts


def _stage_legends(figure: Figure, labels: Sequence[str]) -> None:
    squares = [
        Line2D([], [], ls="", marker="s", ms=4.5, color=style.class_colour(index), label=f"{index + 1} {label}")
        for index, label in enumerate(labels)
    ]
    figure.legend(handles=squares, loc="lower center", ncols=len(squares), handletextpad=0, columnspacing=0.6)
    glyphs = [
        Line2D([], [], ls="", marker=STATUSES[status][0], mew=1.1, color=LATER if status == "unknown" else "0.2",
               alpha=1 if status != "conditioned" else 0.6, label=title)
        for status, title in STATUS_TITLES.items()
    ]  # fmt: skip
    figure.legend(handles=glyphs, loc="lower center", bbox_to_anchor=(0.5, 0.09), ncols=len(glyphs), handletextpad=0.1)


def embeddings(evidence: Evidence) -> Drawn:
    """Draw figure 2: t-SNE of each dataset, or its substitute, in the paper's colours, with the names of classes."""
    datasets = evidence.shown()
    figure = style.new_figure(WIDTH, 2.6, evidence)
    panels = figure.subplots(1, len(datasets))
    parts = []
    for letter, axes, dataset in zip("abcdefgh", np.atleast_1d(panels), datasets, strict=False):
        axes.set_box_aspect(1)
        axes.set_title(
            f"({letter}) {style.short_title(evidence, dataset, 22)}{_in_place(evidence, dataset)}", fontsize=8
        )
        frame = evidence.frame(dataset, "tsne.csv.gz")
        frame = frame[frame["model"].isin(models_in_order(frame["model"])[:1])]
        if frame.empty:
            style.write_reason(axes, "no t-SNE in the evidence" if evidence.has(dataset) else evidence.not_run(dataset))
            continue
        style.scatter(axes, frame, s=2.5, linewidth=0, alpha=0.7)
        axes.margins(x=0.1)  # room for names
        if dataset == "cifar10":
            _outline_groups(figure, axes, frame)
        names = [textwrap.fill(str(name), NAME) for name in evidence.description(dataset)["classes"]]
        if dataset in REPOSITORY_DATASETS:
            names = _short(names)
        for label, points in frame.groupby("label"):
            for x, y, align in _places(points[["x", "y"]], np.ptp(axes.get_xlim())):
                axes.text(x, y, names[int(str(label))], ha="center", va=align, fontsize=7, parse_math=False,
                          path_effects=[withStroke(linewidth=2, foreground="white")])  # fmt: skip
        parts.append(frame.assign(name=dataset))
    return figure, parts


def _places(points: pd.DataFrame, width: float) -> list[tuple[float, float, str]]:
    """Return where the name of a class stands: at its median, and below its islands that are far from it.

    `width` is that of the panel. The third of each is the alignment.
    """
    x, y = points.median()
    places = [(x, y, "center")]
    number = DBSCAN(eps=NEAR * width).fit_predict(points)
    for island in (points[number == own] for own in range(number.max() + 1)):
        middle = island.median()
        if len(island) >= ISLAND * len(points) and np.hypot(*(middle - [x, y])) > FAR * width:
            places.append((middle["x"], island["y"].min(), "top"))
    return places


def _in_place(evidence: Evidence, dataset: str) -> str:
    """Return a line that names the paper's dataset whose place a substitute takes."""
    other = str(evidence.expected[dataset].get("substitute_for"))
    return f"\nin place of {evidence.expected[other]['title']}" if other in evidence.expected else ""


def _outline_groups(figure: Figure, axes: Axes, frame: pd.DataFrame) -> None:
    """Outline the densest two thirds of each group of claim 12: a third of its mass lies outside."""
    limits = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim()}
    for (group, classes), dash in zip(CIFAR10_GROUPS.items(), ("-", "--", ":"), strict=True):
        points = frame[frame["label"].isin(classes)]
        look = {"color": "0.15", "linewidths": 0.9, "linestyles": dash}
        sns.kdeplot(points, x="x", y="y", levels=[1 / 3], warn_singular=False, ax=axes, **look)
        axes.plot([], [], color="0.15", lw=0.9, ls=dash, label=group)
    axes.set(xlabel="", ylabel="", **limits)
    figure.legend(loc="outside lower center", ncols=len(CIFAR10_GROUPS), title="Outlined in (b)", title_fontsize=7)


def _short(classes: Sequence[str]) -> list[str]:
    """Return the last words of names, such as epithelium, where these tell the classes apart; else the names."""
    last = [name.split()[-1] for name in classes]
    return last if len(set(last)) == len(last) else list(classes)


def training(evidence: Evidence) -> Drawn:
    """Draw training, mean and sd over seeds: loss with each kernel's floor, loss above it, validation accuracy.

    Each dataset has a column of panels, and so has each target of the study with as many epochs as section IV-C names.
    """
    columns = _training_columns(evidence)
    if not columns:
        return style.without_data(evidence, "no training of CLaI in the evidence")
    figure = style.new_figure(min(WIDTH, max(3.6, 2.6 * len(columns))), 5.2, evidence)
    panels = figure.subplots(3, len(columns), squeeze=False, sharex="col")
    parts, drawn = [], set[str]()
    for (top, middle, bottom), (dataset, title, names) in zip(panels.T, columns, strict=True):
        history = evidence.frame(dataset, "history.csv")
        history = history.rename(columns={"cell": "model"})
        history = history[history["model"].isin(names.values())]
        if history.empty:
            for axes in (top, middle, bottom):
                style.write_reason(axes, "no training of CLaI in the evidence")
            continue
        history["above_floor"] = history["loss"] - history["floor"]
        styles = {name: style.model_style(model) for model, name in names.items()}
        drawn |= set(names)
        style.curves(top, history, "epoch", "loss", styles, lw=1.5)
        style.curves(top, history, "epoch", "floor", styles, lw=1.2, dashes=False, linestyle=":", errorbar=None)
        style.curves(middle, history[history["above_floor"] > 0], "epoch", "above_floor", styles, lw=1.5)
        style.curves(bottom, history, "epoch", "validation_accuracy", styles, lw=1.5)
        for name in styles:
            for quantity in ("loss", "above_floor", "validation_accuracy", "floor"):
                by_epoch = history[history["model"] == name].dropna(subset=quantity).groupby("epoch", as_index=False)
                curve = by_epoch[quantity].agg(mean="mean", sd="std", n="count")
                parts.append(curve.assign(name=dataset, cell=name, quantity=quantity))
        top.set_title(title, fontsize=7.5)
        top.set_ylim(bottom=0)
        middle.set_yscale("log")
        low, high = middle.get_ylim()
        middle.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 1.5, 2, 3, 5, 7)))
        middle.yaxis.set_major_formatter("{x:g}")
        middle.yaxis.set_minor_formatter(NullFormatter())
        bottom.yaxis.set_major_formatter(style.per_cent)
        bottom.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        bottom.set_xlabel(f"Epoch (of {history['epoch'].max()})")
    panels[0, 0].set_ylabel("Training loss")
    panels[1, 0].set_ylabel("Loss above its floor")
    panels[2, 0].set_ylabel("Validation accuracy (%)")
    entries = style.handles(style.model_styles(drawn), lw=1.5)
    entries.append(Line2D([], [], color="0.3", ls=":", lw=1.2, label="floor of the loss (same colour)"))
    figure.legend(handles=entries, loc="outside lower center", ncols=3)
    return figure, parts


def _training_columns(evidence: Evidence) -> list[tuple[str, str, dict[str, str]]]:
    """Return of each column of panels the dataset or study, the title, and by model its name in the evidence."""
    columns = []
    for dataset in [dataset for dataset in evidence.shown() if evidence.has(dataset)]:
        measured, title = set(evidence.frame(dataset, "history.csv")["cell"]), style.short_title(evidence, dataset, 26)
        kernels = {
            f"{title},\n{target} targets": {model: f"{kernel}_{target}" for kernel, model in MODEL_OF.items()}
            for target in TARGETS
        }
        named = kernels if "cells" in evidence.expected[dataset] else {title: dict(zip(CLAI, CLAI, strict=True))}
        for heading, names in named.items():
            there = {model: name for model, name in names.items() if name in measured}
            columns += [(dataset, heading, there)] if there or heading == title else []  # a dataset without CLaI, too
    return columns


def signals(evidence: Evidence) -> Drawn:
    """Draw figure 4: the signals of one stay, and the area between signals around the onset of events over all stays."""
    datasets = evidence.at_hand()
    figure = style.new_figure(WIDTH, 4.4 * len(datasets), evidence)
    halves = figure.subfigures(len(datasets), 2, squeeze=False, width_ratios=[1, 1.2])
    parts = []
    for dataset, (left, right) in zip(datasets, halves, strict=True):
        parts.append(_draw_stay(left, evidence.frame(dataset, "signals.csv")).assign(name=dataset))
        left.suptitle("(a) One stay", fontsize=9)
        parts.append(_draw_areas(right, evidence.frame(dataset, "areas.csv")).assign(name=dataset))
        right.suptitle(f"(b) {style.short_title(evidence, dataset, TITLE)}, stays with an event", fontsize=9)
    return figure, parts


def _draw_areas(figure: SubFigure, areas: pd.DataFrame) -> pd.DataFrame:
    """Draw the mean area of each model by hour around the onset, with its 95 % interval over stays."""
    axes = figure.subplots()
    if areas.empty:
        style.write_reason(axes, "no areas in the evidence")
        return areas
    styles = style.model_styles(areas["model"])
    style.curves(axes, areas, "since_onset", "area", styles, errorbar=None)
    for model, look in styles.items():
        own = areas[areas["model"] == model]
        axes.fill_between(own["since_onset"], own["low"], own["high"], color=look.colour, alpha=0.2, lw=0)
    axes.axvline(-0.5, color="0.5", lw=0.8)
    beside: Any = {"transform": axes.get_xaxis_transform(), "fontsize": 7, "color": "0.35"}
    axes.text(-0.3, 0.98, "event", va="top", **beside)
    axes.text(-0.3, 0.02, "the paper: falls", va="bottom", **beside)
    axes.set(xlabel="Hours since the event began", ylabel="Area between signals (mean of all hours: 1)")
    figure.legend(handles=style.handles(styles), loc="outside lower center", ncols=2)
    return areas.rename(columns={"area": "value", "since_onset": "hour"}).assign(signal="area")


def _draw_stay(figure: SubFigure, stay: pd.DataFrame) -> pd.DataFrame:
    models = [*CLAI, PROCESS]
    panels = figure.subplots(len(models), 1, sharex=True)
    for axes, model in zip(panels, models, strict=True):
        own, title = stay[stay["model"] == model], MODELS[model].title
        if own.empty:
            style.write_reason(axes, f"no signals of {title} in the evidence that may be shown")
            continue
        _draw_signals(axes, own, MODELS[model].colour)
        axes.set_title(f"{title}, {'mean and sd' if model == PROCESS else 'dimensions'}", fontsize=8)
        axes.set(xlabel="", ylabel="Probit scale" if model == PROCESS else "Embedding")
        axes.margins(x=0.01)
    panels[-1].set_xlabel("Time since admission (h)")
    figure.legend(handles=[Patch(color=EVENT, lw=0, label="event")], loc="outside lower center")
    return stay[stay["model"].isin(models)]


def _draw_signals(axes: Axes, signals: pd.DataFrame, colour: str) -> None:
    """Draw each signal; several with the range between the outermost ones, one with its standard deviation.

    Runs of consecutive hours with an event are shaded, from half an hour before to half an hour after.
    """
    hours = signals.drop_duplicates("hour").sort_values("hour")
    runs = (hours["event"] != hours["event"].shift()).cumsum()
    for _, run in hours[hours["event"] == 1].groupby(runs):
        axes.axvspan(run["hour"].min() - 0.5, run["hour"].max() + 0.5, color=EVENT, lw=0, zorder=0)
    several, by_hour = len(set(signals["signal"])) > 1, signals.groupby("hour")
    sd = 0 if several else by_hour["sd"].first()
    low, high = by_hour["value"].min() - sd, by_hour["value"].max() + sd
    axes.fill_between(low.index, low, high, color=colour, alpha=0.12 if several else 0.25, lw=0)
    lines = {"lw": 0.8, "alpha": 0.6} if several else {"lw": 1.4}
    sns.lineplot(signals, x="hour", y="value", units="signal", estimator=None, color=colour, ax=axes, **lines)
