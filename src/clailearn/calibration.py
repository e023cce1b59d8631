"""Calibrate scores on validation data: by a temperature, by a logistic regression for the vote of two classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

TEMPERATURES = (1e-4, 1e4)
"""Least and largest. Scores lie in [-2, 2] or are logits or log-densities; optimal ones of any of them fall well inside."""


def fit_temperature(scores: ArrayLike, y: ArrayLike) -> float:
    """Return the temperature T > 0 that minimises the negative log-likelihood of softmax(scores / T) (Guo et al. 2017).

    T lies between 1e-4, where perfectly separated scores end, and 1e4, where scores without information end.

    scores: (N, C). y: (N,) class indices.
    """
    scores, y = np.asarray(scores, dtype=np.float64), np.asarray(y)

    def negative_log_likelihood(log_temperature: float) -> float:
        return float(-log_softmax(scores / np.exp(log_temperature), axis=1)[np.arange(len(y)), y].mean())

    # The function is convex in 1 / T, so it has a single minimum in log T.
    minimum = minimize_scalar(
        negative_log_likelihood, bounds=np.log(TEMPERATURES), method="bounded", options={"xatol": 1e-6}
    )
    return float(np.exp(minimum.x))


@dataclass(frozen=True)
class LogisticCalibration:
    """The probability of the positive class as sigmoid(slope * score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, score: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of the positive class, (N,) -> (N,)."""
        return np.asarray(expit(self.slope * np.asarray(score, dtype=np.float64) + self.intercept))


def fit_logistic(score: ArrayLike, y: ArrayLike) -> LogisticCalibration:
    """Fit an unpenalised logistic regression of labels (N,) in {0, 1} on scores (N,).

    The targets of Platt (1999), (N+ + 1) / (N+ + 2) for positives and 1 / (N- + 2) for negatives, keep the fit finite for
    separable scores and for validation data of one class.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    score, y = np.asarray(score, dtype=np.float64), np.asarray(y).astype(bool)
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))
    scaler = StandardScaler().fit(score[:, None])
    x = scaler.transform(score[:, None])
    # A soft target t is a positive of weight t and a negative of weight 1 - t.
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(
        np.concatenate([x, x]), np.repeat([1, 0], len(y)), sample_weight=np.concatenate([target, 1 - target])
    )
    slope = float(model.coef_[0, 0] / scaler.scale_[0])
    return LogisticCalibration(slope, float(model.intercept_[0]) - slope * float(scaler.mean_[0]))


Calibration = float | LogisticCalibration | None
"""What maps scores to probabilities: a temperature, or a logistic regression for f of two classes; None: the bare mapping."""


def fit_calibration(scores: ArrayLike, y: ArrayLike, *, log_odds: bool = False) -> float | LogisticCalibration:
    """Fit the calibration of scores (N, C) on labels y (N,): a temperature; of f of two classes, a logistic regression on f.

    On few samples the regression may say that a class is less likely the larger its f. Then its slope is 0, the best fit that
    does not.

    log_odds: as of `calibrated`; then two classes have a temperature, too.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape[1] > 2:
        return fit_temperature(scores, y)
    if log_odds:
        return fit_temperature(scores / 2, y)
    f = scores[:, 1]
    fitted = fit_logistic(f, y)
    return fitted if fitted.slope > 0 else fit_logistic(np.zeros_like(f), y)


def calibrated(scores: ArrayLike, calibration: Calibration, *, log_odds: bool = False) -> NDArray[np.float64]:
    """Return the probabilities of scores, (N, C) -> (N, C).

    Without a calibration they are the paper's softmax for many classes (section III-D2), and our (1 -+ f) / 2 for two.

    log_odds: of two classes, scores are the negative and the logarithm of the odds, whose softmax of halves is the posterior.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape[1] > 2 or log_odds:
        halves = scores / 2 if scores.shape[1] == 2 else scores
        return np.asarray(softmax(halves / (calibration if isinstance(calibration, float) else 1.0), axis=1))
    f = scores[:, 1]
    positive = calibration(f) if isinstance(calibration, LogisticCalibration) else positive_probability(f)
    return np.stack([1 - positive, positive], axis=1)


def positive_probability(f: ArrayLike) -> NDArray[np.float64]:
    """Return our (1 + f) / 2 of votes f in [-1, 1] for the positive class of two, (N,) -> (N,); the paper gives none."""
    return np.clip((1 + np.asarray(f, dtype=np.float64)) / 2, 0, 1)
