"""Figures 3 and S10: training curves with the floors of their losses."""

import textwrap
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from replication.report.evidence import Evidence
from replication.report.figures.parts import Drawn, band, new_figure, short_title
from replication.runs.models import CLAI, MODELS

CELLS = {"clai-m": "full_zero", "clai-c": "cosine_zero"}
"""The models' names in the study of figure S10."""
TITLE = 34
"""Letters of a line of a title."""
COLUMNS = ["dataset", "model", "epoch", "quantity", "mean", "sd", "n"]


def draw(evidence: Evidence) -> Drawn:
    """Draw training loss with each kernel's floor (top) and validation accuracy (bottom): mean and sd over seeds."""
    datasets = [dataset for dataset in evidence.shown() if evidence.has(dataset)]
    return _curves(evidence, datasets, {model: model for model in CLAI})


def draw_long(evidence: Evidence) -> Drawn:
    """Draw the same of a study with the epochs of the paper's figure 3."""
    return _curves(evidence, evidence.at_hand(), CELLS)


def _curves(evidence: Evidence, datasets: Sequence[str], names: Mapping[str, str]) -> Drawn:
    """Draw a column of panels for each dataset or study; `names` are those of the models there."""
    figure = new_figure(max(3.6, 2.6 * len(datasets)), 4.2, evidence)
    panels = figure.subplots(2, len(datasets), squeeze=False, sharex="col")
    parts = []
    for column, dataset in enumerate(datasets):
        history = evidence.frame(dataset, "history.csv")
        top, bottom = panels[0, column], panels[1, column]
        for model, name in names.items():
            of_model, style = history[history["model"] == name], MODELS[model]
            for axes, quantity in ((top, "loss"), (bottom, "validation_accuracy"), (top, "floor")):
                curve = of_model.groupby("epoch")[quantity].agg(["mean", "std", "count"]).dropna(subset=["mean"])
                if quantity == "floor":
                    axes.plot(curve.index, curve["mean"], ls=":", lw=1.2, color=style.colour)
                else:
                    axes.plot(curve.index, curve["mean"], color=style.colour, ls=style.dash, lw=1.5)
                    band(axes, curve.index, curve["mean"], curve["std"], style.colour)
                named = curve.rename(columns={"std": "sd", "count": "n"}).reset_index()
                parts.append(named.assign(dataset=dataset, model=name, quantity=quantity))
        top.set_title("\n".join(textwrap.wrap(short_title(evidence, dataset), TITLE)))
        top.set_ylim(bottom=0)
        bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
        bottom.set_xlabel(f"Epoch (of {history['epoch'].max()})")
    panels[0, 0].set_ylabel("Training loss")
    panels[1, 0].set_ylabel("Validation accuracy")
    handles = [Line2D([], [], color=MODELS[m].colour, ls=MODELS[m].dash, lw=1.5, label=MODELS[m].title) for m in CLAI]
    handles.append(Line2D([], [], color="0.3", ls=":", lw=1.2, label="floor of the loss (same colour)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(parts)
