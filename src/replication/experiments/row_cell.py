"""A cell of a classifier of rows: fit and measure."""

import time

from clai.checkpoints import Checkpoint
from replication.experiments.evaluation import evaluate_rows
from replication.experiments.studies import NO_HISTORY, Cell
from replication.models.row_classifiers import fit_row_classifier
from replication.models.run import Run


def fit_cell(run: Run, checkpoint: Checkpoint) -> Cell:
    """Fit the classifier of a cell and evaluate it on all test samples. It is too fast to keep a checkpoint.

    The figures are `training_seconds` and the choices made on validation rows.
    """
    train, val, test = ((items.x.numpy(), items.labels.numpy()) for items in run.splits)  # type: ignore[attr-defined]
    started = time.perf_counter()
    classifier, choices = fit_row_classifier(run.model, train, val, run.settings["baselines"], run.id.seed)
    figures = {"training_seconds": round(time.perf_counter() - started, 2), **choices}
    metrics = evaluate_rows(run, classifier.scores(test[0]), classifier.scores(val[0])).metrics
    return Cell(metrics, NO_HISTORY, figures)
