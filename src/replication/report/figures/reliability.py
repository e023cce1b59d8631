"""Figure S1: reliability diagrams."""

import textwrap

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.figures.parts import WIDTH, Drawn, model_handles, new_figure, short_title, style_of
from replication.report.tables.layout import in_order

COLUMNS = ["dataset", "model", "kind", "mapping", "bin", "n", "confidence", "accuracy"]
MAPPINGS = {"raw": "as given", "calibrated": "calibrated"}
FEWEST_IN_BIN = 50  # samples; a share of fewer says little
PER_LINE = 4  # datasets side by side


def draw(evidence: Evidence) -> Drawn:
    """Draw the observed share against the predicted probability: a column a dataset, raw above calibrated probabilities."""
    datasets = evidence.at_hand()
    blocks = -(-len(datasets) // PER_LINE)
    width = min(len(datasets), PER_LINE)
    figure = new_figure(max(3.6, WIDTH * width / PER_LINE), 0.8 + 3.5 * blocks, evidence)
    panels = figure.subplots(2 * blocks, width, squeeze=False, sharex=True, sharey=True)
    for axes in panels.flat[:]:
        axes.set_visible(False)
    parts = []
    for index, dataset in enumerate(datasets):
        block, column = divmod(index, PER_LINE)
        pooled = pool_bins(of_one_kind(evidence.frame(dataset, "reliability.csv"))).assign(dataset=dataset)
        for offset, (mapping, wording) in enumerate(MAPPINGS.items()):
            axes = panels[2 * block + offset, column]
            axes.set_visible(True)
            axes.plot([0, 1], [0, 1], color="0.6", lw=0.8)
            for model in in_order(pooled["model"]):
                curve = pooled[(pooled["model"] == model) & (pooled["mapping"] == mapping)]
                curve = curve[curve["n"] >= FEWEST_IN_BIN]
                style = style_of(model)
                axes.plot(
                    curve["confidence"], curve["accuracy"], style.dash, marker="o", ms=2, lw=1, color=style.colour
                )
            axes.set_box_aspect(1)
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.tick_params(labelbottom=offset == 1, labelleft=column == 0)
            if column == 0:
                axes.set_ylabel(f"Observed share,\n{wording}")
        panels[2 * block, column].set_title("\n".join(textwrap.wrap(short_title(evidence, dataset), 22)), fontsize=8)
        panels[2 * block + 1, column].set_xlabel("Predicted probability", fontsize=7.5)
        parts.append(pooled)
    frame = pd.concat(parts)
    figure.legend(handles=model_handles(frame["model"]), loc="outside lower center", ncols=min(4, width + 1))
    return figure, frame


def of_one_kind(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return the bins of the positive rate where there are any, and those of the top label otherwise.

    The top label of a rare event is nearly always its absence, with a confidence near 1.
    """
    rates = reliability["kind"] == "positive-rate"
    return reliability[rates] if rates.any() else reliability


def pool_bins(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return bins pooled over seeds and folds: n summed, confidence and accuracy weighted by n."""
    weighted = reliability.assign(
        confidence=reliability["confidence"] * reliability["n"], accuracy=reliability["accuracy"] * reliability["n"]
    )
    keys = ["model", "kind", "mapping", "bin"]
    pooled = weighted.groupby(keys)[["n", "confidence", "accuracy"]].sum().reset_index()
    pooled["confidence"] /= pooled["n"]
    pooled["accuracy"] /= pooled["n"]
    return pooled
