"""One cell of a comparison: train a model with its settings, measure it on the test samples, count what it cost."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import torch

from clai.checkpoints import Checkpoint
from clai.datasets.prepared import Prepared
from clai.experiments.evaluation import evaluate_clai, evaluate_cross_entropy
from clai.experiments.training import (
    KERNEL_OF_MODEL,
    conditions_of,
    embed_splits,
    splits_of,
    train_clai,
    train_cross_entropy,
    train_supervised_contrastive,
)
from clai.learning import encoder_passes, group_size
from clai.trainer import TrainingSettings


class Cell(NamedTuple):
    """What a cell gives: metrics (rule, metric, value), history with a column `passes`, and figures for its run record."""

    metrics: pd.DataFrame
    history: pd.DataFrame
    figures: dict[str, Any]


def run_cell(
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    device: torch.device,
    checkpoint: Checkpoint,
) -> Cell:
    """Train `settings["model"]` (clai-c, clai-m, cross-entropy or supervised-contrastive) and evaluate it on all test samples.

    The references of inference are the training samples that it was trained on. `passes` counts, up to the end of each epoch, the
    items sent through the encoder and back, in units of the training samples. The figures are `pairs`, and `training_seconds`
    with the held-out accuracy of every epoch, and the time of interrupted processes up to their checkpoint, included.
    """
    model = settings["model"]
    arguments = (data, settings, seed, None, device, checkpoint)
    started = time.perf_counter()
    if model == "cross-entropy":
        classifier, epochs = train_cross_entropy(*arguments)
    elif model == "supervised-contrastive":
        trained, epochs = train_supervised_contrastive(*arguments)
    else:
        trained, epochs = train_clai(model, *arguments)
    seconds = checkpoint.earlier + time.perf_counter() - started
    if model == "cross-entropy":
        metrics = evaluate_cross_entropy(classifier, data, settings, seed, None, device).metrics
    else:
        embedded = embed_splits(trained, data, settings, seed, None, device)
        metrics = evaluate_clai(trained.kernel, embedded, conditions_of(data.info), settings, seed, None).metrics
    history = pd.DataFrame(epochs)
    history["passes"] = history["epoch"] * _passes(model, data, settings, seed)
    figures = {
        "pairs": float(history["pairs"].sum()) if "pairs" in history else None,
        "training_seconds": round(seconds, 2),
    }
    return Cell(metrics, history, figures)


def _passes(model: str, data: Prepared, settings: Mapping[str, Any], seed: int) -> float:
    """Passes over the training samples in an epoch; a model without pairs of batches sees each sample once."""
    items = len(splits_of(data, settings, None, seed, torch.device("cpu")).train)
    learning = TrainingSettings.of(settings, conditions_of(data.info), seed)
    if model in KERNEL_OF_MODEL:
        return encoder_passes(items, conditions_of(data.info), learning)
    group = group_size(learning, items)
    return items // group * group / items
