"""Classifiers of single hours on the encoder's inputs (`clai.datasets.hourly_inputs`): gradient boosting, logistic regression and
the constant at the prevalence, by scikit-learn; and a sparse Gaussian process.

The rare class is kept whole and the other one sampled, so that boosting a million hours takes seconds. A classifier of such a
sample is one of the whole data but for a constant in its log-odds (King & Zeng 2001), which is put right here.
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
    """What is fitted here."""

    def log_odds(self, x: NDArray[np.float32]) -> Floats:
        """Log-odds of the positive class, (N, F) -> (N,)."""


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
    """At most `most` samples of each class (indices, ascending), and what to add to log-odds fitted on them.

    Raises InputError when a class is missing.
    """
    y = np.asarray(y)
    generator = np.random.default_rng(seed)
    groups = [np.flatnonzero(y == label) for label in (0, 1)]
    if not all(map(len, groups)):
        raise InputError(f"found {len(groups[0])} negative and {len(groups[1])} positive hours to train on; need both")
    chosen = [np.sort(generator.permutation(group)[:most]) for group in groups]
    shift = np.log(len(groups[1]) / len(groups[0])) - np.log(len(chosen[1]) / len(chosen[0]))
    return np.sort(np.concatenate(chosen)), float(shift)


def fit_constant(y: ArrayLike) -> Constant:
    """The prevalence of the training hours (N,), for every hour."""
    return Constant(float(logit(np.mean(np.asarray(y)))))


def fit_logistic_regression(
    x: NDArray[np.float32], y: ArrayLike, *, inverse_penalty: float, samples_per_class: int, seed: int
) -> Shifted:
    """Ridge-penalised logistic regression of labels (N,) in {0, 1} on standardised inputs (N, F)."""
    chosen, shift = class_sample(y, samples_per_class, seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=inverse_penalty, max_iter=1000))
    return Shifted(model.fit(x[chosen], np.asarray(y)[chosen]), shift)


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
    """Gradient-boosted trees, their number chosen on validation patients by the area under the ROC curve.

    Args:
        x, y: training hours (N, F) and labels (N,). x_val, y_val: validation hours, both classes among them.
        iterations: numbers of trees to choose from.
        settings: further arguments of HistGradientBoostingClassifier.

    Returns the classifier and its number of trees.
    """
    chosen, shift = class_sample(y, samples_per_class, seed)

    def fitted(trees: int) -> HistGradientBoostingClassifier:
        model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False, random_state=seed, **settings)
        return model.fit(x[chosen], np.asarray(y)[chosen])

    # Trees are added one after another: the first n of a longer run are those of a run of n.
    staged = fitted(max(iterations)).staged_decision_function(x_val)
    found = {n: roc_auc_score(y_val, np.ravel(f)) for n, f in enumerate(staged, start=1) if n in iterations}
    best = max(found, key=lambda n: (found[n], -n))
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
    """`fit_gaussian_process` with `settings` on a sample of the training hours (N, F)."""
    chosen, shift = class_sample(y, samples_per_class, seed)
    return ProcessOfHours(
        fit_gaussian_process(x[chosen], np.asarray(y)[chosen], **settings, seed=seed, device=device), shift
    )


def fit_hourly_classifier(
    model: str,
    train: tuple[NDArray[np.float32], NDArray[np.int64]],
    val: tuple[NDArray[np.float32], NDArray[np.int64]],
    settings: Mapping[str, Any],
    seed: int,
) -> tuple[HourlyClassifier, dict[str, Any]]:
    """A classifier with config.yaml's `baselines`, and what its run record should say of choices made on validation data.

    model: gp, gradient-boosting, logistic-regression or constant. train, val: inputs (N, F) and labels (N,).
    """
    own = settings["baselines"]
    if model == "constant":
        return fit_constant(train[1]), {}
    if model == "logistic-regression":
        return fit_logistic_regression(*train, **own["logistic_regression"], seed=seed), {}
    if model == "gradient-boosting":
        trees = dict(own["gradient_boosting"])
        chosen = {name: trees.pop(name) for name in ("iterations", "samples_per_class")}
        classifier, best = fit_gradient_boosting(*train, *val, **chosen, settings=trees, seed=seed)
        return classifier, {"trees": best}
    if model == "gp":
        return fit_process_of_hours(*train, **own["gp"], seed=seed, device="cpu"), {}
    raise ValueError(f"model is {model!r}, expected gp, gradient-boosting, logistic-regression or constant")
