"""Trainings with different losses on the same trunk, settings and passes; after each epoch their alignment is measured.

That is the control of claim 9: whether the alignment of an embedding rises because Collaborative Learning maximises it, or with
any training that separates classes. A model of `MODELS` has here the parameters, to the bit, that it has in its own run.
"""

import copy
from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import nn

from clai.alignment import TargetMatrix, alignment_scores, one_vs_rest, target_matrix
from clai.checkpoints import Checkpoint
from clai.encoders import Classifier, ConvNet, Encoder, build_classifier, build_encoder, place
from clai.errors import InputError
from clai.learning import collaborative_learning
from clai.trainer import Epoch
from replication.experiments.embeddings import settle, views_of
from replication.models.cross_entropy import train_cross_entropy
from replication.models.embedding import draw_items, labels_of, outputs
from replication.models.objectives import train_by_alignment, train_prototypical
from replication.models.run import Run
from replication.models.supervised_contrastive import train_supervised_contrastive
from replication.models.supervised_contrastive import views_of as augmented_views_of
from replication.models.training import Trained, build_clai

ALIGNMENTS = ("alignment", "centred_alignment", "class_alignment")
VALIDATION_SAMPLES = 1000
"""Validation samples behind an alignment."""
TRACE_COLUMNS = ["epoch", "kernel", *ALIGNMENTS]


def train_traced(
    run: Run, objective: str, checkpoint: Checkpoint
) -> tuple[Trained | Classifier | Encoder, pd.DataFrame]:
    """Train by an objective of `replication.runs.controls`.

    Returns:
        The model on the CPU, and the alignment of its embedding on validation samples (`TRACE_COLUMNS`). Epoch 0 is the
        untrained network, its BatchNorm layers settled on the training items.

    Raises:
        InputError: the trunk is the convolutional one, which has to be whitened.
        ValueError: there is no such objective.
    """
    model, fit = _built(run, objective, checkpoint)
    module = nn.ModuleList(model) if isinstance(model, Trained) else model
    trunk = (model.encoder if isinstance(model, Trained) else model).trunk
    if isinstance(trunk, ConvNet):
        raise InputError(
            f"{run.id}: found the trunk convnet, expected one that is not whitened. Give the dataset "
            "another encoder.trunk"
        )
    place(module, run.device)
    positions = draw_items(run.splits.val, VALIDATION_SAMPLES, run.id.seed)
    untrained = copy.deepcopy(model)
    settle(run, untrained.encoder if isinstance(untrained, Trained) else untrained)
    first = {"epoch": 0, **measure_alignment(run, objective, untrained, positions)}
    history = fit(lambda: measure_alignment(run, objective, model, positions))
    module.cpu()
    return model, _table([first, *history])


def measure_alignment(
    run: Run, objective: str, model: Trained | Classifier | Encoder, positions: torch.Tensor
) -> Epoch:
    """Return the alignments of an embedding on the validation samples at these positions, by kernel and column.

    alignment and centred_alignment are those of each condition, averaged; an embedding without conditions serves all of them.
    class_alignment is the centred alignment of the mean similarity over conditions with a target of 1 for two samples of a class
    and -1 for others, which an embedding can reach with conditions or without.
    """
    labels = labels_of(run.splits.val, positions)
    signs = one_vs_rest(labels, run.conditions)
    of_conditions = target_matrix(signs, signs, run.training.target)
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).float().mul(2).sub(1).unsqueeze(0)
    figures: Epoch = {}
    for name, view in views_of(model, objective):
        z = outputs(view.module, run.splits.val, run.training.precision, positions, dim=1)
        with torch.no_grad():
            similarity = copy.deepcopy(view.kernel).cpu()(z, z)
            raw, centred = alignment_scores(similarity.expand(len(signs), -1, -1), of_conditions)
            of_classes = alignment_scores(similarity.mean(0, keepdim=True), TargetMatrix(same, None))[1]
        for column, value in zip(ALIGNMENTS, (raw, centred, of_classes), strict=True):
            figures[f"{name} {column}"] = float(value.mean())
    return figures


def _table(history: Sequence[Epoch]) -> pd.DataFrame:
    """Return the traced figures of a history in `TRACE_COLUMNS`, a row an epoch and kernel."""
    kernels = list(dict.fromkeys(key.split()[0] for key in history[0] if " " in key))
    rows = [
        (row["epoch"], kernel, *(row[f"{kernel} {column}"] for column in ALIGNMENTS))
        for kernel in kernels
        for row in history
    ]
    return pd.DataFrame(rows, columns=TRACE_COLUMNS)


Fit = Callable[[Callable[[], Epoch]], list[Epoch]]


def _built(run: Run, objective: str, checkpoint: Checkpoint) -> tuple[Trained | Classifier | Encoder, Fit]:
    """Return an untrained model, and what trains it with a function that is called after each epoch."""
    items, training, settings, seed = run.splits.train, run.training, run.settings, run.id.seed
    if objective in ("clai-m", "clai-c", "alignment-m", "alignment-c"):
        trained = build_clai(settings, run.model, run.inputs, run.conditions, seed)
        learn = train_by_alignment if objective.startswith("alignment") else collaborative_learning
        return trained, lambda validate: learn(*trained, items, run.conditions, training, validate, checkpoint)
    if objective == "cross-entropy":
        classifier = build_classifier(settings, run.inputs, run.classes, seed)
        return classifier, lambda validate: train_cross_entropy(classifier, items, training, validate, checkpoint)
    encoder = build_encoder(settings, run.inputs, 1, seed)
    if objective == "prototypical":
        return encoder, lambda validate: train_prototypical(encoder, items, training, validate, checkpoint)
    if objective == "supervised-contrastive":
        temperature = settings["baselines"]["supervised_contrastive"]["temperature"]
        views = augmented_views_of(run.data.info["kind"], settings["encoder"])
        return encoder, lambda validate: train_supervised_contrastive(
            encoder, items, training, temperature, views, validate, checkpoint
        )
    raise ValueError(f"objective is {objective!r}, expected one of OBJECTIVES in replication.runs.controls")
