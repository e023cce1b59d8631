"""Classifiers of single hours on the encoder's inputs (`clai.datasets.hourly_inputs`).

Gradient boosting, logistic regression and the constant at the prevalence are those of scikit-learn; the fourth is a sparse
Gaussian process. All but the constant are fitted on the whole rare class and a sample of the other one, so that boosting a
million hours takes seconds. Log-odds of such a classifier differ from those of all hours by a constant (King & Zeng 2001), which
is added here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clai.baselines.gaussian_process import GaussianProcess, fit_gaussian_process
from clai.errors import InputError

Floats = NDArray[np.float64]


class HourlyClassifier(Protocol):
    """A fitted classifier of hours."""

    def log_odds(self, x: NDArray[np.float32]) -> Floats:
        """Return the log-odds of the positive class (N,) at inputs (N, F)."""


@dataclass(frozen=True)
class Shifted:
    """A scikit-learn classifier with a constant added to its log-odds."""

    classifier: Any
    shift: float

    def log_odds(self, x: NDArray[np.float32]) -> Floats:
        return np.asarray(self.classifier.decision_function(x), dtype=np.float64) + self.shift


@dataclass(frozen=True)
class Constant:
    """The same log-odds for every hour."""

    value: float

    def log_odds(self, x: NDArray[np.float32]) -> Floats:
        return np.full(len(x), self.value)


def class_sample(y: ArrayLike, most: int, seed: int) -> tuple[NDArray[np.int64], float]:
    """Draw at most `most` samples of each class.

    Returns:
        Positions of the samples in ascending order, and the constant to add to log-odds that are fitted on them.

    Raises:
        InputError: a class is missing.
    """
    y = np.asarray(y)
    generator = np.random.default_rng(seed)
    groups = [np.flatnonzero(y == label) for label in (0, 1)]
    if not all(map(len, groups)):
        raise InputError(f"found {len(groups[0])} negative and {len(groups[1])} positive hours to train on; need both")
    drawn = [np.sort(generator.permutation(group)[:most]) for group in groups]
    shift = np.log(len(groups[1]) / len(groups[0])) - np.log(len(drawn[1]) / len(drawn[0]))
    return np.sort(np.concatenate(drawn)), float(shift)


def fit_constant(y: ArrayLike) -> Constant:
    """Return the prevalence of the training hours (N,) as a classifier."""
    return Constant(float(logit(np.mean(np.asarray(y)))))


def fit_logistic_regression(
    x: NDArray[np.float32], y: ArrayLike, *, inverse_penalty: float, samples_per_class: int, seed: int
) -> Shifted:
    """Fit a ridge-penalised logistic regression of labels (N,) in {0, 1} on standardised inputs (N, F)."""
    rows, shift = class_sample(y, samples_per_class, seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=inverse_penalty, max_iter=1000))
    return Shifted(model.fit(x[rows], np.asarray(y)[rows]), shift)


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
    """Fit gradient-boosted trees; the area under the ROC curve on validation hours chooses their number.

    Args:
        x, y: training hours (N, F) and labels (N,).
        x_val, y_val: validation hours (M, F) and labels (M,), both classes among them.
        iterations: numbers of trees to choose from.
        settings: further arguments of HistGradientBoostingClassifier.

    Returns:
        The classifier and its number of trees.
    """
    rows, shift = class_sample(y, samples_per_class, seed)

    def fitted(trees: int) -> HistGradientBoostingClassifier:
        model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False, random_state=seed, **settings)
        return model.fit(x[rows], np.asarray(y)[rows])

    # Boosting adds trees one after another, so the first n of a longer run are those of a run of n.
    staged = fitted(max(iterations)).staged_decision_function(x_val)
    areas = {n: roc_auc_score(y_val, np.ravel(f)) for n, f in enumerate(staged, start=1) if n in iterations}
    best = max(areas, key=lambda n: (areas[n], -n))
    return Shifted(fitted(best), shift), best


@dataclass(frozen=True)
class ProcessOfHours:
    """A Gaussian process on the inputs, its probabilities shifted to the prevalence of the training hours."""

    process: GaussianProcess
    shift: float

    def log_odds(self, x: NDArray[np.float32]) -> Floats:
        return np.asarray(logit(self.process.predict_proba(x)[:, 1].clip(1e-12, 1 - 1e-12))) + self.shift


def fit_process_of_hours(
    x: NDArray[np.float32], y: ArrayLike, *, samples_per_class: int, seed: int, device: str, **settings: Any
) -> ProcessOfHours:
    """Fit a Gaussian process, with `settings` for `fit_gaussian_process`, to a sample of the training hours (N, F)."""
    rows, shift = class_sample(y, samples_per_class, seed)
    return ProcessOfHours(
        fit_gaussian_process(x[rows], np.asarray(y)[rows], **settings, seed=seed, device=device), shift
    )


def fit_hourly_classifier(
    model: str,
    train: tuple[NDArray[np.float32], NDArray[np.int64]],
    val: tuple[NDArray[np.float32], NDArray[np.int64]],
    settings: Mapping[str, Any],
    seed: int,
) -> tuple[HourlyClassifier, dict[str, Any]]:
    """Fit the classifier that a model's key names.

    Args:
        model: gp, gradient-boosting, logistic-regression or constant.
        train, val: inputs (N, F) and labels (N,).
        settings: config.yaml's `baselines`.
        seed: of draws and of the fit.

    Returns:
        The classifier, and the choices made on validation hours, for the run's record.
    """
    if model == "constant":
        return fit_constant(train[1]), {}
    if model == "logistic-regression":
        return fit_logistic_regression(*train, **settings["logistic_regression"], seed=seed), {}
    if model == "gradient-boosting":
        trees = dict(settings["gradient_boosting"])
        arguments = {name: trees.pop(name) for name in ("iterations", "samples_per_class")}
        classifier, best = fit_gradient_boosting(*train, *val, **arguments, settings=trees, seed=seed)
        return classifier, {"trees": best}
    if model == "gp":
        return fit_process_of_hours(*train, **settings["gp"], seed=seed, device="cpu"), {}
    raise ValueError(f"model is {model!r}, expected gp, gradient-boosting, logistic-regression or constant")
