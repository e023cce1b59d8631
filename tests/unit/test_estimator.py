"""CLaIClassifier keeps scikit-learn's contract and learns what a linear model cannot."""

import copy
import doctest
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import clai.estimator
from clai import CLaIClassifier
from replication.metrics.classification import expected_calibration_error, top_label


@pytest.mark.filterwarnings("ignore")
def test_keeps_the_contract_of_scikit_learn() -> None:
    results = check_estimator(CLaIClassifier(), on_skip=None)
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert sum(r["status"] == "skipped" for r in results) <= 1


@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
@pytest.mark.parametrize("schedule", ["joint", "sequential"])
def test_two_moons(kernel: str, schedule: str) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    model = CLaIClassifier(kernel=kernel, schedule=schedule, random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.92
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]


@pytest.mark.parametrize("rule", ["printed", "centred", "balanced", "parzen"])
def test_rules_and_outputs_agree(rule: str) -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    names = np.array(["zero", "one", "two", "three"])[y]
    model = make_pipeline(StandardScaler(), CLaIClassifier(rule=rule, epochs=30, random_state=0)).fit(
        X[::2], names[::2]
    )
    p, f = model.predict_proba(X[1::2]), model.decision_function(X[1::2])
    assert p.shape == f.shape == (len(X) // 2, 4)
    predicted = model.classes_[p.argmax(1)]
    np.testing.assert_array_equal(predicted, model.predict(X[1::2]))
    np.testing.assert_array_equal(predicted, model.classes_[f.argmax(1)])
    assert (predicted == names[1::2]).mean() > 0.95


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_calibration_mends_the_probabilities_and_leaves_the_vote_as_it_is(kernel: str, classes: int) -> None:
    """A bare softmax over ten classes is flat, and so is (1 + f) / 2 of the centred rule where a class is rare."""
    X, y = load_digits(n_class=classes, return_X_y=True)
    generator = np.random.default_rng(0)
    order = generator.permutation(len(X))
    if classes == 2:
        order = order[(y[order] == 0) | (generator.random(len(y)) < 0.2)]
    X, y = X[order] / 16, y[order]
    train, test = slice(0, len(X) // 2), slice(len(X) // 2, None)
    settings = {"kernel": kernel, "rule": "centred", "random_state": 0}
    bare = CLaIClassifier(calibration=None, **settings).fit(X[train], y[train])
    model = CLaIClassifier(**settings).fit(X[train], y[train])
    np.testing.assert_array_equal(model.decision_function(X[test]), bare.decision_function(X[test]))
    np.testing.assert_array_equal(model.predict(X[test]), bare.predict(X[test]))
    p, p_bare = model.predict_proba(X[test]), bare.predict_proba(X[test])
    np.testing.assert_allclose(p.sum(1), 1)
    assert log_loss(y[test], p) < 0.5 * log_loss(y[test], p_bare)
    assert expected_calibration_error(*top_label(y[test], p), bins=10) < 0.1


def test_bare_probabilities_are_the_mappings_of_f() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    three = CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X / 16, y)
    np.testing.assert_allclose(three.predict_proba(X / 16), softmax(three.decision_function(X / 16), axis=1))
    two = CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X / 16, y == 1)
    np.testing.assert_allclose(two.predict_proba(X / 16)[:, 1], (1 + two.decision_function(X / 16)) / 2)


def test_calibration_of_separable_classes_leaves_no_class_impossible() -> None:
    X, y = make_blobs(60, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    model = CLaIClassifier(random_state=0).fit(X / 10, y)
    assert model.score(X / 10, y) == 1
    p = model.predict_proba(X / 10)
    np.testing.assert_allclose(p.sum(1), 1)
    assert p.min() >= 1 / 63 - 1e-12
    np.testing.assert_array_equal(p.argmax(1), y)


def test_calibration_takes_as_many_folds_as_the_rarest_class_allows() -> None:
    X, y = make_blobs([30, 30, 2], centers=[[0, 0], [2, 0], [0, 2]], random_state=0)
    model = CLaIClassifier(epochs=2, random_state=0).fit(X, y)
    assert model.calibrated_.cv.n_splits == 2
    with pytest.warns(UserWarning, match="class 2 has one sample"):
        model.fit(X[:61], np.sort(y)[:61])
    assert model.calibrated_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X[:61], np.sort(y)[:61])


@pytest.mark.parametrize(
    "wrong",
    [
        {"precision": "double"}, {"schedule": "Joint"}, {"rule": "print"}, {"target": "none"}, {"metric": "Full"},
        {"references": 0}, {"references": "ALL"}, {"batch_size": 1}, {"width": 0}, {"epochs": 2.5}, {"learning_rate": 0.0},
        {"embedding_size": 0}, {"trunk": "resnet"}, {"calibration": 1}, {"calibration": 2.5}, {"calibration": "auto"},
    ],
)  # fmt: skip
def test_a_parameter_that_is_no_such_value_is_refused_by_name_before_training(wrong: dict[str, object]) -> None:
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of CLaIClassifier must be"):
        CLaIClassifier(**wrong).fit(X, y)  # type: ignore[arg-type]


