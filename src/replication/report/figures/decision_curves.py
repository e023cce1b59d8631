"""Figure S4: decision curves of sepsis detection."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, band, model_handles, new_figure, short_title, style_of
from replication.report.tables.layout import in_order

COLUMNS = ["dataset", "model", "threshold", "net_benefit", "sd", "n"]
PANELS = {
    "CLaI and the same encoder": ["clai-m", "clai-c", "cross-entropy", "supervised-contrastive"],
    "Models of embeddings or kernels": ["student-t-mixture", "deep-kernel-gp", "gp"],
    "Models of hourly inputs": ["gradient-boosting", "logistic-regression", "constant"],
}
"""Models by panel, so that curves that lie close together stand apart; models that are not named here join the last one."""


def draw(evidence: Evidence) -> Drawn:
    """Draw net benefit against the threshold, mean and sd over folds: a row of panels a cohort, a panel a group of models."""
    datasets = evidence.at_hand()
    figure = new_figure(WIDTH, 0.9 + 2.1 * len(datasets), evidence)
    panels = figure.subplots(len(datasets), len(PANELS), squeeze=False, sharex=True, sharey="row")
    parts = []
    for line, dataset in zip(panels, datasets, strict=True):
        curves = evidence.frame(dataset, "decision.csv")
        by_threshold = curves.groupby(["model", "threshold"])["net_benefit"]
        means = by_threshold.agg(net_benefit="mean", sd="std", n="size").reset_index()
        always = curves.groupby("threshold")["always"].mean()
        named = {model for models in PANELS.values() for model in models}
        for axes, (heading, group) in zip(line, PANELS.items(), strict=True):
            others = set(means["model"]) - named if axes is line[-1] else set()
            axes.plot(always.index, always, color="0.6", lw=0.8)
            axes.axhline(0, color="0.6", lw=0.8, ls=":")
            for model in in_order(set(means["model"]) & set(group) | others):
                _draw_model(axes, means[means["model"] == model], model)
            axes.set_title(f"{short_title(evidence, dataset)}\n{heading}", fontsize=8)
        top = max([0.001, *(means["net_benefit"] + means["sd"].fillna(0))])
        line[0].set_ylim(-0.2 * top, 1.1 * top)
        line[0].set_ylabel("Net benefit\n(true alarms per hour)")
        parts.append(means.assign(dataset=dataset))
    for axes in panels[-1]:
        axes.set_xlabel("Alarm threshold (probability)")
    frame = pd.concat(parts)
    handles = [
        *model_handles(frame["model"]),
        Line2D([], [], color="0.6", lw=0.8, label="alarm in every hour"),
        Line2D([], [], color="0.6", lw=0.8, ls=":", label="no alarm"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure, frame


def _draw_model(axes: Axes, curve: pd.DataFrame, model: str) -> None:
    style = style_of(model)
    axes.plot(curve["threshold"], curve["net_benefit"], style.dash, marker="o", ms=2.5, lw=1.2, color=style.colour)
    band(axes, curve["threshold"], curve["net_benefit"], curve["sd"], style.colour, alpha=0.15)
