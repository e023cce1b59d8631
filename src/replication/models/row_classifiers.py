"""Classifiers of single rows: rows of features, and hours of recordings by the encoder's inputs (`datasets.hourly_inputs`).

Gradient boosting, logistic regression and the constant at the prevalence are those of scikit-learn; the fourth is a sparse
Gaussian process. The first two take any number of classes, the others two. All but the constant are fitted on a sample of the
frequent classes and all of the rare ones, so that boosting a million hours takes seconds (`class_sample`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier

from replication.models.gaussian_process import GaussianProcess, fit_gaussian_process
from replication.models.logistic_regression import RowClassifier, Shifted, class_sample, fit_logistic_regression, merit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Constant:
    """The same log-odds for every row."""

    value: float

    def scores(self, x: NDArray[np.float32]) -> Floats:
        return np.full(len(x), self.value)


def fit_constant(y: ArrayLike) -> Constant:
    """Return the prevalence of training labels (N,) in {0, 1} as a classifier."""
    return Constant(float(logit(np.mean(np.asarray(y)))))


def fit_gradient_boosting(
    x: NDArray[np.float32],
    y: ArrayLike,
    x_val: NDArray[np.float32],
    y_val: ArrayLike,
    *,
    iterations: list[int],
    settings: Mapping[str, Any],
    samples_per_class: int,
    seed: int,
) -> tuple[Shifted, int]:
    """Fit gradient-boosted trees; `merit` on validation rows chooses the number of iterations.

    Args:
        x, y: training rows (N, F) and class indices (N,).
        x_val, y_val: validation rows (M, F) and class indices (M,), every class among them.
        iterations: numbers to choose from; each adds a tree, or one a class where there are more than two.
        settings: further arguments of HistGradientBoostingClassifier.

    Returns:
        The classifier and its number of iterations.
    """
    rows, shift = class_sample(y, samples_per_class, seed)

    def fitted(count: int) -> HistGradientBoostingClassifier:
        model = HistGradientBoostingClassifier(max_iter=count, early_stopping=False, random_state=seed, **settings)
        return model.fit(x[rows], np.asarray(y)[rows])

    # Boosting adds trees one after another, so the first n of a longer run are those of a run of n.
    staged = fitted(max(iterations)).staged_decision_function(x_val)
    merits = {n: merit(y_val, np.squeeze(f)) for n, f in enumerate(staged, start=1) if n in iterations}
    best = max(merits, key=lambda n: (merits[n], -n))
    return Shifted(fitted(best), shift), best


@dataclass(frozen=True)
class ProcessOfRows:
    """A Gaussian process on the inputs, its probabilities shifted to the prevalence of the training rows."""

    process: GaussianProcess
    shift: float | Floats

    def scores(self, x: NDArray[np.float32]) -> Floats:
        return np.asarray(logit(self.process.predict_proba(x)[:, 1].clip(1e-12, 1 - 1e-12))) + self.shift


def fit_process_of_rows(
    x: NDArray[np.float32], y: ArrayLike, *, samples_per_class: int, seed: int, device: str, **settings: Any
) -> ProcessOfRows:
    """Fit a Gaussian process of two classes, with `settings` for `fit_gaussian_process`, to a sample of training rows (N, F)."""
    rows, shift = class_sample(y, samples_per_class, seed)
    return ProcessOfRows(
        fit_gaussian_process(x[rows], np.asarray(y)[rows], **settings, seed=seed, device=device), shift
    )


def fit_row_classifier(
    model: str,
    train: tuple[NDArray[np.float32], NDArray[np.int64]],
    val: tuple[NDArray[np.float32], NDArray[np.int64]],
    settings: Mapping[str, Any],
    seed: int,
) -> tuple[RowClassifier, dict[str, Any]]:
    """Fit the classifier that a model's key names.

    Args:
        model: gradient-boosting or logistic-regression; for two classes also gp or constant.
        train, val: inputs (N, F) and class indices (N,).
        settings: config.yaml's `baselines`.
        seed: of draws and of the fit.

    Returns:
        The classifier, and the choices made on validation rows, for the run's record.
    """
    if model == "constant":
        return fit_constant(train[1]), {}
    if model == "logistic-regression":
        regression, penalty = fit_logistic_regression(*train, *val, **settings["logistic_regression"], seed=seed)
        return regression, {"inverse_penalty": penalty}
    if model == "gradient-boosting":
        trees = dict(settings["gradient_boosting"])
        arguments = {name: trees.pop(name) for name in ("iterations", "samples_per_class")}
        classifier, best = fit_gradient_boosting(*train, *val, **arguments, settings=trees, seed=seed)
        return classifier, {"iterations": best}
    if model == "gp":
        return fit_process_of_rows(*train, **settings["gp"], seed=seed, device="cpu"), {}
    raise ValueError(f"model is {model!r}, expected gp, gradient-boosting, logistic-regression or constant")