def test_divergence_names_the_parameter_of_the_estimator() -> None:
    X, y = make_moons(200, random_state=0)
    with pytest.raises(ValueError, match=r"training diverged .* lower learning_rate"):
        CLaIClassifier(learning_rate=1e30, random_state=0).fit(X, y)


def test_embeddings_of_all_conditions_side_by_side() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    model = CLaIClassifier(embedding_size=5, epochs=1, random_state=0)
    z = model.fit_transform(X / 16, y)
    assert z.shape == (len(X), 15)
    assert list(model.get_feature_names_out()[:2]) == ["claiclassifier0", "claiclassifier1"]


class Convolutional(nn.Module):
    features = 8 * 3 * 3

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).relu().flatten(1)


def test_own_trunk_takes_images_as_arrays_or_tensors_and_is_left_as_it_was() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    images = X.reshape(-1, 1, 8, 8) / 16
    trunk = Convolutional()
    before = {name: value.clone() for name, value in trunk.state_dict().items()}
    settings = {"trunk": trunk, "epochs": 20, "precision": "float32", "random_state": 0}
    model = CLaIClassifier(**settings).fit(images, y)
    assert model.score(images, y) > 0.8
    assert all(torch.equal(value, before[name]) for name, value in trunk.state_dict().items())
    tensors = torch.from_numpy(images).float()
    other = CLaIClassifier(**settings).fit(tensors, torch.from_numpy(y))
    np.testing.assert_array_equal(other.predict(tensors), model.predict(images))


def test_own_trunk_computes_in_the_layout_of_its_weights() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    layouts = []
    for layout in (torch.contiguous_format, torch.channels_last):
        trunk = Convolutional().to(memory_format=layout)
        trunk.conv.register_forward_hook(
            lambda _, x, z: layouts.append(z.is_contiguous(memory_format=torch.channels_last))
        )
        CLaIClassifier(trunk=trunk, epochs=1, random_state=0).fit(X.reshape(-1, 1, 8, 8) / 16, y)
        assert set(layouts) == {layout is torch.channels_last}
        layouts.clear()


def test_seed_decides_everything_and_the_global_generator_is_left_alone() -> None:
    X, y = make_moons(100, noise=0.2, random_state=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = CLaIClassifier(epochs=4, random_state=7).fit(X, y).decision_function(X)
    assert torch.equal(torch.rand(3), expected)
    np.testing.assert_array_equal(one, CLaIClassifier(epochs=4, random_state=7).fit(X, y).decision_function(X))
    assert not np.array_equal(one, CLaIClassifier(epochs=4, random_state=8).fit(X, y).decision_function(X))


def test_clone_pickle_and_grid_search() -> None:
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = CLaIClassifier(embedding_size=4, epochs=5, random_state=0)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"kernel": ["gaussian", "cosine"]}, cv=2).fit(X, y)
    restored = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(restored.decision_function(X), search.best_estimator_.decision_function(X))


def test_examples_in_the_documentation_run() -> None:
    result = doctest.testmod(clai.estimator)
    assert result.attempted > 0
    assert result.failed == 0


def test_import_of_the_package_does_not_wait_for_torch() -> None:
    code = "import clai, sys; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        clai.Nothing  # noqa: B018


@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["number", "generator"])
def test_scores_do_not_depend_on_the_calibration(seed: int | np.random.RandomState) -> None:
    X, y = make_blobs(60, centers=[[0, 0], [2, 0], [0, 2]], random_state=0)
    models = [
        CLaIClassifier(epochs=2, calibration=folds, random_state=copy.deepcopy(seed)).fit(X, y) for folds in (None, 3)
    ]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


def test_too_few_samples_for_all_references_are_named() -> None:
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 1]
    with pytest.raises(ValueError, match="found 3 samples to train on, and references='all' needs two batches of two"):
        CLaIClassifier(references="all", calibration=None).fit(X, y)


def test_samples_without_inputs_are_refused_with_an_own_trunk() -> None:
    with pytest.raises(ValueError, match=r"X has the shape \(4,\), expected \(samples, ...\)"):
        CLaIClassifier(trunk=Convolutional()).fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])


def test_labels_and_probabilities_follow_the_rule_of_the_fit() -> None:
    X, y = make_blobs([100, 20], centers=[[0, 0], [1.5, 1.5]], cluster_std=0.5, random_state=0)
    model = CLaIClassifier(calibration=2, rule="parzen", random_state=0).fit(X, y)
    labels, probabilities = model.predict(X), model.predict_proba(X)
    model.set_params(rule="printed")
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.predict_proba(X), probabilities)
    assert (model.fit(X, y).predict(X) != labels).any()
