"""Classifiers of rows of features, of single hours by the encoder's inputs (`datasets.hourly_inputs`), or of embeddings.

All but the constant are fitted on a sample of the frequent classes and all of the rare ones, so that boosting a million hours
takes seconds. Log-probabilities of such a classifier differ from those of all rows by a constant for each class (King & Zeng
2001), which is added here (`class_sample`).
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from clailearn.errors import InputError
from replication.models.base import Floats, Labels, RowClassifier, Rows

# Imports of scikit-learn are slow, and trainings of networks, which import this module for their read-outs, need few of them.


class Constant(RowClassifier):
    """The log-odds of the prevalence, for every row."""

    value: float

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, *, seed: int) -> Self:
        self.value = float(logit(np.mean(y)))
        return self

    def score_rows(self, x: Rows) -> Floats:
        return np.full(len(x), self.value)


class LogisticRegression(RowClassifier):
    """A ridge-penalised logistic regression on standardised inputs, without the columns that do not vary (`varying`)."""

    def fit_rows(
        self,
        x: Rows,
        y: Labels,
        x_val: Rows,
        y_val: Labels,
        *,
        seed: int,
        inverse_penalty: Sequence[float],
        samples_per_class: int,
    ) -> Self:
        """Fit; `merit` on validation rows, every class among them, chooses the penalty from values of scikit-learn's C."""
        from sklearn import linear_model
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        rows, self.shift = class_sample(y, samples_per_class, seed)
        self.columns = varying(x[rows])
        fitted = {
            c: make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=c, max_iter=1000)).fit(
                x[rows][:, self.columns], y[rows]
            )
            for c in inverse_penalty
        }
        merits = {c: merit(y_val, self._scores(classifier, x_val)) for c, classifier in fitted.items()}
        best = max(merits, key=lambda c: (merits[c], -c))
        self.classifier, self.choices = fitted[best], {"inverse_penalty": best}
        return self

    def score_rows(self, x: Rows) -> Floats:
        return self._scores(self.classifier, x)

    def _scores(self, classifier: Any, x: Rows) -> Floats:
        return np.asarray(classifier.decision_function(x[:, self.columns]), dtype=np.float64) + self.shift


class GradientBoosting(RowClassifier):
    """Gradient-boosted trees of scikit-learn."""

    def fit_rows(
        self,
        x: Rows,
        y: Labels,
        x_val: Rows,
        y_val: Labels,
        *,
        seed: int,
        iterations: Sequence[int],
        samples_per_class: int,
        **settings: Any,
    ) -> Self:
        """Fit; `merit` on validation rows, every class among them, chooses the number of iterations."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        rows, self.shift = class_sample(y, samples_per_class, seed)

        def fitted(count: int) -> HistGradientBoostingClassifier:
            model = HistGradientBoostingClassifier(max_iter=count, early_stopping=False, random_state=seed, **settings)
            return model.fit(x[rows], y[rows])

        # Boosting adds trees one after another, so the first n of a longer run are those of a run of n.
        staged = fitted(max(iterations)).staged_decision_function(x_val)
        merits = {n: merit(y_val, f + self.shift) for n, f in enumerate(staged, start=1) if n in iterations}
        best = max(merits, key=lambda n: (merits[n], -n))
        self.classifier, self.choices = fitted(best), {"iterations": best}
        return self

    def score_rows(self, x: Rows) -> Floats:
        return np.asarray(self.classifier.decision_function(x), dtype=np.float64) + self.shift


def varying(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which columns of x (N, F) vary by more than float32 resolves beside the one that varies most; all if none varies.

    Values of 1e-43, of a network's dead units, would count as much as any other when divided by their spread.
    """
    spread = x.std(axis=0, dtype=np.float64)
    return np.asarray((spread > np.finfo(np.float32).eps * spread.max()) | (spread.max() == 0))


def class_sample(y: ArrayLike, most: int, seed: int) -> tuple[NDArray[np.int64], float | Floats]:
    """Draw at most `most` samples of each class of y (N,), class indices from 0; raise InputError if a class is missing.

    Returns ascending positions, and what to add to the scores of a classifier that is fitted on them: a number for two classes,
    (C,) for more.
    """
    y = np.asarray(y)
    generator = np.random.default_rng(seed)
    groups = [np.flatnonzero(y == label) for label in range(max(2, int(y.max()) + 1))]
    if not all(map(len, groups)):
        counts = ", ".join(str(len(group)) for group in groups)
        raise InputError(f"found {counts} rows of the classes to train on, expected some of each: provide more data")
    drawn = [np.sort(generator.permutation(group)[:most]) for group in groups]
    whole, kept = (np.array([len(part) for part in parts]) for parts in (groups, drawn))
    shift = np.log(whole / whole[0]) - np.log(kept / kept[0])
    return np.sort(np.concatenate(drawn)), float(shift[1]) if len(groups) == 2 else shift


def merit(y: ArrayLike, scores: Floats) -> float:
    """Return what validation rows choose by: the area under the ROC curve of scores (N,), the accuracy of scores (N, C)."""
    from sklearn.metrics import accuracy_score, roc_auc_score  # slow to import, and most trainings need none

    if scores.ndim == 1:
        return float(roc_auc_score(y, scores))
    return float(accuracy_score(y, scores.argmax(axis=1)))
