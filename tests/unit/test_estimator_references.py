"""References of a fitted CLaIClassifier: their votes, how they join and leave, and how few may vote."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, LeaveOneOut, PredefinedSplit
from torch import Tensor, nn

import clailearn
from clailearn import CLaIClassifier
from clailearn.fitting import validation_split

X, Y = load_digits(return_X_y=True)
X = X / 16
TRAIN, TEST = slice(0, 600), slice(600, 800)


def digits(classes: int, rows: slice) -> tuple[Any, Any]:
    kept = Y[rows] < classes
    return X[rows][kept], Y[rows][kept]


def fitted(classes: int, **settings: Any) -> CLaIClassifier:
    model = CLaIClassifier(**{"epochs": 5, "random_state": 0, "calibration": None, **settings})
    return model.fit(*digits(classes, TRAIN))


@pytest.mark.parametrize("rule", ["printed", "centred", "balanced", "parzen"])
@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
@pytest.mark.parametrize(("classes", "conditioning"), [(2, "class"), (4, "class"), (4, None)])
def test_votes_of_all_references_add_up_to_the_score(classes: int, conditioning: Any, kernel: str, rule: Any) -> None:
    model = fitted(classes, conditioning=conditioning, kernel=kernel, rule=rule)
    x, _ = digits(classes, TEST)
    f = model.decision_function(x)
    scores = f.max(1) if classes > 2 else np.abs(f)
    if rule == "parzen":  # whose f is twice the posterior minus 1
        scores = 2 * np.exp(scores) - 1 if classes > 2 else np.tanh(scores / 2)
    for label, score, votes in zip(model.predict(x), scores, model.votes(x, k=len(X)), strict=True):
        assert votes.label == label
        assert votes.score == pytest.approx(score)
        assert sum(vote.vote for vote in votes.support + votes.opposition) == pytest.approx(score, abs=1e-9)
        assert {vote.label for vote in votes.support} == {label}
        assert label not in {vote.label for vote in votes.opposition}


class Standardised(nn.Module):
    """Scales each sample by itself, so that a flat one is divided by zero."""

    features = 64

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


@pytest.mark.parametrize("rule", ["printed", "parzen"])
def test_a_sample_without_a_finite_embedding_is_refused_as_input_and_as_reference(rule: str) -> None:
    model, flat = fitted(4, rule=rule, trunk=Standardised()), np.ones((1, 64))
    for use in (model.predict, model.votes, lambda x: model.add_references(x, [0])):
        with pytest.raises(ValueError, match="found an output of the network that is not finite"):
            use(flat)


def test_votes_name_the_training_sample_that_an_input_equals() -> None:
    x, y = digits(4, TRAIN)
    model = fitted(4, target="product")
    right = np.flatnonzero(model.predict(x) == y)[:20]
    for row, votes in zip(right, model.votes(x[right], k=1), strict=True):
        (first,) = votes.support
        assert first.item == row
        assert first.similarity == pytest.approx(1)
        assert len(votes.opposition) == 1
    for wrong in (0, 2.5, None):
        with pytest.raises(ValueError, match=f"k is {wrong}"):
            model.votes(x, k=wrong)


def scores(model: CLaIClassifier, x: Any, references: Any, labels: Any) -> Any:
    """f by `clailearn.vote` of references that the model's encoder embeds now."""
    z, z_references = (model.model_.outputs(part)[0] for part in (x, references))
    indices = torch.from_numpy(np.searchsorted(model.classes_, labels))
    return clailearn.vote(model.model_.kernel, z, z_references, indices).numpy()


