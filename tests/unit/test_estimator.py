"""CLaIClassifier keeps scikit-learn's contract and learns what a linear model cannot."""

import doctest
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import clai.estimator
from clai import CLaIClassifier


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
