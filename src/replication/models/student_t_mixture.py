"""Bayes' rule with a mixture of multivariate Student-t distributions for each class (table III of the paper).

The densities are fitted by expectation-maximisation with the package `studenttmixture` (Peel & McLachlan 2000).
"""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from studenttmixture import EMStudentMixture

from clailearn.errors import InputError
from replication.models.base import Floats, Labels, RowClassifier, Rows, log_odds

logger = logging.getLogger(__name__)

# The loosest tolerance at which a fit still counts as converged.
_LOOSEST = 1e-2


@dataclass(frozen=True)
class Densities:
    """Class-conditional densities of whitened embeddings, and the class shares of the training data."""

    whitening: PCA
    mixtures: list[EMStudentMixture]
    shares: Floats

    def log_densities(self, z: ArrayLike) -> Floats:
        """Return log p(z | class) (N, 2) of the whitened embeddings, given embeddings (N, L)."""
        whitened = self.whitening.transform(np.asarray(z, dtype=np.float64))
        return np.stack([mixture.score_samples(whitened) for mixture in self.mixtures], axis=1)

    def log_odds(self, z: ArrayLike) -> Floats:
        """Return the log-odds (N,) of the second of two classes at embeddings (N, L), by Bayes' rule."""
        return log_odds(self.log_densities(z) + np.log(self.shares))


def fit_student_t_mixture(
    z: ArrayLike,
    y: ArrayLike,
    *,
    components: int,
    degrees_of_freedom: float,
    variance: float,
    regularisation: float,
    samples_per_class: int,
    iterations: int,
    tolerance: float,
    seed: int,
) -> Densities:
    """Fit one mixture to each class of embeddings z (N, L); workflow/config/baselines.yaml explains the settings.

    Embeddings of a trained encoder lie close to a subspace, so that the leading principal components are scaled to unit variance,
    the others dropped. A fit that does not converge is repeated, with a warning, at ten times the tolerance, up to 1e-2. A class
    has fewer components where it has at most three samples for each.

    Raises InputError for a class of fewer than four samples, embeddings that are constant or not finite, and a fit that does not
    converge.
    """
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
        mixture = _fit_one(
            whitening.transform(z[rows]),
            label,
            tolerance,
            n_components=min(components, (min(int(count), samples_per_class) - 1) // 3),
            df=degrees_of_freedom,
            reg_covar=regularisation,
            max_iter=iterations,
            random_state=seed,
        )
        mixtures.append(mixture)
    return Densities(whitening, mixtures, counts / counts.sum())


class StudentTMixture(RowClassifier):
    """The best mixture of those with some numbers of components and degrees of freedom. Two classes only."""

    densities: Densities

    def fit_rows(
        self,
        x: Rows,
        y: Labels,
        x_val: Rows,
        y_val: Labels,
        *,
        components: Sequence[int],
        degrees_of_freedom: Sequence[float],
        **settings: Any,
    ) -> Self:
        """Fit every combination, and choose that of the largest ROC-AUC on validation rows; InputError if none converges."""
        best = -np.inf
        for count, freedom in itertools.product(components, degrees_of_freedom):
            combination: dict[str, Any] = {"components": count, "degrees_of_freedom": freedom}
            try:
                densities = fit_student_t_mixture(x, y, **combination, **settings)
            except InputError as error:
                logger.warning("left out %s: %s", combination, error)
                last = error
                continue
            auroc = float(roc_auc_score(y_val, densities.log_odds(x_val)))
            logger.info("%s: AUROC %.4f on validation samples", combination, auroc)
            if auroc > best:
                best, self.densities, self.choices = auroc, densities, combination
        if best == -np.inf:
            raise last
        return self

    def score_rows(self, x: Rows) -> Floats:
        return self.densities.log_odds(x)


def _fit_one(x: Floats, label: int, tolerance: float, **settings: Any) -> EMStudentMixture:
    while True:
        mixture = EMStudentMixture(tol=tolerance, **settings)
        mixture.fit(x)
        if mixture.converged_:
            return mixture
        if tolerance >= _LOOSEST:
            raise InputError(
                f"the Student-t mixture of class {label} did not converge in {settings['max_iter']} iterations even at a "
                f"tolerance of {tolerance:g}: raise iterations or regularisation, or use fewer components than "
                f"{settings['n_components']}"
            )
        logger.warning("mixture of class %d not converged at tolerance %g: trying ten times that", label, tolerance)
        tolerance = min(10 * tolerance, _LOOSEST)
