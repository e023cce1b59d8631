"""The paper's figures and one supplement: evidence -> matplotlib figure and a frame of exactly what it shows.

Sizes are in inches, text is at least 7 pt. A panel whose data is not at hand says what it needs; a figure of miniature
data carries a mark. `save` writes the same bytes for the same figure.
"""

import logging
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from clai.benchmark import analysis
from clai.report.captions import caption
from clai.report.evidence import RULES, Evidence, run_dataset, run_model
from clai.report.labels import CLASS_COLOURS, CLASS_LABELS, VARIANT_TITLES, model_title
from clai.report.statistics import interval, replicates
from clai.runs.models import CLAI, MODELS, Model

# PDF fonts are subset at every save, and each step would be reported.
logging.getLogger("fontTools").setLevel(logging.WARNING)

STYLE: Any = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "0.9", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
    "pdf.fonttype": 42, "svg.hashsalt": "clai", "savefig.dpi": 200, "figure.dpi": 100,
}  # fmt: skip

UNKNOWN = "#a0a0a0"
NEW_MODEL = Model("", (), colour=UNKNOWN)
"""How a model without an entry in the registry is drawn."""

# Drawn from the embeddings of one run: the first seed, and the first fold where there are folds.
ONE_RUN = ("figure1", "figure2", "figure4")

# The paper draws one embedding per dataset and does not name its model; its Mahalanobis form is the proposed one.
SCATTER_MODEL = "clai-m"
# The binary CLaI that the paper compares with the Gaussian process is its earlier, cosine form.
SIGNAL_MODEL = "clai-c"

Drawn = tuple[Figure, pd.DataFrame]


def _figure(width: float, height: float, evidence: Evidence) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if evidence.miniature:
        figure.suptitle("miniature synthetic data", fontsize=9, fontweight="bold", color="#B00020")
    return figure


def _say(axes: Axes, text: str) -> None:
    """An empty panel that says why it is empty."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("0.8")
    wrapped = "\n".join(textwrap.wrap(text, 30))
    axes.text(0.5, 0.5, wrapped, ha="center", va="center", transform=axes.transAxes, fontsize=8, color="0.35")


def _title(evidence: Evidence, dataset: str) -> str:
    return evidence.title(dataset).replace(" (miniature synthetic)", "")


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("0.8")


def _class_colour(label: int) -> str:
    """The paper's colour of a class index; of more classes than it has, they come round again."""
    return CLASS_COLOURS[int(label) % len(CLASS_COLOURS)]


