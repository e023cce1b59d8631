"""A cell of CLaI, cross-entropy or supervised contrastive learning: train, measure, count what training took."""

import time

import pandas as pd

from clai.checkpoints import Checkpoint
from clai.encoders import Classifier, Encoder
from clai.learning import encoder_passes
from replication.experiments.evaluation import evaluate_clai, evaluate_cross_entropy, evaluate_supervised_contrastive
from replication.experiments.operations import operations_per_item
from replication.experiments.studies import Cell
from replication.models.batchwise import group_size
from replication.models.embedding import embed_splits
from replication.models.run import Run
from replication.models.supervised_contrastive import views_of
from replication.models.training import train
from replication.runs.models import CLAI


def fit_cell(run: Run, checkpoint: Checkpoint) -> Cell:
    """Train the model of a cell and evaluate it on all test samples, with its training samples as references.

    The history's `passes` counts the items sent through the encoder and back up to the end of each epoch, in units of the
    training samples; `operations` counts the floating-point operations of these passes. The figures are `pairs`,
    `operations_per_item` and `training_seconds`; the latter includes validation, and the time of interrupted processes up to
    their checkpoint.
    """
    started = time.perf_counter()
    model, epochs = train(run, checkpoint)
    seconds = checkpoint.earlier + time.perf_counter() - started
    if isinstance(model, Classifier):
        evaluation = evaluate_cross_entropy(run, model)
    elif isinstance(model, Encoder):
        evaluation = evaluate_supervised_contrastive(run, model)
    else:
        evaluation = evaluate_clai(run, model.kernel, embed_splits(run, model.encoder))
    history = pd.DataFrame(epochs)
    history["passes"] = history["epoch"] * _passes(run)
    per_item = operations_per_item(run, model)
    if per_item is not None:
        history["operations"] = history["passes"] * len(run.splits.train) * per_item
    figures = {
        "operations_per_item": per_item,
        "pairs": float(history["pairs"].sum()) if "pairs" in history else None,
        "training_seconds": round(seconds, 2),
    }
    return Cell(evaluation.metrics, history, figures, evaluation.predictions)


def _passes(run: Run) -> float:
    """Return the passes over the training samples in an epoch; without pairs of batches one, or one a view."""
    items = len(run.splits.train)
    if run.model in CLAI:
        return encoder_passes(items, run.conditions, run.training)
    contrastive = run.model == "supervised-contrastive"
    views = views_of(run.data.info["kind"], run.settings["encoder"]) if contrastive else 1
    group = group_size(run.training, items)
    return views * (items // group * group) / items
