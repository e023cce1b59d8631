"""Classifiers of rows of features, of single hours by the encoder's inputs (`recordings.hourly_inputs`), or of embeddings.

All but the constant and the mixture are fitted on a sample of the frequent classes and all of the rare ones, so that boosting a
million hours takes seconds. Log-probabilities of such a classifier differ from those of all rows by a constant for each class
(King & Zeng 2001), which is added here (`class_sample`).

The mixture of Student-t distributions (table III of the paper) decides by Bayes' rule between densities, which the package
`studenttmixture` fits by expectation-maximisation (Peel & McLachlan 2000).
"""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from clailearn.errors import InputError
from replication.models.base import Floats, Labels, RowClassifier, Rows, log_odds, validation_figures

logger = logging.getLogger(__name__)

# Imports of scikit-learn are slow, and trainings of networks, which import this module for their read-outs, need few of them.
# A mixture has converged when its mean log-likelihood changes by less than the tolerance, or at worst by the loosest one.
_TOLERANCE, _LOOSEST = 1e-4, 1e-2
_ITERATIONS = 500


class Constant(RowClassifier):
    """The log-odds of the prevalence, for every row."""

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, *, seed: int) -> Self:
        self.value = float(logit(np.mean(y)))
        return self

    def score_rows(self, x: Rows) -> Floats:
        return np.full(len(x), self.value)


class LogisticRegression(RowClassifier):
    """A ridge-penalised logistic regression on standardised inputs, without the columns that do not vary (`varying`)."""

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, *, seed: int, **settings: Any) -> Self:
        """Fit; `merit` on validation rows, every class among them, chooses `inverse_penalty`, scikit-learn's C."""
        from sklearn import linear_model
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        rows, self.shift = class_sample(y, settings["samples_per_class"], seed)
        self.columns = varying(x[rows])
        fitted = {
            c: make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=c, max_iter=1000)).fit(
                x[rows][:, self.columns], y[rows]
            )
            for c in settings["inverse_penalty"]
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

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, *, seed: int, **settings: Any) -> Self:
        """Fit; `merit` on validation rows, every class among them, chooses `iterations`; the others are scikit-learn's."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        iterations: Sequence[int] = settings.pop("iterations")
        rows, self.shift = class_sample(y, settings.pop("samples_per_class"), seed)

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


@dataclass(frozen=True)
class Densities:
    """Class-conditional densities of whitened embeddings (a PCA, and an EMStudentMixture a class), and the class shares."""

    whitening: Any
    mixtures: list[Any]
    shares: Floats

    def log_densities(self, z: ArrayLike) -> Floats:
        """Return log p(z | class) (N, 2) of the whitened embeddings, given embeddings (N, L)."""
        whitened = self.whitening.transform(np.asarray(z, dtype=np.float64))
        return np.stack([mixture.score_samples(whitened) for mixture in self.mixtures], axis=1)

    def log_odds(self, z: ArrayLike) -> Floats:
        """Return the log-odds (N,) of the second of two classes at embeddings (N, L), by Bayes' rule."""
        return log_odds(self.log_densities(z) + np.log(self.shares))


class StudentTMixture(RowClassifier):
    """The best mixture of those with some numbers of components and degrees of freedom. Two classes only."""

    def fit_rows(self, x: Rows, y: Labels, x_val: Rows, y_val: Labels, **settings: Any) -> Self:
        """Fit every combination, and choose that of the largest ROC-AUC on validation rows; InputError if none converges."""
        best, varied = -np.inf, {name: settings.pop(name) for name in ("components", "degrees_of_freedom")}
        for values in itertools.product(*varied.values()):
            combination = dict(zip(varied, values, strict=True))
            try:
                densities = fit_student_t_mixture(x, y, **combination, **settings)
            except InputError as error:
                logger.warning("left out %s: %s", combination, error)
                last = error
                continue
            auroc = merit(y_val, densities.log_odds(x_val))
            logger.info("%s: AUROC %.4f on validation samples", combination, auroc)
            if auroc > best:
                best, self.densities, self.choices = auroc, densities, combination
        if best == -np.inf:
            raise last
        return self

    def score_rows(self, x: Rows) -> Floats:
        return self.densities.log_odds(x)


def fit_student_t_mixture(
    z: ArrayLike,
    y: ArrayLike,
    *,
    components: int,
    degrees_of_freedom: float,
    variance: float,
    regularisation: float,
    samples_per_class: int,
    seed: int,
) -> Densities:
    """Fit one mixture to each class of embeddings z (N, L); workflow/config/baselines.yaml explains the settings.

    Embeddings of a trained encoder lie close to a subspace, so that the leading principal components are scaled to unit variance,
    the others dropped. A fit that does not converge is repeated, with a warning, at ten times the tolerance, up to 1e-2. A class
    has fewer components where it has at most three samples for each.

    Raises InputError for a class of fewer than four samples, embeddings that are constant or not finite, and a fit that does not
    converge.
    """
    from sklearn.decomposition import PCA

    z, y = np.asarray(z, dtype=np.float64), np.asarray(y)
    counts = np.bincount(y)
    if counts.min() < 4:
        raise InputError(f"class {counts.argmin()} has {counts.min()} embeddings, a mixture needs at least 4")
    if not np.isfinite(z).all() or not z.std(axis=0).any():
        raise InputError("embeddings are constant or not finite: there is no density to fit; check the trained encoder")
    generator = np.random.default_rng(seed)
    whitening = PCA(n_components=variance, whiten=True, svd_solver="full").fit(z)
    most = max(1, (int(counts.min()) - 1) // 2)
    if whitening.n_components_ > most:
        logger.warning("%d samples in the smallest class: keeping %d principal components", counts.min(), most)
        whitening = PCA(n_components=most, whiten=True, svd_solver="full").fit(z)
    mixtures = []
    for label, count in enumerate(counts):
        rows = generator.permutation(np.flatnonzero(y == label))[:samples_per_class]
        mixture = fit_one(
            whitening.transform(z[rows]),
            label,
            n_components=min(components, (min(int(count), samples_per_class) - 1) // 3),
            df=degrees_of_freedom,
            reg_covar=regularisation,
            random_state=seed,
        )
        mixtures.append(mixture)
    return Densities(whitening, mixtures, counts / counts.sum())


def fit_one(x: Floats, label: int, **settings: Any) -> Any:
    """Fit an `EMStudentMixture` to embeddings x (N, L) of a class, at a looser tolerance if need be (`fit_student_t_mixture`)."""
    from studenttmixture import EMStudentMixture

    tolerance = _TOLERANCE
    while True:
        mixture = EMStudentMixture(tol=tolerance, max_iter=_ITERATIONS, **settings)
        mixture.fit(x)
        if mixture.converged_:
            return mixture
        if tolerance >= _LOOSEST:
            raise InputError(
                f"the Student-t mixture of class {label} did not converge in {_ITERATIONS} iterations even at a "
                f"tolerance of {tolerance:g}: raise regularisation, or use fewer components than "
                f"{settings['n_components']}"
            )
        logger.warning("mixture of class %d not converged at tolerance %g: trying ten times that", label, tolerance)
        tolerance = min(10 * tolerance, _LOOSEST)


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
    figures = validation_figures(scores, torch.as_tensor(y))
    return figures.get("validation_auroc", figures["validation_accuracy"])
