"""Logistic regression, and what it shares with the other classifiers of rows: the draw of training rows and its correction.

A classifier is fitted on a sample of the frequent classes and all of the rare ones. Log-probabilities of such a classifier
differ from those of all rows by a constant for each class (King & Zeng 2001), which is added here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clai.errors import InputError

Floats = NDArray[np.float64]


class RowClassifier(Protocol):
    """A fitted classifier of rows."""

    def scores(self, x: NDArray[np.float32]) -> Floats:
        """Return scores of inputs (N, F): log-odds (N,) for two classes; (N, C) for more, whose softmax is the probability."""


@dataclass(frozen=True)
class Shifted:
    """A scikit-learn classifier with a constant added to its scores, one for each class (C,) where there are more than two.

    It sees some `columns` of its inputs alone, all by default.
    """

    classifier: Any
    shift: float | Floats
    columns: NDArray[np.bool_] | slice = field(default_factory=lambda: slice(None))

    def scores(self, x: NDArray[np.float32]) -> Floats:
        return np.asarray(self.classifier.decision_function(x[:, self.columns]), dtype=np.float64) + self.shift


def varying(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which columns of x (N, F) vary by more than float32 resolves beside the one that varies most; all if none varies.

    Dead units of a network leave values of 1e-43 or so. Divided by their spread they would count as much as any other.
    """
    spread = x.std(axis=0, dtype=np.float64)
    return np.asarray((spread > np.finfo(np.float32).eps * spread.max()) | (spread.max() == 0))


def class_sample(y: ArrayLike, most: int, seed: int) -> tuple[NDArray[np.int64], float | Floats]:
    """Draw at most `most` samples of each class of y (N,), class indices from 0.

    Returns:
        Positions of the samples in ascending order; and what to add to the scores of a classifier that is fitted on them: a
        number for two classes, (C,) for more.

    Raises:
        InputError: a class is missing.
    """
    y = np.asarray(y)
    generator = np.random.default_rng(seed)
    groups = [np.flatnonzero(y == label) for label in range(max(2, int(y.max()) + 1))]
    if not all(map(len, groups)):
        counts = ", ".join(str(len(group)) for group in groups)
        raise InputError(f"found {counts} rows of the classes to train on, expected some of each: provide more data")
    drawn = [np.sort(generator.permutation(group)[:most]) for group in groups]
    shift = np.array(
        [
            np.log(len(group) / len(groups[0])) - np.log(len(part) / len(drawn[0]))
            for group, part in zip(groups, drawn, strict=True)
        ]
    )
    return np.sort(np.concatenate(drawn)), float(shift[1]) if len(groups) == 2 else shift


def merit(y: ArrayLike, scores: Floats) -> float:
    """Return what validation rows choose by: the area under the ROC curve of scores (N,), the accuracy of scores (N, C)."""
    from sklearn.metrics import accuracy_score, roc_auc_score  # slow to import, and most trainings need none

    if scores.ndim == 1:
        return float(roc_auc_score(y, scores))
    return float(accuracy_score(y, scores.argmax(axis=1)))


def fit_logistic_regression(
    x: NDArray[np.float32],
    y: ArrayLike,
    x_val: NDArray[np.float32],
    y_val: ArrayLike,
    *,
    inverse_penalty: Sequence[float],
    samples_per_class: int,
    seed: int,
) -> tuple[Shifted, float]:
    """Fit a ridge-penalised logistic regression on standardised inputs; `merit` on validation rows chooses the penalty.

    Columns that do not vary are left out (`varying`).

    Args:
        x, y: training rows (N, F) and class indices (N,).
        x_val, y_val: validation rows (M, F) and class indices (M,), every class among them.
        inverse_penalty: values of scikit-learn's C to choose from.

    Returns:
        The classifier and its C.
    """
    # Slow to import, and most trainings need none.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, shift = class_sample(y, samples_per_class, seed)
    columns = varying(x[rows])

    def fitted(c: float) -> Shifted:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000))
        return Shifted(model.fit(x[rows][:, columns], np.asarray(y)[rows]), shift, columns)

    classifiers = {c: fitted(c) for c in inverse_penalty}
    if len(classifiers) == 1:
        return classifiers[inverse_penalty[0]], inverse_penalty[0]
    merits = {c: merit(y_val, classifier.scores(x_val)) for c, classifier in classifiers.items()}
    best = max(merits, key=lambda c: (merits[c], -c))
    return classifiers[best], best
