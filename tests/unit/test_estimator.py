"""CLaIClassifier keeps scikit-learn's contract and learns what a linear model cannot."""

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from joblib import Parallel, delayed
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import clailearn
from clailearn import CLaIClassifier
from clailearn.fitting import calibration_split
from replication.metrics.classification import expected_calibration_error, top_label
from support.repository import run_script

IRIS = load_iris(return_X_y=True)
DIGITS = load_digits(n_class=3, return_X_y=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", ["alignment", "parzen"])
def test_keeps_the_contract_of_scikit_learn(loss: Any) -> None:
    results = check_estimator(CLaIClassifier(loss=loss), on_skip=None)
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert sum(r["status"] == "skipped" for r in results) <= 1


@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_two_moons(kernel: str) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    model = CLaIClassifier(kernel=kernel, random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.92
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]


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
    X, y = DIGITS
    three = CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X / 16, y)
    np.testing.assert_allclose(three.predict_proba(X / 16), softmax(three.decision_function(X / 16), axis=1))
    two = CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X / 16, y == 1)
    np.testing.assert_allclose(two.predict_proba(X / 16)[:, 1], (1 + two.decision_function(X / 16)) / 2)


def test_calibration_takes_no_more_parts_than_the_rarest_class_has_samples() -> None:
    X, y = make_blobs([30, 30, 2], centers=[[0, 0], [2, 0], [0, 2]], random_state=0)
    two, five = (CLaIClassifier(epochs=2, calibration=parts, random_state=0).fit(X, y) for parts in (2, 5))
    assert two.calibration_ == five.calibration_
    with pytest.warns(UserWarning, match="class 2 has one sample"):
        five.fit(X[:61], np.sort(y)[:61])
    assert five.calibration_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CLaIClassifier(epochs=2, calibration=None, random_state=0).fit(X[:61], np.sort(y)[:61])


@pytest.mark.parametrize(
    "wrong",
    [
        {"precision": "double"}, {"rule": "print"}, {"target": "none"}, {"batch_size": 1}, {"width": 0}, {"epochs": 2.5},
        {"learning_rate": 0.0}, {"embedding_size": 0}, {"trunk": "resnet"}, {"calibration": 1}, {"calibration": 2.5},
        {"calibration": "auto"},
    ],
)  # fmt: skip
def test_a_parameter_that_is_no_such_value_is_refused_by_name_before_training(wrong: dict[str, object]) -> None:
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of CLaIClassifier must be"):
        CLaIClassifier(**wrong).fit(X, y)  # type: ignore[arg-type]


def own_trunk(features: int, *layers: nn.Module) -> nn.Module:
    trunk = nn.Sequential(*layers)
    trunk.features = features  # type: ignore[assignment]
    return trunk


CONVOLUTIONAL = own_trunk(8 * 3 * 3, nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Flatten())
DROPPING = own_trunk(8, nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.5))
"""It draws from torch's global generator in training."""


def test_own_trunk_takes_images_as_arrays_or_tensors_and_is_left_as_it_was() -> None:
    X, y = DIGITS
    images = X.reshape(-1, 1, 8, 8) / 16
    trunk = CONVOLUTIONAL
    before = {name: value.clone() for name, value in trunk.state_dict().items()}
    settings = {"trunk": trunk, "epochs": 20, "precision": "float32", "random_state": 0}
    model = CLaIClassifier(**settings).fit(images, y)
    assert model.score(images, y) > 0.8
    assert all(torch.equal(value, before[name]) for name, value in trunk.state_dict().items())
    tensors = torch.from_numpy(images).float()
    other = CLaIClassifier(**settings).fit(tensors, torch.from_numpy(y))
    np.testing.assert_array_equal(other.predict(tensors), model.predict(images))


def scores_of_a_fit(seed: int, trunk: nn.Module | None) -> Any:
    X, y = make_moons(100, noise=0.2, random_state=0)
    return CLaIClassifier(epochs=3, trunk=trunk, random_state=seed).fit(X, y).decision_function(X)


