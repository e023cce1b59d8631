"""A saved CLaIClassifier comes back as it was, from files that hold no code, and damaged ones are refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from torch import Tensor, nn

import clailearn
from clailearn import CLaIClassifier
from clailearn.cli import main
from clailearn.errors import InputError
from clailearn.files import OF_RECORD, checksum_of_record

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
NAMES = np.array(["one", "two", "three"])


class Trunk(nn.Module):
    def __init__(self, features: int = 6) -> None:
        super().__init__()
        self.layer, self.features = nn.Linear(4, features), features

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).relu()


class Renamed(Trunk):
    """The same architecture."""


@pytest.mark.parametrize(
    ("labels", "settings"),
    [
        (Y, {}),
        (Y.astype(float), {}),
        (Y == 1, {}),
        (NAMES[Y], {}),
        (NAMES[Y].astype(object), {}),
        (Y, {"kernel": "cosine", "precision": "float32", "calibration": None, "rule": "parzen"}),
        (Y, {"conditioning": None, "max_references": np.int64(20)}),
        (NAMES[Y], {"trunk": Trunk()}),
    ],
)
def test_a_saved_estimator_predicts_as_before(tmp_path: Path, labels: Any, settings: dict[str, Any]) -> None:
    model = CLaIClassifier(**{"epochs": 2, "random_state": 0, **settings}).fit(X[::2], labels[::2])
    model.add_references(X[1:3], labels[1:3])
    model.save(tmp_path / "model")
    loaded = clailearn.load(tmp_path / "model", trunk=Renamed() if "trunk" in settings else None)
    assert "trunk" in settings or loaded.n_features_in_ == 4
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-6)
    for found, expected in zip(loaded.votes(X[:5]), model.votes(X[:5]), strict=True):
        assert found.label == expected.label
        assert found.support[0].vote == pytest.approx(expected.support[0].vote)
    loaded.add_references(X[3:9], labels[3:9])
    model.add_references(X[3:9], labels[3:9])
    np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X), rtol=1e-6)
    np.testing.assert_array_equal(loaded.reference_indices_, model.reference_indices_)


def test_a_loaded_model_is_independent_of_its_file(tmp_path: Path) -> None:
    CLaIClassifier(epochs=1, random_state=0).fit(X, Y).save(tmp_path / "model")
    loaded = clailearn.load(tmp_path / "model")
    before = loaded.predict(X)
    file = next((tmp_path / "model").glob("*.safetensors"))
    with open(file, "r+b") as weights:
        weights.write(bytes(file.stat().st_size))
    np.testing.assert_array_equal(loaded.predict(X), before)
    loaded.reference_labels_[:] = 0
    np.testing.assert_array_equal(loaded.predict(X), before)


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["_mask", "b", "c", "d"])  # numpy looks for the first
    CLaIClassifier(epochs=1).fit(frame, Y).save(tmp_path)
    with pytest.raises(ValueError, match="feature names"):
        clailearn.load(tmp_path).predict(frame[["b", "_mask", "d", "c"]])
    model = clailearn.load(tmp_path).model_
    np.testing.assert_array_equal(model.scores(frame[["b", "_mask", "d", "c"]]), model.scores(frame))


class Tied(Trunk):
    """A trunk of two names for one layer, with a mask."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.again = self.layer
        self.register_buffer("mask", torch.full((2, 2), -torch.inf), persistent=masked)


def test_a_trunk_with_shared_weights_is_saved_and_one_with_infinite_numbers_refused(tmp_path: Path) -> None:
    model = CLaIClassifier(trunk=Tied(masked=False), epochs=1).fit(X, Y)
    model.save(tmp_path)
    np.testing.assert_array_equal(clailearn.load(tmp_path, trunk=Tied(masked=False)).predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"found a number in '0\.trunk\.mask' that is not finite"):
        CLaIClassifier(trunk=Tied(masked=True), epochs=1).fit(X, Y).save(tmp_path / "other")
    assert not (tmp_path / "other" / "model.json").exists()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["2020", "2021", "2022"], "M8[D]"),
        np.array([1, 2, 3], "m8[ns]"),
        np.array([0, 5, 2**64 - 1], np.uint64),
    ],
)
def test_labels_that_json_would_change_are_not_saved(tmp_path: Path, labels: Any) -> None:
    with pytest.raises(ValueError, match=r"classes_ holds labels of type .*LabelEncoder"):
        CLaIClassifier(epochs=1).fit(X, labels[Y]).save(tmp_path)


