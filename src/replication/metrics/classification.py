"""Performance and calibration of predictions, as fractions in [0, 1].

Definitions
-----------
precision, recall, f1
    Weighted by class support. Support-weighted recall equals accuracy, as in every row of the paper's table 1. Of two classes
    those of class 1, the positive one.
macro_f1
    Unweighted mean of the F1 of every class that occurs among labels or predictions.
kappa
    Cohen's: 1 for complete agreement of predictions with labels, 0 for that of independent ones.
roc_auc
    Area under the ROC curve of each class against the rest, unweighted mean over classes. Of two classes that of class 1.
roc_auc_decisions
    The same of decisions in place of probabilities, for more than two classes: of a class it is the mean of recall and
    specificity.
expected calibration error (ECE)
    sum over bins b of n_b / N |mean outcome in b - mean probability in b|, equal-width bins on [0, 1]
    (Naeini et al. 2015). There are two readings. *top-label*, the paper's (section IV-D2), pairs the largest class probability
    with whether that class is right. *positive-rate* (binary only) pairs the probability of the positive class with the label.
Brier score
    Mean squared distance of the probabilities (C,) and the indicator of the class, halved.
log loss
    Mean of minus the logarithm of the probability of the true class, in nats.
A quantity is NaN where it needs a class that does not occur; a warning then names the class.

Functions import scikit-learn where they use it, because the import takes as long as a small evaluation.
"""

import logging
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from clailearn.errors import InputError

ECE_BINS = 15
"""Equal-width bins of the calibration error, the field's usual number."""
OTHER_BINS = (10, 30)
"""Numbers of bins beside it, since an error after a temperature depends on them."""

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]


def roc_auc(positive: ArrayLike, score: ArrayLike, name: str = "class 1") -> float:
    """Return the area under the ROC curve of scores (N,) for outcomes (N,) in {0, 1}; NaN, with a warning, for one outcome."""
    from sklearn.metrics import roc_auc_score

    positive = np.asarray(positive).astype(bool)
    if positive.all() or not positive.any():
        logger.warning("%s is %s among the labels: its ROC-AUC is NaN", name, "alone" if positive.all() else "missing")
        return float("nan")
    return float(roc_auc_score(positive, score))


def sample_metrics(y: ArrayLike, probability: ArrayLike, calibrated: ArrayLike) -> dict[str, float]:
    """Return the metrics of table 1 and others beside them, and of the calibrated probabilities those with _scaled.

    y: (N,) class indices. probability, calibrated: (N,) for two classes, (N, C) for more.
    """
    from sklearn.metrics import (
        accuracy_score,
        brier_score_loss,
        cohen_kappa_score,
        f1_score,
        precision_recall_fscore_support,
    )

    y, raw, scaled = np.asarray(y), class_probabilities(probability), class_probabilities(calibrated)
    predicted, classes = raw.argmax(axis=1), raw.shape[1]
    ranked = ranked_classes(classes)
    average = "binary" if len(ranked) == 1 else "weighted"

    def mean_area(scores: NDArray[Any]) -> float:
        return float(np.mean([roc_auc(y == k, scores[:, k], f"class {k}") for k in ranked]))

    precision, recall, f1, _ = precision_recall_fscore_support(y, predicted, average=average, zero_division=0)
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "macro_f1": float(f1_score(y, predicted, average="macro", zero_division=0)),
        "kappa": float(cohen_kappa_score(y, predicted)),
        "roc_auc": mean_area(raw),
        **({"roc_auc_decisions": mean_area(np.eye(classes)[predicted])} if len(ranked) > 1 else {}),
        "ece": top_label_error(y, raw),
        "ece_scaled": top_label_error(y, scaled),
        **{f"ece_scaled_{n}": top_label_error(y, scaled, bins=n) for n in OTHER_BINS},
        "log_loss": log_loss(y, raw),
        "log_loss_scaled": log_loss(y, scaled),
        "brier_scaled": float(brier_score_loss(y, scaled, labels=np.arange(classes), scale_by_half=True)),
    }