@pytest.mark.parametrize("trunk", [None, DROPPING], ids=["default", "dropout"])
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_parallel_fits_are_those_in_sequence_and_leave_generators_alone(backend: str, trunk: nn.Module | None) -> None:
    of_numpy = check_random_state(None)
    before = torch.get_rng_state(), of_numpy.get_state()[1].copy()
    expected = [scores_of_a_fit(seed, trunk) for seed in range(6)]
    found = Parallel(n_jobs=3, backend=backend)(delayed(scores_of_a_fit)(seed, trunk) for seed in range(6))
    np.testing.assert_array_equal(found, expected)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(of_numpy.get_state()[1], before[1])


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_references_are_embedded_by_the_weights_that_were_learned(precision: str) -> None:
    model = CLaIClassifier(epochs=3, precision=precision, calibration=None, random_state=0).fit(*IRIS).model_
    z = model.outputs(IRIS[0][model.references.item])[0]
    np.testing.assert_allclose(z, model.references.z, atol=1e-5)


@contextlib.contextmanager
def float64_as_default() -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


STATES: dict[str, Callable[[], Any]] = {
    "float64 as default": float64_as_default,
    "default device": lambda: torch.device("meta"),
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("state", STATES)
def test_the_global_state_of_torch_changes_nothing(state: str, precision: str) -> None:
    X, y = DIGITS
    model = CLaIClassifier(epochs=2, precision=precision, random_state=0)
    expected = model.fit(X / 16, y).predict_proba(X / 16)
    with STATES[state]():
        found = model.fit(X / 16, y).predict_proba(X / 16)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "change", [lambda X: X + 1e9, lambda X: np.column_stack([X, 20240101 + np.arange(len(X)) % 8])]
)
def test_inputs_whose_differences_float32_rounds_away_are_warned_of(change: Callable[[Any], Any]) -> None:
    X, y = IRIS
    with pytest.warns(UserWarning, match=r"float32 rounds away differences .*StandardScaler"):
        CLaIClassifier(epochs=1, precision="float32", calibration=None).fit(change(X), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CLaIClassifier(epochs=1, precision="float32", calibration=None).fit(X, y)
        CLaIClassifier(epochs=1, calibration=None).fit(change(X), y)


def test_inputs_that_hardly_count_beside_others_are_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"spans 1.4e\+03, another 0.53, .*StandardScaler$"):
        CLaIClassifier(epochs=1).fit(*load_wine(return_X_y=True))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, 1])
def test_labels_and_groups_of_several_types_or_missing_are_named_by_row(missing: Any) -> None:
    X, y = np.eye(4), ["a", "a", "b", "b"]
    mixed = pd.Series(["a", "a", missing, "b"], dtype=object)
    for arguments in ({"y": mixed}, {"y": mixed.tolist()}, {"y": tuple(mixed)}, {"y": y, "groups": mixed}):
        with pytest.raises(ValueError, match=r"holds 'a' in row 0 and .* in row 2, expected values of one type"):
            CLaIClassifier(epochs=1).fit(X, **arguments)


def test_numbers_as_objects_and_parameters_of_numpy_are_as_those_of_python() -> None:
    X, y = IRIS
    plain = CLaIClassifier(epochs=2, batch_size=16, random_state=0).fit(X, y)
    other = CLaIClassifier(epochs=np.int64(2), batch_size=np.int64(16), random_state=0).fit(X, y.astype(object))
    np.testing.assert_array_equal(other.predict_proba(X), plain.predict_proba(X))
    assert other.classes_.dtype == y.dtype


@pytest.mark.parametrize(
    "missing", [np.ma.masked_equal(IRIS[1], 1), np.array(["2020", "2021", "NaT"], "M8[Y]")[IRIS[1]]]
)
@pytest.mark.parametrize("name", ["y", "groups"])
def test_missing_labels_and_groups_are_refused(name: str, missing: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} holds missing values"):
        CLaIClassifier(epochs=1).fit(IRIS[0], **{"y": IRIS[1], "groups": IRIS[1], name: missing})


def test_weights_by_position_are_not_taken_for_groups() -> None:
    X, y = IRIS
    with pytest.raises(TypeError, match="positional arguments"):
        CLaIClassifier(epochs=1).fit(X, y, np.linspace(0, 1, len(y)))


