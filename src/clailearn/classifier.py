"""A scikit-learn classifier around a model: its predictions, and how references join and leave it without a fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from clailearn.fitting import labels_of_one_type, validated
from clailearn.model import Model
from clailearn.votes import References, Votes

UNSAVED = {"trunk", "device", "calibration", "random_state"}
"""Parameters that a saved estimator leaves out: objects, and the device."""


class ModelClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """Base class of `CLaIClassifier`: all that a fitted one does. `_hold` is how it is fitted."""

    model_: Model
    _fitted: dict[str, Any]
    """Parameters of the fit: `set_params` changes nothing of what was fitted."""
    _next_index: int
    """Number of the next reference that joins."""

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return embeddings: (N, L) for two classes or without conditioning; else (N, C L), the conditions side by side."""
        X = self._checked(X)
        embedded = self.model_.outputs(X)[0]
        return np.asarray(embedded.transpose(0, 1).flatten(1).cpu().numpy(), dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return f: (N,) for two classes, positive for the second; (N, C) for C > 2, largest for the predicted class.

        By the rule 'parzen', whose f is twice the posterior minus 1 and rounds to 1 far from the references, it is the logarithm
        of the posterior, for two classes that of the odds.
        """
        X = self._checked(X)
        scores = self.model_.scores(X)
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (N, C).

        With `calibration` the probabilities are fitted on scores of samples that were held out of training: the softmax of
        f / temperature for more than two classes (Guo et al. 2017), a logistic regression on f for two (Platt 1999), with a slope
        of at least 0. n training samples cannot show that a class is rarer than about one in n, so the temperature's
        probabilities p become (n p + 1) / (n + C). For two classes the likelier one may differ from `predict`, which is the
        vote's. `model_.probabilities` and the command `clailearn predict` give the bare p.

        Without it probabilities are uncalibrated: the softmax of f for more than two classes, as in the paper (section III-D2),
        and (1 + f) / 2 for two, which is this library's since the paper gives none. By the rule 'parzen' they are the posteriors,
        for more than two classes normalised; a temperature divides their logarithms. By other rules f lies in [-1, 1], so that a
        bare softmax is never confident; by the rule 'balanced' it lies in [-2, 2], and (1 + f) / 2 is cut off at 0 and 1.
        """
        X = self._checked(X)
        p = self.model_.probabilities(X)
        if not isinstance(self.calibration_, float):
            return p
        n = self.class_count_.sum()
        return (n * p + 1) / (n + p.shape[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels (N,)."""
        X = self._checked(X)
        return np.asarray(self.classes_[self.model_.scores(X).argmax(1)])

    @property
    def _n_features_out(self) -> int:
        conditions, _, size = self._references(self.model_).z.shape
        return conditions * size

    def votes(self, X: Any, k: int = 5) -> list[Votes]:
        """Return the votes of the k most similar references for and against the predicted label of each sample.

        Parameters
        ----------
        X : as in `fit`
        k : int, default=5
            References on each side, at most.

        Returns
        -------
        list of N `clailearn.votes.Votes`
            The `item` of a vote is its number in `reference_indices_`, its row in the X of `fit`. A reference votes against its
            own label where its similarity is negative, except by the rule 'parzen'.
        """
        X = self._checked(X)
        return self.model_.votes(X, k)

    def add_references(self, X: Any, y: Any) -> Self:
        """Let further samples vote, without training.

        Scores are afterwards those of the same encoder with these references from the start. The encoder does not change, so
        new samples should resemble those of `fit`. Labels that `fit` has not seen make new classes, where one embedding serves
        all classes (`conditioning=None`); `classes_` and the columns of scores stay sorted.

        The calibration stays that of the references of `fit`. A temperature also serves new classes, though not as well as one
        that had seen them; the logistic regression of two classes does not, so that `calibration_` becomes None where a third
        one joins. `CalibratedClassifierCV(FrozenEstimator(model))` calibrates anew, on samples that are no references.

        Parameters
        ----------
        X : as in `fit`
        y : array of labels of shape (N,)

        Raises
        ------
        ValueError
            A label is new, and embeddings are conditioned on the classes of `fit`.
        """
        X, y = self._checked(X), column_or_1d(labels_of_one_type(y, "y"))
        check_consistent_length(X, y)
        new = np.setdiff1d(unique_labels(self.classes_, y), self.classes_)
        if len(new) and self._fitted["conditioning"]:
            raise ValueError(
                f"y holds {new[0]}, which is none of the labels of fit, and the embedding is conditioned on these; fit with "
                "conditioning=None to add classes"
            )
        classes = np.union1d(self.classes_, y) if len(new) else self.classes_
        model, numbers = self._over(classes), np.arange(self._next_index, self._next_index + len(y))
        z, labels = model.outputs(X)[0], torch.from_numpy(np.searchsorted(classes, y))
        references = self._references(model).with_others(z, labels, torch.from_numpy(numbers))
        self._next_index += len(y)
        return self._hold(replace(model, references=references), classes)

    def remove_references(self, indices: ArrayLike) -> Self:
        """Let references vote no more.

        Scores are afterwards those of the same encoder without these references from the start. The encoder does not change: it
        has learned from them, if `fit` saw them. A class that keeps no reference leaves `classes_`, where one embedding serves
        all classes. For the calibration see `add_references`; it is also lost where two classes remain, but not by the rule
        'parzen'.

        Parameters
        ----------
        indices : array of int
            Numbers in `reference_indices_`.

        Raises
        ------
        ValueError
            No reference has such a number, fewer than two classes would remain, or embeddings are conditioned on a class that
            would be left without references.
        """
        check_is_fitted(self)
        indices = np.atleast_1d(indices)
        if len(indices) and (indices.ndim > 1 or indices.dtype.kind not in "iuf"):
            found = "truth values" if indices.dtype == bool else f"{indices.dtype} of shape {indices.shape}"
            raise ValueError(f"indices holds {found}, expected numbers in reference_indices_; take these of it")
        if len(unknown := np.setdiff1d(indices, self.reference_indices_)):
            raise ValueError(f"indices holds {unknown[0]}, and no reference has this number in reference_indices_")
        kept = ~np.isin(self.reference_indices_, indices)
        left = np.bincount(self.reference_labels_[kept], minlength=len(self.classes_)) > 0
        if left.sum() < 2 or (self._fitted["conditioning"] and not left.all()):
            raise ValueError(
                f"indices leaves class {self.classes_[~left][0]} without references; at least two classes are needed, and "
                "with conditioning='class' those of fit"
            )
        classes = self.classes_[left]
        return self._hold(self._over(classes, torch.from_numpy(kept)), classes)

    def save(self, folder: str | Path) -> None:
        """Write what predictions need into a folder: `model.json` and `model.safetensors`, which hold no code.

        `clailearn.load` reads them, and needs a trunk of one's own again. They leave out `history_` and the parameters `trunk`,
        `device`, `calibration` and `random_state`. Labels that JSON would change, such as dates, and what `load` would refuse,
        such as whole numbers beyond 2^53 as labels, raise ValueError. A pipeline
        has no `save`: joblib keeps it whole, as code that is run when it is read; `pipeline[-1].save` keeps this step without
        the steps before it, such as a scaler.
        """
        check_is_fitted(self)
        labels = self.classes_.tolist()
        changed = self.classes_.dtype.kind in "mM" or np.array(labels).tolist() != labels
        if changed or {*map(type, labels)} not in ({bool}, {int}, {float}, {str}):
            raise ValueError(
                f"classes_ holds labels of type {self.classes_.dtype} that JSON cannot hold, expected numbers of 64 bits, texts "
                "or truth values; encode y, for instance by sklearn.preprocessing.LabelEncoder"
            )
        estimator = {
            "parameters": {key: value for key, value in self._fitted.items() if key not in UNSAVED},
            "next_index": self._next_index,
        }
        replace(self.model_, record={"estimator": estimator}).save(folder)

    def _checked(self, X: Any) -> Any:
        """Return samples of a fitted estimator as an array, which keeps its type of numbers."""
        check_is_fitted(self)
        return validated(self, X, ())

    def _hold(self, model: Model, classes: NDArray[Any]) -> Self:
        """Take over a model, and name its parts as scikit-learn does."""
        references = self._references(model)
        self.model_, self.classes_, self.calibration_ = model, classes, model.calibration
        self.reference_labels_, self.reference_indices_ = (
            references.y.numpy(force=True).copy(),
            references.item.numpy().copy(),
        )
        self.class_count_ = references.population.numpy(force=True).copy()
        return self

    @staticmethod
    def _references(model: Model) -> References:
        assert model.references is not None
        return model.references

    def _over(self, classes: NDArray[Any], kept: Tensor | None = None) -> Model:
        """Return the model over other classes, sorted, with those references that are `kept`, each of one of these classes."""
        references = self._references(self.model_)
        if kept is not None:
            references = references.only(kept)
        numbers = np.where(np.isin(self.classes_, classes), np.searchsorted(classes, self.classes_), -1)
        references = references.renumbered(torch.from_numpy(numbers), len(classes))
        alike = self.model_.log_odds or (len(self.classes_) > 2) == (len(classes) > 2)
        calibration = self.calibration_ if alike else None
        return replace(self.model_, references=references, classes=classes.tolist(), calibration=calibration)