def figure1(evidence: Evidence) -> Drawn:
    """Conditioning in stages: 2-D views of test samples before training and of phi(., k) for k = 1, 2, 3 and C.

    In the panel of k, class k has its colour, classes conditioned before it a paler one, the rest is unknown (grey).
    """
    (dataset,) = evidence.expected
    frame = evidence.frame(dataset, "stages.csv.gz")
    figure = _figure(7.2, 2.1, evidence)
    if frame.empty:
        _say(figure.subplots(), evidence.not_run(dataset))
        return figure, pd.DataFrame(columns=["dataset", "model", *frame, "status"])
    last = int(frame["stage"].max())
    shown = sorted({0, 1, 2, 3, last} & set(frame["stage"]))
    panels = figure.subplots(1, len(shown), gridspec_kw={"wspace": 0.22})
    parts = []
    for axes, stage in zip(np.atleast_1d(panels), shown, strict=True):
        view = frame[frame["stage"] == stage].copy()
        view["status"] = np.select(
            [view["label"] == stage - 1, view["label"] < stage - 1], ["current", "conditioned"], "unknown"
        )
        styles = {"unknown": (".", 12, 0.5), "conditioned": ("x", 9, 0.45), "current": ("+", 20, 0.95)}
        for status, (marker, size, alpha) in styles.items():
            points = view[view["status"] == status]
            colours = [UNKNOWN if status == "unknown" else _class_colour(label) for label in points["label"]]
            axes.scatter(points["x"], points["y"], s=size, c=colours, marker=marker, alpha=alpha, linewidths=0.7,
                         rasterized=True)  # fmt: skip
        _bare(axes)
        axes.set_box_aspect(1)
        axes.margins(0.08)
        axes.set_xlabel("before conditioning" if stage == 0 else f"$k={stage}$" + (" $=C$" if stage == last else ""))
        parts.append(view)
    data = pd.concat(parts).assign(dataset=dataset, model=SCATTER_MODEL)
    handles = [Line2D([], [], ls="", marker=".", color=UNKNOWN, label="Unknown")]
    for index, stage in enumerate(shown[1:]):
        name = CLASS_LABELS[dataset][stage - 1]
        colour = _class_colour(stage - 1)
        handles.append(Line2D([], [], ls="", marker="+", mew=1.3, color=colour, label=f"Class {stage} ({name})"))
        if index == 0:
            handles.append(Line2D([], [], ls="", marker="x", ms=4, color=_class_colour(stage - 1), alpha=0.5,
                                  label="conditioned before"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handletextpad=0.1, columnspacing=0.9)
    _arrows(figure, list(np.atleast_1d(panels)), shown)
    return figure, data


def _arrows(figure: Figure, panels: Sequence[Axes], stages: Sequence[int]) -> None:
    """An arrow labelled phi(., k) into every panel after the first; dotted where stages are left out."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for before, after, previous, stage in zip(panels, panels[1:], stages, stages[1:], strict=False):
        left, right = before.get_position(), after.get_position()
        start, end, height = left.x1 + 0.003, right.x0 - 0.003, (left.y0 + left.y1) / 2
        line = ":" if stage > previous + 1 else "-"
        figure.add_artist(
            FancyArrowPatch(
                (start, height), (end, height), arrowstyle="->", mutation_scale=8, lw=1, ls=line, color="0.2",
                shrinkA=0, shrinkB=0, transform=figure.transFigure,
            )
        )  # fmt: skip
        label = rf"$\phi(\cdot,{stage if stage != max(stages) else 'C'})$"
        figure.text((start + end) / 2, left.y1 + 0.02, label, ha="center", va="bottom", fontsize=8)


def figure2(evidence: Evidence) -> Drawn:
    """t-SNE of test embeddings, one panel per dataset, in the paper's colours; class index at the class median."""
    figure = _figure(7.2, 2.75, evidence)
    panels = figure.subplots(1, len(evidence.expected))
    parts = []
    for letter, axes, dataset in zip("abcdefgh", np.atleast_1d(panels), evidence.expected, strict=False):
        axes.set_box_aspect(1)
        axes.set_title(f"({letter}) {_title(evidence, dataset)}")
        frame = evidence.frame(dataset, "tsne.csv.gz")
        frame = frame[frame["model"] == SCATTER_MODEL]
        if frame.empty:
            _say(axes, evidence.not_run(dataset) if not evidence.has(dataset) else "no t-SNE in the evidence")
            continue
        colours = [_class_colour(label) for label in frame["label"]]
        axes.scatter(frame["x"], frame["y"], s=2.5, c=colours, linewidths=0, alpha=0.7, rasterized=True)
        for label, points in frame.groupby("label"):
            axes.text(points["x"].median(), points["y"].median(), str(label), ha="center", va="center", fontsize=9,
                      fontweight="bold", path_effects=[withStroke(linewidth=2, foreground="white")])  # fmt: skip
        _bare(axes)
        parts.append(frame.assign(dataset=dataset))
    return figure, pd.concat(parts) if parts else pd.DataFrame(columns=["model", "x", "y", "label", "dataset"])


def figure3(evidence: Evidence) -> Drawn:
    """Training loss with each kernel's floor (top) and held-out accuracy (bottom) per epoch, mean and sd over seeds."""
    datasets = evidence.at_hand()
    figure = _figure(max(3.6, 2.6 * len(datasets)), 4.2, evidence)
    if not datasets:
        _say(figure.subplots(), "; ".join(evidence.not_run(key) for key in evidence.expected))
        columns = ["dataset", "model", "epoch", "quantity", "mean", "sd", "n"]
        return figure, pd.DataFrame(columns=columns)
    panels = figure.subplots(2, len(datasets), squeeze=False, sharex="col")
    parts = []
    for column, dataset in enumerate(datasets):
        history = evidence.frame(dataset, "history.csv")
        top, bottom = panels[0, column], panels[1, column]
        for model in CLAI:
            mine = history[history["model"] == model]
            for axes, quantity in ((top, "loss"), (bottom, "validation_accuracy")):
                curve = mine.groupby("epoch")[quantity].agg(["mean", "std", "count"]).dropna(subset=["mean"])
                _curve(axes, curve, model)
                parts.append(_tidy(curve, dataset, model, quantity))
            floor = mine.groupby("epoch")["floor"].agg(["mean", "std", "count"]).dropna(subset=["mean"])
            if not floor.empty:
                top.plot(floor.index, floor["mean"], ls=":", lw=1.2, color=MODELS[model].colour)
                parts.append(_tidy(floor, dataset, model, "floor"))
        top.set_title(_title(evidence, dataset))
        top.set_ylim(bottom=0)
        bottom.set_xlabel("Epoch")
    panels[0, 0].set_ylabel("Training loss")
    panels[1, 0].set_ylabel("Held-out accuracy")
    handles = [Line2D([], [], color=MODELS[m].colour, ls=MODELS[m].dash, lw=1.5, label=MODELS[m].title) for m in CLAI]
    handles.append(Line2D([], [], color="0.3", ls=":", lw=1.2, label="floor of the loss (same colour)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(parts)


def _curve(axes: Axes, curve: pd.DataFrame, model: str) -> None:
    colour = MODELS[model].colour
    axes.plot(curve.index, curve["mean"], color=colour, ls=MODELS[model].dash, lw=1.5)
    low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
    axes.fill_between(curve.index, low, high, color=colour, alpha=0.2, lw=0)


def _tidy(curve: pd.DataFrame, dataset: str, model: str, quantity: str) -> pd.DataFrame:
    named = curve.rename(columns={"std": "sd", "count": "n"}).reset_index()
    return named.assign(dataset=dataset, model=model, quantity=quantity)[
        ["dataset", "model", "epoch", "quantity", "mean", "sd", "n"]
    ]


def figure4(evidence: Evidence) -> Drawn:
    """Latent signals of one ICU stay per cohort at hand: CLaI's (left), the Gaussian process's with its sd (right)."""
    datasets = evidence.at_hand()
    columns = ["dataset", "model", "hour", "signal", "value", "sd", "event"]
    if not datasets:
        figure = _figure(7.2, 2.4, evidence)
        for letter, axes, model in zip("ab", figure.subplots(1, 2), (SIGNAL_MODEL, "gp"), strict=True):
            axes.set_title(f"({letter}) {MODELS[model].title}")
            _say(axes, f"not run: needs {' or '.join(entry['needs'] for entry in evidence.expected.values())}")
        return figure, pd.DataFrame(columns=columns)
    figure = _figure(7.2, 0.3 + 2.3 * len(datasets), evidence)
    panels = figure.subplots(len(datasets), 2, squeeze=False)
    letters = iter("abcdefgh")
    parts = []
    for dataset, (left, right) in zip(datasets, panels, strict=True):
        signals = evidence.frame(dataset, "signals.csv")
        for axes, model in ((left, SIGNAL_MODEL), (right, "gp")):
            mine = signals[signals["model"] == model]
            axes.set_title(f"({next(letters)}) {MODELS[model].title}, {_title(evidence, dataset)}")
            if mine.empty:
                _say(axes, f"no signals of {MODELS[model].title} in the evidence")
                continue
            _shade_event(axes, mine)
            if model == SIGNAL_MODEL:
                width_of = mine.groupby("hour")["value"].agg(["min", "max"])
                axes.fill_between(
                    width_of.index, width_of["min"], width_of["max"], color=MODELS[model].colour, alpha=0.12, lw=0
                )
            for _, signal in mine.groupby("signal"):
                width, alpha = (1.4, 1.0) if model == "gp" else (0.8, 0.6)
                axes.plot(signal["hour"], signal["value"], color=MODELS[model].colour, lw=width, alpha=alpha)
                if signal["sd"].notna().any():
                    low, high = signal["value"] - signal["sd"], signal["value"] + signal["sd"]
                    axes.fill_between(signal["hour"], low, high, color=MODELS["gp"].colour, alpha=0.25, lw=0)
            axes.set_xlabel("Hour of the stay")
            axes.margins(x=0.01)
            parts.append(mine.assign(dataset=dataset)[columns])
        left.set_ylabel("Latent signals")
        right.set_ylabel("Latent mean $\\pm$ sd")
    handles = [Line2D([], [], color="0.85", lw=6, label="sepsis event")]
    figure.legend(handles=handles, loc="outside lower center")
    return figure, pd.concat(parts) if parts else pd.DataFrame(columns=columns)


def _shade_event(axes: Axes, signals: pd.DataFrame) -> None:
    """Shade each run of consecutive hours with an event, from half an hour before to half an hour after."""
    hours = signals.drop_duplicates("hour").sort_values("hour")
    runs = (hours["event"] != hours["event"].shift()).cumsum()
    for _, run in hours[hours["event"] == 1].groupby(runs):
        axes.axvspan(run["hour"].min() - 0.5, run["hour"].max() + 0.5, color="0.85", lw=0, zorder=0)


def _in_order(models: Iterable[str]) -> list[str]:
    """Each model once: those with a colour of their own in its order, then the others, all grey."""
    found = set(models)
    return [m for m in MODELS if m in found] + sorted(found - set(MODELS))


def _legend(models: Iterable[str]) -> list[Line2D]:
    return [
        Line2D([], [], color=MODELS.get(m, NEW_MODEL).colour, ls=MODELS.get(m, NEW_MODEL).dash, marker="o", ms=2.5,
               label=model_title(m))
        for m in _in_order(models)
    ]  # fmt: skip


FEWEST_IN_BIN = 50  # samples; a share of fewer says little


def figure_s1(evidence: Evidence) -> Drawn:
    """Reliability diagrams: rows are datasets at hand, columns the paper's probabilities and the calibrated ones."""
    datasets = evidence.at_hand()
    columns = ["dataset", "model", "mapping", "bin", "n", "confidence", "accuracy"]
    if not datasets:
        figure = _figure(4.8, 2.4, evidence)
        _say(figure.subplots(), "; ".join(evidence.not_run(key) for key in evidence.expected))
        return figure, pd.DataFrame(columns=columns)
    figure = _figure(4.8, 0.5 + 2.35 * len(datasets), evidence)
    panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True, sharey=True)
    parts, models = [], []
    for dataset, row in zip(datasets, panels, strict=True):
        pooled = pool_bins(evidence.frame(dataset, "reliability.csv")).assign(dataset=dataset)
        for axes, mapping, wording in zip(row, ("raw", "calibrated"), ("as given", "calibrated"), strict=True):
            axes.plot([0, 1], [0, 1], color="0.6", lw=0.8)
            for model in _in_order(pooled["model"]):
                curve = pooled[(pooled["model"] == model) & (pooled["mapping"] == mapping)]
                curve = curve[curve["n"] >= FEWEST_IN_BIN]
                axes.plot(curve["confidence"], curve["accuracy"], MODELS.get(model, NEW_MODEL).dash, marker="o", ms=2.5,
                          lw=1.2, color=MODELS.get(model, NEW_MODEL).colour)  # fmt: skip
                models.append(model)
            axes.set_box_aspect(1)
            axes.set_title(f"{_title(evidence, dataset)}:\n{wording}", fontsize=8)
        row[0].set_ylabel("Observed share")
        parts.append(pooled[columns])
    for axes in panels[-1]:
        axes.set_xlabel("Predicted probability")
    handles = _legend(models)
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure, pd.concat(parts)


TARGET_COLOURS = {"zero": "#0072B2", "product": "#D55E00", "masked": "#009E73"}
ABLATION_ROWS = {"accuracy": "Accuracy", "ece_scaled": "ECE after temperature scaling"}


def figure_s2(evidence: Evidence) -> Drawn:
    """Kernel against target for each decision rule: mean over seeds with its 95 % interval; one colour a target."""
    columns = ["dataset", "model", "rule", "metric", "mean", "low", "high", "n"]
    (study,) = evidence.expected
    if not evidence.has(study):
        figure = _figure(4.8, 2.4, evidence)
        _say(figure.subplots(), evidence.not_run(study))
        return figure, pd.DataFrame(columns=columns)
    metrics = evidence.frame(study, "metrics.csv")
    cells = [cell.split("_") for cell in metrics["model"].unique()]
    kernels = [v for v in VARIANT_TITLES if v in {kernel for kernel, _ in cells}]
    targets = [v for v in TARGET_COLOURS if v in {target for _, target in cells}]
    figure = _figure(7.2, 4.4, evidence)
    panels = figure.subplots(len(ABLATION_ROWS), len(RULES), sharey="row", sharex=True)
    rows = []
    for line, (metric, heading) in zip(panels, ABLATION_ROWS.items(), strict=True):
        for axes, rule in zip(line, RULES, strict=True):
            for shift, target in enumerate(targets):
                for position, kernel in enumerate(kernels):
                    cell = f"{kernel}_{target}"
                    chosen = metrics[
                        (metrics["model"] == cell) & (metrics["rule"] == rule) & (metrics["metric"] == metric)
                    ]
                    around = interval(replicates(chosen))
                    x = position + 0.22 * (shift - (len(targets) - 1) / 2)
                    if around.known:
                        axes.plot([x, x], [around.low, around.high], color=TARGET_COLOURS[target], lw=1.1)
                    axes.plot(x, around.mean, "o", ms=3.2, color=TARGET_COLOURS[target])
                    rows.append((study, cell, rule, metric, around.mean, around.low, around.high, around.n))
            axes.set_xticks(range(len(kernels)), kernels, rotation=45, ha="right", rotation_mode="anchor")
            axes.grid(axis="x", visible=False)
        line[0].set_ylabel(heading)
    for axes, rule in zip(panels[0], RULES, strict=True):
        axes.set_title(f"rule: {rule}")
    handles = [Line2D([], [], ls="", marker="o", color=TARGET_COLOURS[t], label=f"target {t}") for t in targets]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure, pd.DataFrame(rows, columns=columns)


def figure_s4(evidence: Evidence) -> Drawn:
    """Decision curves: net benefit of alarms above each calibrated probability, mean over folds, a panel a cohort."""
    columns = ["dataset", "model", "threshold", "net_benefit", "sd", "n"]
    datasets = evidence.at_hand()
    if not datasets:
        figure = _figure(4.8, 2.4, evidence)
        _say(figure.subplots(), "; ".join(evidence.not_run(key) for key in evidence.expected))
        return figure, pd.DataFrame(columns=columns)
    figure = _figure(max(6.6, 3.4 * len(datasets)), 3.1, evidence)
    parts, shown = [], []
    for axes, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        curves = evidence.frame(dataset, "decision.csv")
        means = (
            curves.groupby(["model", "threshold"])["net_benefit"]
            .agg(net_benefit="mean", sd="std", n="size")
            .reset_index()
        )
        for model in _in_order(means["model"]):
            mine = means[means["model"] == model]
            axes.plot(mine["threshold"], mine["net_benefit"], MODELS.get(model, NEW_MODEL).dash, marker="o", ms=2.5, lw=1.2,
                      color=MODELS.get(model, NEW_MODEL).colour)  # fmt: skip
            shown.append(model)
        always = curves.groupby("threshold")["always"].mean()
        axes.plot(always.index, always, color="0.6", lw=0.8)
        top = max([0.001, *means["net_benefit"]])
        axes.set_ylim(-0.25 * top, 1.1 * top)
        axes.axhline(0, color="0.6", lw=0.8, ls=":")
        axes.set_title(_title(evidence, dataset))
        axes.set_xlabel("Probability at which an alarm is sounded")
        axes.set_ylabel("Net benefit")
        parts.append(means.assign(dataset=dataset)[columns])
    handles = _legend(shown)
    handles.append(Line2D([], [], color="0.6", lw=0.8, label="alarm in every hour"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(parts)


SCHEDULE_DASHES = {"sequential-all": ":", "joint-all": "--", "joint-1": "-", "single": "-."}
METHOD_COLOURS = {
    "cosine": "#D55E00",
    "full": "#0072B2",
    "cross-entropy": "#009E73",
    "supervised-contrastive": "#CC79A7",
}


def figure_s3(evidence: Evidence) -> Drawn:
    """Held-out accuracy against encoder passes (left, mean and sd), test accuracy at the end (right, 95 % interval)."""
    columns = ["dataset", "model", "passes", "quantity", "mean", "sd", "low", "high", "n"]
    (study,) = evidence.expected
    if not evidence.has(study):
        figure = _figure(4.8, 2.4, evidence)
        _say(figure.subplots(), evidence.not_run(study))
        return figure, pd.DataFrame(columns=columns)
    history, metrics = evidence.frame(study, "history.csv"), evidence.metrics(study)
    cells = sorted(history["model"].unique(), key=lambda cell: [list(VARIANT_TITLES).index(v) for v in cell.split("_")])
    figure = _figure(7.2, 3.1, evidence)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
    rows = []
    for position, cell in enumerate(cells):
        method, schedule = cell.split("_")
        colour, dash = METHOD_COLOURS[method], SCHEDULE_DASHES[schedule]
        curve = history[history["model"] == cell].groupby("passes")["validation_accuracy"].agg(["mean", "std", "count"])
        left.plot(
            curve.index, curve["mean"], color=colour, ls=dash, lw=1.3, marker="o" if len(curve) == 1 else "", ms=4
        )
        left.fill_between(
            curve.index, curve["mean"] - curve["std"], curve["mean"] + curve["std"], color=colour, alpha=0.12, lw=0
        )
        rows += [
            (study, cell, p, "validation_accuracy", r["mean"], r["std"], np.nan, np.nan, int(r["count"]))
            for p, r in curve.iterrows()
        ]
        around = interval(replicates(metrics[(metrics["model"] == cell) & (metrics["metric"] == "accuracy")]))
        if around.known:
            right.plot([around.low, around.high], [position, position], color=colour, lw=1.3)
        right.plot(around.mean, position, "o", ms=4, color=colour)
        rows.append(
            (study, cell, curve.index.max(), "test_accuracy", around.mean, np.nan, around.low, around.high, around.n)
        )
    left.set_xscale("log")
    left.set_xlabel("Encoder passes over the training samples")
    left.set_ylabel("Held-out accuracy")
    right.set_yticks(range(len(cells)), [_cell_name(cell) for cell in cells])
    right.invert_yaxis()
    right.set_xlabel("Test accuracy after as many passes")
    methods = [m for m in METHOD_COLOURS if any(cell.startswith(f"{m}_") for cell in cells)]
    handles = [Line2D([], [], color=METHOD_COLOURS[m], lw=1.5, label=VARIANT_TITLES[m]) for m in methods]
    schedules = [s for s in SCHEDULE_DASHES if any(cell.endswith(f"_{s}") for cell in cells)]
    epochs = {s: history[history["model"].str.endswith(f"_{s}")]["epoch"].max() for s in schedules}
    handles += [
        Line2D([], [], color="0.3", ls=SCHEDULE_DASHES[s], lw=1.3, label=VARIANT_TITLES[s])
        if epochs[s] > 1
        else Line2D([], [], color="0.3", ls="", marker="o", ms=4, label=f"{VARIANT_TITLES[s]} (one epoch)")
        for s in schedules
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure, pd.DataFrame(rows, columns=columns)


def _cell_name(cell: str) -> str:
    """Of a study, short enough for an axis: cosine, joint, one reference."""
    method, schedule = cell.split("_")
    return method.replace("-", " ") if schedule == "single" else f"{method}, {VARIANT_TITLES[schedule]}"


def pool_bins(reliability: pd.DataFrame) -> pd.DataFrame:
    """Bins pooled over seeds and folds: n summed, confidence and accuracy weighted by n."""
    weighted = reliability.assign(
        confidence=reliability["confidence"] * reliability["n"], accuracy=reliability["accuracy"] * reliability["n"]
    )
    keys = ["model", "mapping", "bin"]
    pooled = weighted.groupby(keys)[["n", "confidence", "accuracy"]].sum().reset_index()
    pooled["confidence"] /= pooled["n"]
    pooled["accuracy"] /= pooled["n"]
    return pooled


WORK_STYLES = {
    "printed": ("#000000", "o"),
    "sequential": ("#D55E00", "s"),
    "joint": ("#0072B2", "^"),
    "linear": ("#009E73", "v"),
}
SAMPLED_RULES = {"printed": "#0072B2", "balanced": "#E69F00", "parzen": "#CC79A7"}


def figure_s5(evidence: Evidence) -> Drawn:
    """Seconds (top) and peak memory (bottom) of an epoch against M and C, with what counted passes predict; right, what sampled
    references cost: the error of a vote with the one that it states, and the share of changed decisions."""
    columns = ["dataset", "model", "quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
    (dataset,) = evidence.expected
    if not evidence.has(dataset):
        figure = _figure(4.8, 2.4, evidence)
        _say(figure.subplots(), evidence.not_run(dataset))
        return figure, pd.DataFrame(columns=columns)
    measured = evidence.frame(dataset, "benchmark.csv")
    figure = _figure(7.2, 4.6, evidence)
    panels = figure.subplots(2, 3)
    curves = analysis.curves(measured)
    for line, (quantity, heading) in zip(
        panels, {"seconds": "Seconds an epoch", "peak_memory_mb": "Peak memory (MiB)"}.items(), strict=True
    ):
        for axes, comparison, label in zip(line, ("batches", "classes"), ("Batches $M$", "Classes $C$"), strict=False):
            for variant, (colour, marker) in WORK_STYLES.items():
                own = curves[(curves["quantity"] == quantity) & (curves["comparison"] == comparison)]
                own = own[own["variant"] == variant].sort_values("x")
                axes.plot(own["x"], own["predicted"], color=colour, lw=0.9)
                axes.vlines(own["x"], own["low"], own["high"], color=colour, lw=1.2)
                axes.plot(own["x"], own["mean"], marker, ms=3.5, color=colour, ls="")
            axes.set_xscale("log", base=2)
            ticks = sorted(curves[curves["comparison"] == comparison]["x"].unique())
            axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
            if quantity == "seconds":
                axes.set_yscale("log")
                axes.yaxis.set_minor_formatter(NullFormatter())
            else:
                axes.set_ylim(0, 1.15 * curves[curves["quantity"] == quantity]["high"].max())
                axes.set_xlabel(label)
        line[0].set_ylabel(heading)
    sampled = analysis.sampling(measured)
    for axes, quantities, heading in zip(
        panels[:, 2], (("error", "stated"), ("changed",)), ("Error of the vote", "Decisions changed"), strict=True
    ):
        chosen = sampled[(sampled["quantity"] == quantities[0]) & (sampled["mean"] > 0)]
        for rule, share in chosen[["rule", "share"]].drop_duplicates().itertuples(index=False):
            own = chosen[(chosen["rule"] == rule) & (chosen["share"] == share)]
            axes.plot(own["n"], own["mean"], "o", ms=3.5, color=SAMPLED_RULES[rule],
                      mfc="white" if share < sampled["share"].max() else None)  # fmt: skip
            other = sampled[(sampled["rule"] == rule) & (sampled["share"] == share)]
            stated = other[(other["quantity"] == quantities[-1]) & (other["mean"] > 0)]
            axes.plot(stated["n"], stated["mean"], color=SAMPLED_RULES[rule], lw=0.9 if len(quantities) > 1 else 0.5)
        axes.set_xscale("log")
        axes.set_ylabel(heading)
    panels[0, 2].set_yscale("log")
    panels[1, 2].set_xlabel("Sampled references")
    handles = [
        Line2D([], [], color=c, marker=m, ms=3.5, lw=0.9, label=analysis.VARIANT_TITLES[v])
        for v, (c, m) in WORK_STYLES.items()
    ]
    handles += [
        Line2D([], [], color=c, marker="o", ms=3.5, lw=0.9, label=f"rule: {r}") for r, c in SAMPLED_RULES.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    sampled = sampled.rename(columns={"rule": "variant", "n": "x"}).assign(comparison=_sampling_name(sampled))
    frame = pd.concat([curves, sampled[["quantity", "comparison", "variant", "x", "mean"]]])
    return figure, frame.assign(dataset=dataset, model="measurements")[columns]


def _sampling_name(sampled: pd.DataFrame) -> list[str]:
    return [
        f"sampling, {c:g} classes, share {share:g}" for c, share in zip(sampled["C"], sampled["share"], strict=True)
    ]


FIGURES: dict[str, Callable[[Evidence], Drawn]] = {
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "figureS1": figure_s1,
    "figureS2": figure_s2,
    "figureS3": figure_s3,
    "figureS4": figure_s4,
    "figureS5": figure_s5,
}


def render(name: str, evidence: Evidence, fixed_caption: str) -> tuple[Figure, pd.DataFrame, str, list[dict[str, Any]]]:
    """One of `FIGURES`: the figure, what it shows, its caption and the records of the runs behind it."""
    with mpl.rc_context(STYLE):
        figure, frame = FIGURES[name](evidence)
    frame = frame[["dataset", *[column for column in frame if column != "dataset"]]].reset_index(drop=True)
    runs = evidence.runs_behind(frame)
    if name in ONE_RUN:
        runs = [run for run in runs if _is_first(run, runs)]
    return figure, frame, caption(fixed_caption, evidence, runs), runs


def _is_first(run: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> bool:
    key = run_dataset(run), run_model(run)
    others = [other for other in runs if (run_dataset(other), run_model(other)) == key]
    return run is min(others, key=lambda other: (other["seed"], other["fold"] or 0))


def save(figure: Figure, path: Path) -> None:
    """Write a PDF or PNG without dates, so that the same figure gives the same bytes."""
    metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(path, metadata=metadata)