@pytest.mark.parametrize(("classes", "conditioning"), [(2, "class"), (4, "class"), (4, None)])
def test_scores_are_those_of_the_references_that_joined_and_stayed(classes: int, conditioning: Any) -> None:
    (x, y), (more, labels), (test, _) = (digits(classes, rows) for rows in (TRAIN, TEST, slice(800, 900)))
    model = fitted(classes, conditioning=conditioning).add_references(more, labels.astype(float))
    assert model.classes_.dtype == y.dtype
    everything, named = np.concatenate([x, more]), np.concatenate([y, labels])
    np.testing.assert_array_equal(model.reference_indices_, np.arange(len(everything)))
    np.testing.assert_allclose(model.decision_function(test), scores(model, test, everything, named), atol=1e-6)

    gone = np.arange(1, len(everything), 3)
    model.remove_references(gone)
    kept = np.setdiff1d(np.arange(len(everything)), gone)
    np.testing.assert_array_equal(model.reference_indices_, kept)
    expected = scores(model, test, everything[kept], named[kept])
    np.testing.assert_allclose(model.decision_function(test), expected, atol=1e-6)
    np.testing.assert_array_equal(model.class_count_, np.bincount(named[kept]))
    assert model.add_references(more[:1], labels[:1]).reference_indices_[-1] == len(everything)


def test_new_classes_join_by_references_alone_where_one_embedding_serves_all() -> None:
    model = fitted(8, conditioning=None, target="simplex", epochs=20, calibration=2)
    temperature = model.calibration_
    new = Y[TRAIN] >= 8
    names = model.add_references(X[TRAIN][new], Y[TRAIN][new]).classes_
    np.testing.assert_array_equal(names, np.arange(10))
    found = model.predict(X[TEST])
    assert (found == Y[TEST]).mean() > 0.8
    assert (found == Y[TEST])[Y[TEST] >= 8].mean() > 0.4
    np.testing.assert_allclose(model.decision_function(X[TEST]), scores(model, X[TEST], X[TRAIN], Y[TRAIN]), atol=1e-6)
    assert model.calibration_ == temperature
    assert log_loss(Y[TEST], model.predict_proba(X[TEST])) < 1

    of_eight = model.reference_indices_[model.reference_labels_ == 8]
    np.testing.assert_array_equal(model.remove_references(of_eight).classes_, [*range(8), 9])
    assert set(model.predict(X[TEST])) <= {*range(8), 9}


@pytest.mark.parametrize(("rule", "kept"), [("printed", False), ("parzen", True)])
def test_a_temperature_serves_two_classes_by_the_rule_parzen_alone(rule: Any, kept: bool) -> None:
    model = fitted(3, conditioning=None, calibration=2, rule=rule)
    temperature = model.calibration_
    model.remove_references(model.reference_indices_[model.reference_labels_ == 2])
    assert model.calibration_ == (temperature if kept else None)


def test_a_class_that_comes_first_moves_the_others() -> None:
    names = np.array(["b", "d", "a"])
    x, y = digits(3, TRAIN)
    model = CLaIClassifier(epochs=20, conditioning=None, random_state=0).fit(x[y < 2], names[y[y < 2]])
    assert model.calibration_ is not None
    model.add_references(x[y == 2], names[y[y == 2]])
    assert list(model.classes_) == ["a", "b", "d"]
    assert model.calibration_ is None
    test, labels = digits(3, TEST)
    assert model.score(test, names[labels]) > 0.9
    assert model.predict_proba(test).shape == (len(test), 3)


@pytest.mark.parametrize("classes", [2, 4])
def test_an_embedding_conditioned_on_classes_takes_no_others(classes: int) -> None:
    model = fitted(classes)
    with pytest.raises(ValueError, match=r"y holds .*7.*, which is none of the labels of fit.*conditioning=None"):
        model.add_references(X[7:8], Y[7:8])
    with pytest.raises(ValueError, match=r"indices leaves class .* without references"):
        model.remove_references(model.reference_indices_[model.reference_labels_ == 1])
    with pytest.raises(ValueError, match="no reference has this number"):
        model.remove_references([0, len(X)])
    with pytest.raises(ValueError, match="indices holds truth values"):
        model.remove_references(model.reference_indices_ < 3)
    free = fitted(3, conditioning=None)
    with pytest.raises(ValueError, match="at least two classes"):
        free.remove_references(free.reference_indices_[free.reference_labels_ > 0])


