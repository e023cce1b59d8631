"""Read-outs of a trunk: classifiers of its frozen features, which supervised contrastive learning is measured by."""

import torch
from torch import Tensor

from clai.batches import Items
from clai.encoders import Encoder
from replication.models.embedding import labels_of, outputs
from replication.models.logistic_regression import Floats, RowClassifier, fit_logistic_regression
from replication.models.run import Run
from replication.models.supervised_contrastive import Features

INVERSE_PENALTY = 1.0
"""Scikit-learn's C."""
SAMPLES_PER_CLASS = 100_000
"""Largest number of training samples of a class; probabilities are put back to the prevalence."""


def fit_trunk_read_out(run: Run, encoder: Encoder, positions: Tensor) -> RowClassifier:
    """Fit a logistic regression, the choice of the loss's authors, on the training items at these positions."""
    items = run.splits.train
    y = labels_of(items, positions).numpy()
    x = _features(run, encoder, items, positions)
    return fit_logistic_regression(
        x, y, x, y, inverse_penalty=[INVERSE_PENALTY], samples_per_class=SAMPLES_PER_CLASS, seed=run.id.seed
    )[0]


def read_out_scores(run: Run, encoder: Encoder, read_out: RowClassifier, items: Items, positions: Tensor) -> Floats:
    """Return the read-out's scores of items; with `inference.mirror`, the mean over each image and its mirror image."""
    scores = read_out.scores(_features(run, encoder, items, positions))
    if run.mirror:
        scores = (scores + read_out.scores(_features(run, encoder, items, positions, mirrored=True))) / 2
    return scores


def _features(run: Run, encoder: Encoder, items: Items, positions: Tensor, mirrored: bool = False) -> Features:
    """Return the trunk's features of all samples of items, (samples, F), without augmentation."""
    features = outputs(encoder.trunk, items, run.training.precision, positions, mirrored=mirrored)
    return features.to(torch.float32).numpy()
