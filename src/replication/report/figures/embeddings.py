"""Figure 2: t-SNE of test embeddings."""

import numpy as np
import pandas as pd
from matplotlib.patheffects import withStroke

from replication.report.evidence import Evidence
from replication.report.figures.parts import (
    EMBEDDING_MODEL,
    WIDTH,
    Drawn,
    class_colour,
    frame_only,
    new_figure,
    short_title,
    write_reason,
)

COLUMNS = ["dataset", "model", "x", "y", "label"]


def draw(evidence: Evidence) -> Drawn:
    """Draw a panel for each dataset, or its substitute, in the paper's colours; class indices stand at the medians."""
    datasets = evidence.shown()
    figure = new_figure(WIDTH, 2.75, evidence)
    panels = figure.subplots(1, len(datasets))
    parts = []
    for letter, axes, dataset in zip("abcdefgh", np.atleast_1d(panels), datasets, strict=False):
        axes.set_box_aspect(1)
        axes.set_title(f"({letter}) {short_title(evidence, dataset)}")
        frame = evidence.frame(dataset, "tsne.csv.gz")
        frame = frame[frame["model"] == EMBEDDING_MODEL]
        if frame.empty:
            reason = "no t-SNE in the evidence" if evidence.has(dataset) else evidence.not_run(dataset)
            write_reason(axes, reason)
            continue
        colours = [class_colour(label) for label in frame["label"]]
        axes.scatter(frame["x"], frame["y"], s=2.5, c=colours, linewidths=0, alpha=0.7, rasterized=True)
        for label, points in frame.groupby("label"):
            axes.text(points["x"].median(), points["y"].median(), str(label), ha="center", va="center", fontsize=9,
                      fontweight="bold", path_effects=[withStroke(linewidth=2, foreground="white")])  # fmt: skip
        frame_only(axes)
        parts.append(frame.assign(dataset=dataset))
    return figure, pd.concat(parts) if parts else pd.DataFrame(columns=COLUMNS)