def test_what_load_would_refuse_is_not_written(tmp_path: Path) -> None:
    model = CLaIClassifier(epochs=1).fit(X, Y).model_
    references = model.references._replace(files=["folder/" * 200] * len(model.references.y))
    with pytest.raises(InputError, match="reference_files"):
        replace(model, references=references).save(tmp_path)
    with pytest.raises(InputError, match=r"found 5000 at settings\.embedding_size, .* 4096\. Nothing was written"):
        replace(model, settings={**model.settings, "embedding_size": 5000}).save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_tilde_stands_for_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    CLaIClassifier(epochs=1).fit(X, Y).save("~/own")
    assert (tmp_path / "own" / "model.json").is_file()
    assert isinstance(clailearn.load("~/own"), CLaIClassifier)


def test_the_command_names_what_else_takes_an_estimator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CLaIClassifier(epochs=1).fit(X, Y).save(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(["predict", str(tmp_path), "rows.csv"])
    assert "or an estimator, expected one of pictures" in capsys.readouterr().err


def test_the_trunk_must_be_the_one_of_the_fit(tmp_path: Path) -> None:
    CLaIClassifier(trunk=Trunk(), epochs=1).fit(X, Y).save(tmp_path / "own")
    CLaIClassifier(epochs=1).fit(X, Y).save(tmp_path / "default")
    with pytest.raises(InputError, match="needs a Trunk as the argument trunk"):
        clailearn.load(tmp_path / "own")
    with pytest.raises(InputError, match="with its attribute features"):
        clailearn.load(tmp_path / "own", trunk=nn.Linear(4, 5))
    with pytest.raises(InputError, match="needs no argument trunk"):
        clailearn.load(tmp_path / "default", trunk=Trunk())
    with pytest.raises(InputError, match="tensors that are not those of the network"):
        clailearn.load(tmp_path / "own", trunk=Trunk(7))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 4), ("format", 3.0), ("input.shape", [0]), ("input.shape", [5]), ("classes", [0]), ("classes", [0, 1, "2"]),
        ("classes", [1, 0, 2]), ("classes", [0, 1, 1]), ("input.names", [1]), ("input.kind", "features"), ("input.mirror", True),
        ("classes", [0, 1]), ("population", [50, 50]), ("population", [50, 50, 1]), ("calibration", 3),
        ("calibration", {"temperature": 0}), ("calibration", {"temperature": 1e-30}), ("calibration", {"slope": 1.0}),
        ("sha256", "0" * 64),
        ("estimator", {}), ("estimator.next_index", 3), ("estimator.parameters", {}),
        ("settings.encoder", 1), ("settings.encoder", {}), ("settings.encoder.trunk", "own"), ("settings.encoder.trunk", "gru"),
        ("settings.encoder.width", 10**9), ("settings.encoder.width", None), ("settings.kernel.name", "none"),
        ("settings.kernel.name", "cosine"), ("settings.kernel", None), ("settings.precision", "float32"),
        ("settings.embedding_size", 2**62), ("settings.conditioning", None), ("settings.rule", "centred"),
        ("estimator.parameters.epochs", 0), ("estimator.parameters.kernel", "cosine"), ("estimator.parameters.width", 10**9),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    CLaIClassifier(epochs=1).fit(X, Y).save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text())
    part = record
    *above, last = key.split(".")
    for name in above:
        part = part[name]
    part[last] = value
    record[OF_RECORD] = checksum_of_record(record)
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"model\.(json|safetensors)"):
        clailearn.load(tmp_path)


def test_an_older_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"format": 2, "estimator": "CLaIClassifier"}')
    message = r"found format 2, .* expected 3\. Take a published model anew.*fit an estimator"
    with pytest.raises(InputError, match=message):
        clailearn.load(tmp_path)


def test_a_change_of_any_entry_of_the_record_is_seen(tmp_path: Path) -> None:
    CLaIClassifier(epochs=1).fit(X, Y).save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record))  # laid out in another way
    clailearn.load(tmp_path)
    record["input"]["mean"] = [1.0]
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"found entries with the sha256 .*one of them was changed"):
        clailearn.load(tmp_path)


def test_a_record_is_a_file_of_bounded_size(tmp_path: Path) -> None:
    CLaIClassifier(epochs=1).fit(X, Y).save(tmp_path)
    for name in ("model.json", "model.safetensors"):
        (tmp_path / name).rename(tmp_path / "kept")
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(InputError, match=rf"{name}: cannot be read \(found a folder, a pipe or a device"):
            clailearn.load(tmp_path)
        (tmp_path / "kept").replace(tmp_path / name)
    with (tmp_path / "model.json").open("r+b") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(InputError, match="found 16,777,217 bytes, expected at most 16,777,216"):
        clailearn.load(tmp_path)
