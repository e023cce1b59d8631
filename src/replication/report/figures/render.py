"""All figures by name: evidence -> matplotlib figure, and a frame with exactly what it shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib import style
from matplotlib.figure import Figure

from replication.report.evidence import Evidence, identified, owners, run_cell, run_name, runs_behind
from replication.report.figures import paper, supplement
from replication.report.figures.style import THEME, Drawn, without_data
from replication.report.texts import caption
from replication.runs.registry import CLAIMS_FIGURE


class Drawing(NamedTuple):
    """How a figure is drawn from evidence that has at least one of its datasets, and which columns of its frame are kept.

    `draw` takes the evidence, and where `judged` the judged claims.
    """

    draw: Callable[..., Drawn]
    columns: list[str]
    judged: bool = False


FEWEST_OF_OWN = 10
"""Samples of a bin of a reliability diagram of the user's own data, which may be few."""

FIGURES: dict[str, Drawing] = {
    "figure1": Drawing(paper.stages, paper.STAGE_COLUMNS),
    "figure2": Drawing(paper.embeddings, paper.EMBEDDING_COLUMNS),
    "figure3": Drawing(paper.training, paper.TRAINING_COLUMNS),
    "figure4": Drawing(paper.signals, paper.SIGNAL_COLUMNS),
    "supplement/figureS1": Drawing(supplement.votes, supplement.VOTE_COLUMNS),
    "supplement/figureS2": Drawing(supplement.reliability, supplement.RELIABILITY_COLUMNS),
    "supplement/figureS3": Drawing(supplement.computation, supplement.COMPUTATION_COLUMNS),
    "supplement/figureS5": Drawing(paper.training, paper.TRAINING_COLUMNS),
    "supplement/figureS6": Drawing(supplement.references, supplement.REFERENCE_COLUMNS),
    CLAIMS_FIGURE: Drawing(supplement.verdicts, supplement.VERDICT_COLUMNS, judged=True),
    "own/figure_training": Drawing(paper.training, paper.TRAINING_COLUMNS),
    "own/figure_embedding": Drawing(paper.embeddings, paper.EMBEDDING_COLUMNS),
    "own/figure_reliability": Drawing(
        partial(supplement.reliability, fewest=FEWEST_OF_OWN, models=()), supplement.RELIABILITY_COLUMNS
    ),
}

# Drawn from the embeddings of one run: the first seed, and the first fold where there are folds.
ONE_RUN = ("figure1", "figure2", "supplement/figureS1", "own/figure_embedding")


def render(
    name: str, evidence: Evidence, fixed_caption: str, claims: Sequence[Mapping[str, Any]] = ()
) -> tuple[Figure, pd.DataFrame, str, list[dict[str, Any]]]:
    """Return one of `FIGURES`: the figure, what it shows, its caption and the records of the runs behind it.

    Without evidence of any of its datasets the figure says what they need, and the frame is empty.
    """
    draw, columns, judged = FIGURES[name]
    given = [claims] if judged else []
    with style.context(THEME, after_reset=True):  # over the defaults, not over the settings of a user's matplotlibrc
        needs = "; ".join(evidence.not_run(key) for key in evidence.expected)
        figure, parts = draw(evidence, *given) if evidence.at_hand() else without_data(evidence, needs)
    frame = pd.concat(parts or [pd.DataFrame()], ignore_index=True)
    if "name" in frame:
        frame = identified(evidence, frame.rename(columns={"model": "cell"}))
    frame = frame.reindex(columns=columns)
    if shown := set(owners(frame)["name"].dropna()):  # of the data at hand the caption names these
        entries = evidence.expected.items()
        evidence = replace(evidence, expected={key: e for key, e in entries if key in shown or not evidence.has(key)})
    runs = [] if judged else runs_behind(evidence, frame)
    if name in ONE_RUN:
        ordered = sorted(runs, key=lambda run: (run["seed"], run["fold"] or 0), reverse=True)
        first = {(run_name(run), run_cell(run)): run for run in ordered}
        runs = [run for run in runs if first[run_name(run), run_cell(run)] is run]
    return figure, frame, caption(fixed_caption, evidence, runs), runs


def witnesses(evidence: Evidence, dataset: str) -> Figure:
    """Return the first row of the figure of votes, of one dataset alone."""
    one = replace(evidence, expected={dataset: evidence.expected[dataset]})
    with style.context(THEME, after_reset=True):
        return supplement.votes(one, images=1)[0]


def save(figure: Figure, path: Path) -> None:
    """Write a PDF or PNG without dates, so that the same figure gives the same bytes."""
    metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
    with style.context(THEME, after_reset=True):
        figure.savefig(path, metadata=metadata)