@pytest.mark.parametrize("conditioning", ["class", None])
def test_few_references_stand_for_all_samples_of_their_class(conditioning: Any) -> None:
    x, y = make_blobs([300, 60, 60], centers=[[0, 0], [2, 0], [0, 2]], cluster_std=0.6, random_state=0)
    settings = {"conditioning": conditioning, "epochs": 10, "calibration": None, "random_state": 0}
    every, few = (CLaIClassifier(max_references=most, **settings).fit(x, y) for most in (None, 90))
    np.testing.assert_array_equal(np.bincount(few.reference_labels_), [30, 30, 30])
    np.testing.assert_array_equal(few.class_count_, [300, 60, 60])
    np.testing.assert_array_equal(y[few.reference_indices_], few.reference_labels_)
    assert np.abs(few.decision_function(x) - every.decision_function(x)).mean() < 0.05
    (votes,) = few.votes(x[:1], k=len(x))
    assert sum(vote.vote for vote in votes.support + votes.opposition) == pytest.approx(votes.score, abs=1e-9)


def grouped() -> tuple[Any, Any, Any]:
    """Samples that come in groups of four, all alike, so that one in training tells about the others."""
    generator = np.random.default_rng(0)
    groups = np.arange(200) // 4
    return generator.normal(size=(50, 5))[groups], generator.integers(2, size=50)[groups], groups


def test_groups_stay_together_in_the_calibration() -> None:
    """Labels are independent of inputs here: a calibration that holds out groups finds no information in the scores."""
    x, y, groups = grouped()
    settings = {"epochs": 20, "random_state": 0}
    alone = CLaIClassifier(**settings).fit(x, y)
    together = CLaIClassifier(**settings).fit(x, y, groups=groups)
    assert alone.calibration_.slope > 5 * abs(together.calibration_.slope)
    for wrong, message in (
        (groups[1:], "inconsistent numbers of samples"),
        (np.where(groups == 3, np.nan, groups), "Input groups contains NaN"),
        (groups * 0, "calibration: Cannot have number of splits"),
        (np.stack([groups, groups], 1), "groups has the shape"),
    ):
        with pytest.raises(ValueError, match=message):
            CLaIClassifier().fit(x, y, groups=wrong)


def test_the_calibration_takes_a_splitter_or_splits() -> None:
    x, y, groups = grouped()
    held_out = np.where(groups % 3 == 0, 0, -1)
    splits = [(np.flatnonzero(held_out < 0), np.flatnonzero(held_out == 0))]
    settings = {"epochs": 3, "random_state": 0}
    given = (PredefinedSplit(held_out), splits)
    one, other = (CLaIClassifier(calibration=parts, **settings).fit(x, y) for parts in given)
    assert one.calibration_ == other.calibration_
    CLaIClassifier(calibration=GroupKFold(2), **settings).fit(x, y, groups=groups)
    CLaIClassifier(calibration=LeaveOneOut(), **settings).fit(x, y)  # one sample
    with pytest.raises(ValueError, match=r"calibration: found no sample of class . among those to train on"):
        CLaIClassifier(calibration=GroupKFold(2), **settings).fit(x, y, groups=y)
    with pytest.raises(ValueError, match="calibration: found no split; add samples"):
        CLaIClassifier(calibration=[]).fit(x, y)


def test_verbose_prints_a_line_an_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose, lines in ((True, 2), (False, 0)):
        CLaIClassifier(epochs=2, calibration=None, verbose=verbose).fit(X[TRAIN], Y[TRAIN])
        assert len(capsys.readouterr().out.splitlines()) == lines


@pytest.mark.parametrize("groups", [None, np.arange(600) // 5])
def test_validation_holds_out_the_share_of_samples_or_of_groups(groups: Any) -> None:
    train, validation = validation_split(0.1, Y[TRAIN], groups, 0)
    assert (len(train), len(validation)) == (540, 60)
    train, validation = validation_split(0.1, Y[TRAIN], np.arange(600) % 3, 0)
    assert (len(train), len(validation)) == (400, 200), "a group of three"