@pytest.mark.parametrize("most", [None, 30])
def test_columns_and_probabilities_are_those_of_the_documentation(most: int | None) -> None:
    X, y = IRIS
    model = CLaIClassifier(epochs=1, embedding_size=3, max_references=most, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), np.hstack(list(model.model_.outputs(X)[0].numpy())))
    assert list(model.get_feature_names_out()) == [f"claiclassifier{column}" for column in range(9)]
    p = softmax(model.decision_function(X) / model.calibration_, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), (150 * p + 1) / 153)


def test_two_classes_have_product_targets_and_the_parzen_loss_its_rule_and_four_dimensions() -> None:
    X, y = make_moons(60, random_state=0)
    settings: dict[str, Any] = {"epochs": 2, "calibration": None, "random_state": 0}
    scores = [CLaIClassifier(target=t, **settings).fit(X, y).decision_function(X) for t in ("zero", "product")]
    np.testing.assert_array_equal(*scores)
    model = CLaIClassifier(loss="parzen", **settings).fit(X, y)
    assert (model.transform(X).shape[1], model.model_.settings["rule"]) == (4, "parzen")


def test_the_random_state_decides_what_calibration_holds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held_out = []

    def split(*given: Any) -> Any:
        parts = calibration_split(*given)
        held_out.append(parts[1].tolist())
        return parts

    monkeypatch.setattr("clailearn.estimator.calibration_split", split)
    for seed in (0, 1):
        CLaIClassifier(epochs=1, random_state=seed).fit(*IRIS)
    assert held_out[0] != held_out[1]


def test_tensors_of_any_type_are_taken_and_masked_numbers_are_missing() -> None:
    X, y = IRIS
    model = CLaIClassifier(epochs=1, random_state=0).fit(torch.tensor(X, requires_grad=True), torch.tensor(y))
    rounded = torch.tensor(X).bfloat16()
    np.testing.assert_array_equal(model.predict_proba(rounded), model.predict_proba(rounded.double().numpy()))
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(np.ma.masked_greater(X, 5))


def test_too_few_references_are_refused_before_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clailearn.estimator.learn", lambda *_: pytest.fail("found a training"))
    with pytest.raises(ValueError, match="found 2 references to draw"):
        CLaIClassifier(max_references=2).fit(*IRIS)


def test_calibration_on_few_samples_does_not_turn_probabilities_round() -> None:
    X, y = make_moons(20, noise=0.2, random_state=10)
    model = CLaIClassifier(random_state=10).fit(X, y)
    assert model.calibration_.slope == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), 0.5)


def test_a_fit_with_a_trunk_forgets_the_number_of_inputs_of_the_fit_before() -> None:
    X, y = make_moons(20, random_state=0)
    model = CLaIClassifier(epochs=1, random_state=0).fit(X[:, :1], y)
    assert model.n_features_in_ == 1
    assert not hasattr(model.set_params(trunk=DROPPING).fit(X, y), "n_features_in_")


class Interrupted(nn.Linear):
    features = 4

    def train(self, mode: bool = True) -> Any:
        if mode:
            raise KeyboardInterrupt
        return super().train(mode)


def test_a_fit_that_is_interrupted_leaves_the_one_before() -> None:
    X, y = IRIS
    model = CLaIClassifier(epochs=1, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(trunk=Interrupted(3, 4)).fit(X[:, :3], y > 0)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(("precision", "factor"), [("float32", 1e39), ("float32", 1e20), ("float64", 1e200)])
def test_inputs_whose_squares_overflow_are_refused_with_the_remedy(precision: str, factor: float) -> None:
    X, y = IRIS
    model = CLaIClassifier(epochs=1, precision=precision, calibration=None)
    message = rf"X holds 7.9e\+\d+, whose square is beyond the largest {precision}; standardise X, .*StandardScaler"
    for wide in (X * factor, (X * factor).astype(precision if factor < 1e39 else "float64")):
        with pytest.raises(ValueError, match=message):
            model.fit(wide, y)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y).predict(wide)
    with pytest.warns(UserWarning, match=r"no input of X spans more than 0.0059, .*StandardScaler"):
        model.fit(X / 1000, y)


