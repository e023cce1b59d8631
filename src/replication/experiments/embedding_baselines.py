"""Baselines on the embeddings of a trained model: fit and evaluate the one that a run's model names.

The registry names the function that fits a baseline (`replication.runs.models`). It is called as

    fit(z, y, z_val, y_val, seed=seed, **settings)

with training and validation embeddings (N, D) and class indices (N,), and its block of settings. It returns an
`EmbeddingBaseline`, and the choices that the run's record should tell.
"""

import time
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clai.checkpoints import Checkpoint
from replication.experiments.evaluation import Evaluation, Scored, evaluate_binary, evaluate_multiclass
from replication.experiments.studies import NO_HISTORY, Cell
from replication.models.embedding import Embedded
from replication.models.run import Run
from replication.runs.models import MODELS

Floats = NDArray[np.float64]


class EmbeddingBaseline(Protocol):
    """A fitted classifier of embeddings."""

    def scores(self, z: Floats) -> Floats:
        """Return scores (N, C) of embeddings (N, D); larger means more likely."""

    def predict_proba(self, z: Floats) -> Floats:
        """Return class probabilities (N, C) of embeddings (N, D); rows sum to 1."""


def settings_block(model: str) -> str:
    """Return the name of a model's block in `baselines`.

    >>> settings_block("student-t-mixture")
    'student_t_mixture'
    """
    return model.replace("-", "_")


def fit_embedding_baseline(run: Run, embedded: Mapping[str, Embedded]) -> tuple[EmbeddingBaseline, dict[str, Any]]:
    """Fit the run's model on training embeddings, with the settings of its block in `baselines`, if there is one.

    Raises:
        ValueError: the registry names no function that fits the model.
    """
    function = MODELS[run.model].fit
    if function is None:
        raise ValueError(f"{run.model} has no `fit` in replication.runs.models: expected a baseline on embeddings")
    settings = run.settings.get("baselines", {}).get(settings_block(run.model), {})
    (z, y), (z_val, y_val) = embedded["train"].vectors(), embedded["val"].vectors()
    baseline, choices = resolve_name(function)(z, y, z_val, y_val, seed=run.id.seed, **settings)
    return baseline, choices


def evaluate_embedding_baseline(run: Run, baseline: EmbeddingBaseline, embedded: Mapping[str, Embedded]) -> Evaluation:
    """Evaluate scores and probabilities of a baseline on the test samples."""
    (z, y), (z_val, y_val) = embedded["test"].vectors(), embedded["val"].vectors()
    test, val = Scored(baseline.scores(z), y), Scored(baseline.scores(z_val), y_val)
    if test.score.shape[1] > 2:
        return evaluate_multiclass(run, test, val)
    test, val = (Scored(part.score[:, 1] - part.score[:, 0], part.y) for part in (test, val))
    return evaluate_binary(run, test, baseline.predict_proba(z)[:, 1], val)


def fit_cell(run: Run, checkpoint: Checkpoint, embedded: Mapping[str, Embedded]) -> Cell:
    """Fit and evaluate the baseline of a cell of a study on these embeddings of all splits; it keeps no checkpoint.

    The figures are `training_seconds`, without the training of the embeddings, and the baseline's choices.
    """
    started = time.perf_counter()
    baseline, choices = fit_embedding_baseline(run, embedded)
    seconds = time.perf_counter() - started
    scored = {**embedded, "test": embedded[run.scored_split]}
    metrics = evaluate_embedding_baseline(run, baseline, scored).metrics
    return Cell(metrics, NO_HISTORY, {"training_seconds": round(seconds, 2), **choices})
