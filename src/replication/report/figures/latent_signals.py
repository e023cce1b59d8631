"""Figures 4 and S7: latent signals of one ICU stay."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, band, new_figure, short_title, write_reason
from replication.runs.models import CLAI, MODELS

COLUMNS = ["dataset", "model", "hour", "signal", "value", "sd", "event"]
# The paper draws CLaI beside a Gaussian process and does not say which kernel CLaI has: both are shown.
PROCESS = "gp"
EVENT = "0.85"
TITLE = 34
"""Characters of a line of a title."""


def draw(evidence: Evidence) -> Drawn:
    """Draw, for each cohort at hand, embeddings of CLaI-M and CLaI-C and the Gaussian process's latent mean with its sd."""
    datasets, models = evidence.at_hand(), [*CLAI, PROCESS]
    figure = new_figure(WIDTH, 0.5 + 2.2 * len(datasets), evidence)
    panels = figure.subplots(len(datasets), len(models), squeeze=False)
    letters = iter("abcdefghijkl")
    parts = []
    for dataset, line in zip(datasets, panels, strict=True):
        signals = evidence.frame(dataset, "signals.csv")
        for axes, model in zip(line, models, strict=True):
            of_model = signals[signals["model"] == model]
            data = "\n".join(textwrap.wrap(short_title(evidence, dataset), TITLE))
            axes.set_title(f"({next(letters)}) {MODELS[model].title}\n{data}", fontsize=8)
            if of_model.empty:
                write_reason(axes, f"no signals of {MODELS[model].title} in the evidence")
                continue
            _shade_event(axes, of_model)
            _draw_signals(axes, of_model, MODELS[model].colour)
            axes.set_xlabel("Time since admission (h)")
            axes.set_ylabel("Latent mean (probit scale)" if model == PROCESS else "Embedding (no unit)")
            axes.margins(x=0.01)
            parts.append(of_model.assign(dataset=dataset))
    process = MODELS[PROCESS].colour
    handles = [
        *(Line2D([], [], color=MODELS[m].colour, lw=0.8, label=f"{MODELS[m].title}, a dimension") for m in CLAI),
        Patch(color=MODELS[CLAI[0]].colour, alpha=0.2, lw=0, label="range of dimensions (same colour)"),
        Line2D([], [], color=process, lw=1.4, label="latent mean"),
        Patch(color=process, alpha=0.25, lw=0, label="latent mean ± sd"),
        Patch(color=EVENT, lw=0, label="sepsis event"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(parts) if parts else pd.DataFrame(columns=COLUMNS)


def _draw_signals(axes: Axes, signals: pd.DataFrame, colour: str) -> None:
    """Draw each signal; several with the range between the outermost ones, one with its standard deviation."""
    several = len(signals["signal"].unique()) > 1
    if several:
        limits = signals.groupby("hour")["value"].agg(["min", "max"])
        axes.fill_between(limits.index, limits["min"], limits["max"], color=colour, alpha=0.12, lw=0)
    for _, signal in signals.groupby("signal"):
        axes.plot(
            signal["hour"], signal["value"], color=colour, lw=0.8 if several else 1.4, alpha=0.6 if several else 1
        )
        if signal["sd"].notna().any():
            band(axes, signal["hour"], signal["value"], signal["sd"], colour, alpha=0.25)


def _shade_event(axes: Axes, signals: pd.DataFrame) -> None:
    """Shade each run of consecutive hours with an event, from half an hour before to half an hour after."""
    hours = signals.drop_duplicates("hour").sort_values("hour")
    runs = (hours["event"] != hours["event"].shift()).cumsum()
    for _, run in hours[hours["event"] == 1].groupby(runs):
        axes.axvspan(run["hour"].min() - 0.5, run["hour"].max() + 0.5, color=EVENT, lw=0, zorder=0)