def log_loss(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Return the log loss (nats) of probabilities (N, C) for class indices (N,)."""
    from sklearn.metrics import log_loss as mean_log_loss

    given = np.asarray(probabilities, dtype=np.float64)
    normalised = given / given.sum(axis=1, keepdims=True)
    return float(mean_log_loss(y, normalised, labels=np.arange(normalised.shape[1])))


def binary_metrics(
    y: ArrayLike, score: ArrayLike, probability: ArrayLike, calibrated: ArrayLike, threshold: float | None
) -> dict[str, float]:
    """Return the metrics of table 3, of labels y in {0, 1} and scores, (N,) each; a score above 0 is positive.

    Brier score, log loss and both calibration errors are of the probabilities (N,) as they are and, with names that end in
    _calibrated, after calibration. f1_validation is by a `threshold` that `choose_threshold` chose on validation data, if there
    is one. Raises InputError for probabilities outside [0, 1].
    """
    from sklearn.metrics import average_precision_score, brier_score_loss

    y = np.asarray(y).astype(np.int64)
    score, probability, calibrated = (np.asarray(x, dtype=np.float64) for x in (score, probability, calibrated))
    calibration: dict[str, float] = {}
    for ending, p in (("", probability), ("_calibrated", calibrated)):
        both = class_probabilities(p)
        found = {
            "ece": top_label_error(y, both),
            "ece_positive_rate": expected_calibration_error(p, y),
            "brier": float(brier_score_loss(y, both, labels=[0, 1], scale_by_half=True)),
            "log_loss": log_loss(y, both),
        }
        calibration |= {f"{name}{ending}": value for name, value in found.items()}
    return {
        "auroc": roc_auc(y, score),
        "auprc": float(average_precision_score(y, score)) if y.any() else float("nan"),
        "f1": _f1_above(y, score, 0.0),
        **({} if threshold is None else {"f1_validation": _f1_above(y, score, threshold)}),
        **calibration,
        "prevalence": float(y.mean()),
    }


def ranked_classes(classes: int) -> range:
    """Return the classes whose areas under the ROC curve are averaged: all, or of two the positive one."""
    return range(1 if classes == 2 else 0, classes)


def top_label(y: ArrayLike, probabilities: ArrayLike) -> tuple[Floats, Floats]:
    """Return the largest class probability of each sample (N,), the first of equals, and 1 where it is of the label, else 0."""
    probabilities = np.asarray(probabilities, dtype=np.float64)
    return probabilities.max(axis=1), (probabilities.argmax(axis=1) == np.asarray(y)).astype(np.float64)


def class_probabilities(probability: ArrayLike) -> NDArray[Any]:
    """Return the probabilities of both classes, (N, 2), from those of the positive one, (N,); (N, C) stay as they are."""
    probability = np.asarray(probability)
    return probability if probability.ndim == 2 else np.stack([1 - probability, probability], axis=1)


def expected_calibration_error(probability: ArrayLike, outcome: ArrayLike, *, bins: int = ECE_BINS) -> float:
    """Return the ECE of probabilities (N,) of outcomes (N,) in {0, 1}; raise InputError for probabilities outside [0, 1]."""
    table = reliability(probability, outcome, bins=bins)
    return float(((table["accuracy"] - table["confidence"]).abs() * table["n"]).sum() / table["n"].sum())


def top_label_error(y: ArrayLike, probabilities: ArrayLike, *, bins: int = ECE_BINS) -> float:
    """Return the ECE of the top label, of probabilities (N, C) for class indices (N,)."""
    return expected_calibration_error(*top_label(y, probabilities), bins=bins)


def reliability(probability: ArrayLike, outcome: ArrayLike, *, bins: int = ECE_BINS) -> pd.DataFrame:
    """Return the rows of a reliability diagram: bin (from 0), n, confidence (mean probability), accuracy (mean outcome).

    A bin contains its lower edge, the last one also 1. Empty bins have no row. Raises InputError for probabilities outside
    [0, 1].
    """
    probability = np.asarray(probability, dtype=np.float64)
    if not ((probability >= 0) & (probability <= 1)).all():
        raise InputError(
            f"probabilities must lie in [0, 1], found {probability.min()} to {probability.max()}: "
            "map scores to probabilities before asking for their calibration"
        )
    index = np.digitize(probability, np.linspace(0, 1, bins + 1)[1:-1])
    rows = pd.DataFrame({"confidence": probability, "accuracy": np.asarray(outcome, dtype=np.float64)})
    binned = rows.groupby(pd.Series(index, name="bin"))
    return binned.mean().assign(n=binned.size()).reset_index()[["bin", "n", "confidence", "accuracy"]]


def choose_threshold(y: ArrayLike, score: ArrayLike) -> float:
    """Return the threshold above which calling scores (N,) positive maximises F1 for y (N,), the highest of equally good ones.

    It lies halfway between two observed scores, or just below the lowest. NaN, with a warning, without a positive sample.
    """
    from sklearn.metrics import precision_recall_curve

    y, score = np.asarray(y), np.asarray(score, dtype=np.float64)
    if not y.any():
        logger.warning("no positive sample to choose a threshold on: the threshold is NaN")
        return float("nan")
    precision, recall, thresholds = precision_recall_curve(y, score)
    total = precision[:-1] + recall[:-1]
    f1 = np.divide(2 * precision[:-1] * recall[:-1], total, out=np.zeros_like(total), where=total > 0)
    best = len(f1) - 1 - int(f1[::-1].argmax())
    if best == 0:
        return float(np.nextafter(thresholds[0], -np.inf))
    return float((thresholds[best - 1] + thresholds[best]) / 2)


def _f1_above(y: NDArray[np.int64], score: Floats, threshold: float) -> float:
    """Return the F1 of calling scores above the threshold positive; NaN for a threshold that is NaN."""
    from sklearn.metrics import f1_score

    return float("nan") if np.isnan(threshold) else float(f1_score(y, score > threshold, zero_division=0))
