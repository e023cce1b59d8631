"""The references of a fitted estimator: their votes, and how they join and leave without a fit."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from clailearn.computation import Computation, labels_of_one_type, validated
from clailearn.encoders import Encoder
from clailearn.inference import decide, parzen_means
from clailearn.kernels import Kernel
from clailearn.saved import save_estimator
from clailearn.votes import References, Votes, strongest_votes


class VotingReferences:
    """Part of `CLaIClassifier`: the methods that concern single references."""

    classes_: NDArray[Any]
    class_count_: NDArray[np.int64]
    calibration_: Any
    encoder_: Encoder
    kernel_: Kernel
    reference_embeddings_: Tensor
    reference_labels_: Tensor
    reference_indices_: NDArray[np.int64]
    _fitted: dict[str, Any]
    """Parameters of the fit: `set_params` changes nothing of what was fitted."""
    _next_index: int

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
            `label` is the predicted label and `score` its f, the sum of the votes of all references. `support` has references of
            this label and `opposition` those of others, each with `item` (its number in `reference_indices_`, which is its row
            in the X of `fit`), `label`, `similarity` in [-1, 1] and `vote`. A reference votes against its own label where its
            similarity is negative, except by the rule 'parzen'.
        """
        X = self._checked(X)
        if k < 1:
            raise ValueError(f"k is {k}, expected a number of references from 1")
        with self._computation.modes():
            z = self._computation.embed(self.encoder_, X)
            references = self._references
            classes = self.classes_.tolist()
            return list(
                strongest_votes(self.kernel_, [z], references, self._scores(z), classes, self._fitted["rule"], k)
            )

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
        z = self._computation.embed(self.encoder_, X)
        self._set_classes(np.union1d(self.classes_, y))
        labels = np.searchsorted(self.classes_, y)
        self.class_count_ = self.class_count_ + np.bincount(labels, minlength=len(self.classes_))
        known = self.reference_labels_
        self.reference_embeddings_ = torch.cat([self.reference_embeddings_, z], dim=1)
        self.reference_labels_ = torch.cat([known, torch.from_numpy(labels).to(known.device)])
        numbers = np.arange(self._next_index, self._next_index + len(labels))
        self.reference_indices_ = np.concatenate([self.reference_indices_, numbers])
        self._next_index += len(labels)
        return self

    def remove_references(self, indices: ArrayLike) -> Self:
        """Let references vote no more.

        Scores are afterwards those of the same encoder without these references from the start. The encoder does not change: it
        has learned from them, if `fit` saw them. A class that keeps no reference leaves `classes_`, where one embedding serves
        all classes. For the calibration see `add_references`; it is also lost where two classes remain.

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
        labels = self.reference_labels_.cpu().numpy()
        left = np.bincount(labels[kept], minlength=len(self.classes_)) > 0
        if left.sum() < 2 or (self._fitted["conditioning"] and not left.all()):
            raise ValueError(
                f"indices leaves class {self.classes_[~left][0]} without references; at least two classes are needed, and "
                "with conditioning='class' those of fit"
            )
        self.class_count_ = self.class_count_ - np.bincount(labels[~kept], minlength=len(left))
        rows = torch.from_numpy(kept).to(self.reference_labels_.device)
        self.reference_embeddings_ = self.reference_embeddings_[:, rows]
        self.reference_labels_ = self.reference_labels_[rows]
        self.reference_indices_ = self.reference_indices_[kept]
        self._set_classes(self.classes_[left])
        return self

    def save(self, folder: str | Path) -> None:
        """Write what predictions need into a folder: `model.json` and `model.safetensors`, which hold no code.

        `clailearn.load` reads them, and needs a trunk of one's own again. They leave out `history_` and the parameters `trunk`,
        `device`, `calibration` and `random_state`.
        """
        check_is_fitted(self)
        save_estimator(self, folder)

    @property
    def _computation(self) -> Computation:
        own = self._fitted
        return Computation(own["device"], own["precision"], one_thread=own["trunk"] is None)

    def _checked(self, X: Any, *y: Any) -> Any:
        """Return X, or X and y of a fit, as arrays; X keeps its type of numbers."""
        if not y:
            check_is_fitted(self)
        return validated(self, X, y)

    @property
    def _references(self) -> References:
        z, y = self.reference_embeddings_, self.reference_labels_
        items, counts = (
            torch.tensor(numbers, device="cpu") for numbers in (self.reference_indices_, self.class_count_)
        )
        return References(z, y.to(z.device), items, counts.to(z.device))

    def _scores(self, z: Tensor) -> Tensor:
        """Return f of embeddings (K, N, L) as `clailearn.inference.decide` has it."""
        references, labels, _, counts, _ = self._references
        return decide(
            parzen_means(self.kernel_, z, references, labels, counts, classes=len(counts)), self._fitted["rule"]
        )

    def _set_classes(self, classes: NDArray[Any]) -> None:
        """Replace `classes_` and give the references that stay their places in it."""
        before, self.classes_ = self.classes_, classes
        if (len(before) > 2) != (len(classes) > 2):
            self.calibration_ = None
        places, stays = np.searchsorted(classes, before), np.isin(before, classes)
        counts = np.zeros(len(classes), dtype=np.int64)
        counts[places[stays]] = self.class_count_[stays]
        self.class_count_ = counts
        self.reference_labels_ = torch.from_numpy(places).to(self.reference_labels_.device)[self.reference_labels_]
