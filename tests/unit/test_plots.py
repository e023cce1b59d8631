"""Displays show what an estimator gives, and need no estimator."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clailearn import CLaIClassifier
from clailearn.plots import EmbeddingDisplay, ReliabilityDisplay, VotesDisplay
from replication.metrics.classification import expected_calibration_error, top_label

X, Y = load_digits(n_class=3, return_X_y=True)


@pytest.fixture(scope="module")
def model() -> object:
    return make_pipeline(StandardScaler(), CLaIClassifier(epochs=3, random_state=0)).fit(X[::2], Y[::2])


def test_embeddings_are_drawn_one_colour_a_label(model: CLaIClassifier) -> None:
    display = EmbeddingDisplay.from_estimator(model, X, Y, s=3)
    assert [len(group.get_offsets()) for group in display.ax_.collections] == np.bincount(Y).tolist()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]
    named = EmbeddingDisplay.from_estimator(model, X, np.array(["_background_", "$10", "$20-$30$^"])[Y])
    named.figure_.canvas.draw()
    assert [text.get_text().strip() for text in named.ax_.get_legend().get_texts()] == [
        r"\$10",
        r"\$20-\$30\$^",
        "_background_",
    ]
    plane = np.random.default_rng(0).normal(size=(5, 2))
    axes = plt.subplots()[1]
    alone = EmbeddingDisplay.from_predictions(plane, ax=axes)
    np.testing.assert_array_equal(alone.ax_.collections[0].get_offsets(), plane)
    assert alone.ax_ is axes


def test_votes_are_bars_or_pictures(model: CLaIClassifier) -> None:
    bars = VotesDisplay.from_estimator(model, X[1:3], k=4)
    for ax, votes in zip(bars.axes_.flat, bars.votes, strict=True):
        assert [bar.get_width() for bar in ax.patches] == [vote.vote for vote in votes.support + votes.opposition]
    images = X.reshape(-1, 8, 8)
    pictures = VotesDisplay.from_predictions(bars.votes, pictures=images[1:3], reference_pictures=images[::2])
    assert pictures.axes_.shape == (2, 9)
    np.testing.assert_array_equal(pictures.axes_[1, 0].images[0].get_array(), images[2])
    first = bars.votes[1].support[0].item
    np.testing.assert_array_equal(pictures.axes_[1, 1].images[0].get_array(), images[::2][first])
    with pytest.raises(ValueError, match="expected both or none"):
        VotesDisplay(bars.votes, pictures=images)
    for pictured, references in ((images, images), (images[1:3], images[:1])):
        with pytest.raises(ValueError, match="expected 2, a picture a sample, and at least"):
            VotesDisplay(bars.votes, pictured, references)


def test_reliability_has_the_known_error(model: CLaIClassifier) -> None:
    probabilities = model.predict_proba(X)
    display = ReliabilityDisplay.from_estimator(model, X, Y, bins=5)
    expected = expected_calibration_error(*top_label(Y, probabilities), bins=5)
    assert display.expected_calibration_error == pytest.approx(expected)
    assert display.counts.sum() == len(X)
    both = ReliabilityDisplay.from_predictions(Y, probabilities, [0, 1, 2], bins=5, name="again", ax=display.ax_)
    assert len(both.ax_.lines) == 3
    names = np.array(["a", "b"])
    with pytest.raises(ValueError, match="y_true holds 0, expected labels as those of classes, such as 'a'"):
        ReliabilityDisplay.from_predictions([0, 1], np.eye(2), names)
    for wrong in (100 * np.eye(2), np.eye(2)[:, 1], np.eye(3)[:2], np.eye(2) - 0.5, np.eye(2) * np.nan):
        with pytest.raises(ValueError, match=r"expected probabilities from 0 to 1 of shape \(N, 2\)"):
            ReliabilityDisplay.from_predictions(names, wrong, names)
    sure = ReliabilityDisplay.from_predictions(names[[0, 1, 1, 1]], np.eye(2)[[0, 1, 1, 0]], names)
    assert sure.accuracy.tolist() == [0.75]
    assert sure.expected_calibration_error == 0.25