NOT_NUMBERS = (["m", "f"], pd.Categorical(["m", "f"]), pd.to_datetime(["2020", "2021"]))
NO_DEVICES = ("gpu", "meta", *(() if torch.cuda.is_available() else ("cuda",)))


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({"learning_rate": 1e30}, make_moons(200, random_state=0)[0], r"training diverged .* lower learning_rate"),
        ({"learning_rate": 1e3}, make_moons(200, random_state=0)[0], r"training diverged: .* rounded by .* lower learning_rate"),
        ({"trunk": CONVOLUTIONAL}, [0.0, 1.0, 2.0, 3.0], r"X has the shape \(4,\), expected \(samples, ...\)"),
        *(({}, pd.DataFrame({"age": [1, 2], "sex": c}), "X holds no numbers in column 'sex'") for c in NOT_NUMBERS),
        *(({}, IRIS[0].astype(int).astype(unit), "X holds times") for unit in ("M8[D]", "m8[D]")),
        *(({"device": d}, [[0], [1]], f"device is '{d}', where torch cannot compute; expected 'cpu'") for d in NO_DEVICES),
    ],
)  # fmt: skip
def test_samples_and_parameters_without_a_fit_are_refused_by_name(settings: Any, X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CLaIClassifier(**settings, random_state=0).fit(X, np.arange(len(X)) % 2)


@pytest.mark.parametrize(
    ("trunk", "features", "message"),
    [
        (nn.Linear(4, 5), None, r"to RuntimeError\(.*\) and has features=None, expected"),
        (nn.Linear(4, 5), nn.Identity(), r"to RuntimeError\(.*\) and has features=Identity\(\), expected"),
        (nn.Linear(4, 5), 5, r"to RuntimeError\(.* shapes cannot be multiplied .*\) and has features=5, expected"),
        (nn.Unflatten(1, (1, 2)), 2, r"to \(2, 1, 2\) and has features=2, expected .* flatten its output"),
    ],
)
def test_a_trunk_that_does_not_fit_is_refused_before_training(trunk: nn.Module, features: Any, message: str) -> None:
    trunk.features = features
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match=rf"trunk: \w+ maps samples of shape \(2, 2\) {message}"):
        CLaIClassifier(trunk=trunk).fit(X, y)


def test_import_of_the_package_does_not_wait_for_torch() -> None:
    run_script("import clailearn, sys; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        clailearn.Nothing  # noqa: B018


def test_labels_and_probabilities_follow_the_parameters_of_the_fit(tmp_path: Path) -> None:
    X, y = make_blobs([100, 20], centers=[[0, 0], [1.5, 1.5]], cluster_std=0.5, random_state=0)
    model = CLaIClassifier(calibration=2, rule="parzen", random_state=0).fit(X, y)
    labels, probabilities = model.predict(X), model.predict_proba(X)
    model.set_params(rule="printed", precision="float32", device="gpu", kernel="cosine", width=3, trunk=nn.Identity())
    model.save(tmp_path)
    for same in (model, clailearn.load(tmp_path)):
        np.testing.assert_array_equal(same.predict(X), labels)
        np.testing.assert_array_equal(same.predict_proba(X), probabilities)
    assert (CLaIClassifier(calibration=2, random_state=0).fit(X, y).predict(X) != labels).any()


class Narrow(CLaIClassifier):
    """It names one parameter of its own, and one of the estimator."""

    def __init__(self, label: str = "", epochs: int = 2) -> None:
        super().__init__(epochs=epochs, random_state=0)
        self.label = label


def test_a_subclass_may_have_other_parameters(tmp_path: Path) -> None:
    X, y = IRIS
    model = clone(Narrow("ours", epochs=1)).fit(X, y)
    expected = CLaIClassifier(epochs=1, random_state=0).fit(X, y).predict_proba(X)
    model.save(tmp_path)
    for same in (model, clailearn.load(tmp_path)):
        np.testing.assert_array_equal(same.predict_proba(X), expected)


@pytest.mark.parametrize("target", ["zero", "product", "simplex"])
def test_without_conditioning_one_embedding_serves_all_classes(target: str) -> None:
    X, y = load_wine(return_X_y=True)
    model = CLaIClassifier(conditioning=None, target=target, calibration=None, epochs=20, random_state=0)
    X = StandardScaler().fit_transform(X)
    assert model.fit(X, y).score(X, y) > 0.95
    assert model.decision_function(X).shape == (len(X), 3)
    assert model.transform(X).shape == (len(X), 16)
