"""Displays in the manner of scikit-learn: embeddings, votes and reliability. They need matplotlib, the extra `plots`.

A display holds what it shows. `from_estimator` computes it, `from_predictions` takes it, and both draw it by `plot`.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, column_or_1d

from clailearn.votes import Votes

_FOR, _AGAINST = "#0072B2", "#D55E00"


def _axes(ax: Any, **grid: Any) -> Any:
    """Return the axes to draw on, new ones unless they are given; an array of them for a grid."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install matplotlib") from error
    return plt.subplots(layout="constrained", **grid)[1] if ax is None else ax


def _text(label: Any) -> str:
    """Return a label as matplotlib shows it: it takes dollars for formulas, and leaves out what begins with an underscore."""
    text = str(label).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


class EmbeddingDisplay:
    """Embeddings of samples in two dimensions, coloured by label.

    Parameters
    ----------
    points : ndarray of shape (N, 2)
    labels : ndarray of shape (N,) or None

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    """

    def __init__(self, points: NDArray[np.float64], labels: NDArray[Any] | None) -> None:
        self.points, self.labels = points, labels

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike | None = None, **kwargs: Any) -> Self:
        """Draw the embeddings that a fitted `CLaIClassifier`, or a pipeline that ends in one, gives samples X with labels y.

        `kwargs` are those of `from_predictions`.
        """
        return cls.from_predictions(estimator.transform(X), y, **kwargs)

    @classmethod
    def from_predictions(
        cls, embeddings: ArrayLike, y: ArrayLike | None = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw embeddings (N, D) with labels y (N,), in the plane of their two first principal components if D > 2."""
        points = np.asarray(embeddings, dtype=np.float64)
        check_consistent_length(points, y)
        if points.shape[1] > 2:
            points = PCA(2, random_state=0).fit_transform(points)
        return cls(points, None if y is None else column_or_1d(y)).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; `kwargs` go to `Axes.scatter`."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        style = {"s": 12, "linewidths": 0, "alpha": 0.8} | kwargs
        groups = [None] if self.labels is None else np.unique(self.labels).tolist()
        for label in groups:
            shown = slice(None) if label is None else self.labels == label
            self.ax_.scatter(*self.points[shown].T, label=None if label is None else _text(label), **style)
        if self.labels is not None:
            self.ax_.legend(title="label", markerscale=2, frameon=False, bbox_to_anchor=(1, 1), loc="upper left")
        self.ax_.set(xticks=[], yticks=[], aspect="equal")
        return self


class VotesDisplay:
    """The references with the strongest votes for and against the predicted label of samples.

    Parameters
    ----------
    votes : list of clailearn.votes.Votes
    pictures, reference_pictures : arrays (N, height, width) or (N, height, width, 3), or None
        Of the samples, and of all references by `Vote.item`. Without them votes are drawn as bars.

    Attributes
    ----------
    axes_, figure_ : array of matplotlib Axes, and Figure, after `plot`
    """

    def __init__(self, votes: Sequence[Votes], pictures: Any = None, reference_pictures: Any = None) -> None:
        if (pictures is None) != (reference_pictures is None):
            raise ValueError("found pictures of samples or of references alone, expected both or none")
        self.votes, self.pictures, self.reference_pictures = list(votes), pictures, reference_pictures
        last = max((vote.item for sample in self.votes for vote in (*sample.support, *sample.opposition)), default=-1)
        if pictures is not None and (len(pictures) != len(self.votes) or len(reference_pictures) <= last):
            raise ValueError(
                f"found {len(pictures)} pictures of samples and {len(reference_pictures)} of references, expected "
                f"{len(self.votes)}, a picture a sample, and at least {last + 1}, those of the X of fit"
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, k: int = 5, pictures: Any = None, reference_pictures: Any = None
    ) -> Self:
        """Draw the votes of a fitted `CLaIClassifier`, or a pipeline that ends in one, on samples X; `k` on each side."""
        if isinstance(estimator, Pipeline):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        return cls.from_predictions(estimator.votes(X, k), pictures=pictures, reference_pictures=reference_pictures)

    @classmethod
    def from_predictions(cls, votes: Sequence[Votes], *, pictures: Any = None, reference_pictures: Any = None) -> Self:
        """Draw votes that an estimator or a published model gave."""
        return cls(votes, pictures, reference_pictures).plot()

    def plot(self) -> Self:
        """Draw a row a sample: pictures, or a panel of bars."""
        if self.pictures is None:
            self._plot_bars()
        else:
            self._plot_pictures()
        self.figure_ = self.axes_.flat[0].figure
        return self

    def _plot_bars(self) -> None:
        rows = max(len(sample.support) + len(sample.opposition) for sample in self.votes)
        size = (5, len(self.votes) * (0.6 + 0.22 * rows))
        self.axes_ = _axes(None, nrows=len(self.votes), squeeze=False, figsize=size)
        for ax, sample in zip(self.axes_.flat, self.votes, strict=True):
            shown = [*sample.support, *sample.opposition]
            colours = [_FOR] * len(sample.support) + [_AGAINST] * len(sample.opposition)
            ax.barh(range(len(shown)), [vote.vote for vote in shown], color=colours)
            ax.set_yticks(range(len(shown)), [f"reference {vote.item}: {_text(vote.label)}" for vote in shown])
            ax.invert_yaxis()
            ax.axvline(0, color="0.3", linewidth=0.8)
            ax.set(title=f"predicted {_text(sample.label)}, score {sample.score:.2f}", xlabel="vote")

    def _plot_pictures(self) -> None:
        sides = [max(len(side) for side in sides) for sides in zip(*(s[2:] for s in self.votes), strict=True)]
        columns = 1 + sum(sides)
        self.axes_ = _axes(
            None, nrows=len(self.votes), ncols=columns, squeeze=False, figsize=(1.1 * columns, 1.5 * len(self.votes))
        )
        for ax in self.axes_.flat:
            ax.set_axis_off()
        for row, picture, sample in zip(self.axes_, self.pictures, self.votes, strict=True):
            row[0].imshow(picture, cmap="gray_r")
            row[0].set_title(f"predicted\n{_text(sample.label)}", fontsize=9)
            for first, side, colour in ((1, sample.support, _FOR), (1 + sides[0], sample.opposition, _AGAINST)):
                for ax, vote in zip(row[first:], side, strict=False):
                    ax.imshow(self.reference_pictures[vote.item], cmap="gray_r")
                    ax.set_title(f"{_text(vote.label)}\n{vote.vote:+.4f}", fontsize=9, color=colour)


class ReliabilityDisplay:
    """How often predicted labels are right, against their probability.

    Parameters
    ----------
    confidence, accuracy : ndarray of shape (bins,)
        Mean probability of the predicted label, and share of right ones, of the samples of each bin that has some.
    counts : ndarray of shape (bins,)
        Samples of the bins.
    name : str or None
        Of the estimator, for the legend.

    Attributes
    ----------
    expected_calibration_error : float
        Absolute difference of accuracy and confidence, a mean over samples (Guo et al. 2017).
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    """

    def __init__(
        self,
        confidence: NDArray[np.float64],
        accuracy: NDArray[np.float64],
        counts: NDArray[np.int64],
        name: str | None,
    ) -> None:
        self.confidence, self.accuracy, self.counts, self.name = confidence, accuracy, counts, name
        self.expected_calibration_error = float(np.average(np.abs(accuracy - confidence), weights=counts))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the reliability of a fitted classifier on samples X with labels y; `kwargs` are those of `from_predictions`."""
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, estimator.predict_proba(X), estimator.classes_, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        classes: ArrayLike,
        *,
        bins: int = 10,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of probabilities (N, C), whose columns are those of `classes`; `bins` of equal width."""
        probabilities = np.asarray(y_proba, dtype=np.float64)
        check_consistent_length(y_true, probabilities)
        labels, known = column_or_1d(y_true), np.asarray(classes)
        if probabilities.shape[1:] != known.shape or not ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all():
            raise ValueError(
                f"y_proba has the shape {probabilities.shape} and values up to {probabilities.max():.3g}, expected probabilities "
                f"from 0 to 1 of shape (N, {len(known)})"
            )
        if not {*labels.tolist()} & {*known.tolist()}:
            raise ValueError(
                f"y_true holds {labels.tolist()[0]!r}, expected labels as those of classes, such as {known.tolist()[0]!r}"
            )
        right, top = known[probabilities.argmax(1)] == labels, probabilities.max(1)
        bin_of = np.minimum((top * bins).astype(int), bins - 1)
        _, filled, counts = np.unique(bin_of, return_inverse=True, return_counts=True)
        confidence, accuracy = (np.bincount(filled, values) / counts for values in (top, right))
        return cls(confidence, accuracy, counts, name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; `kwargs` go to `Axes.plot`."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        if not self.ax_.lines:
            self.ax_.plot([0, 1], [0, 1], ":", color="0.4", label="calibrated")
        label = f"ECE {self.expected_calibration_error:.3f}"
        label = label if self.name is None else f"{self.name}: {label}"
        self.ax_.plot(self.confidence, self.accuracy, **{"marker": "o", "label": label} | kwargs)
        self.ax_.set(
            xlabel="probability of the predicted label", ylabel="share of right labels", xlim=(0, 1), ylim=(0, 1)
        )
        self.ax_.legend(frameon=False)
        return self
