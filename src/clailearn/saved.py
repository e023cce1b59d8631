"""A fitted `CLaIClassifier` as two files without code, in the form of a published model, and back."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from clailearn import published_model
from clailearn.calibration import LogisticCalibration
from clailearn.computation import fresh_modes
from clailearn.errors import InputError
from clailearn.records import (
    ADVICE,
    FORMAT,
    RECORD,
    SHA256,
    SWITCH,
    TEXT,
    WEIGHTS,
    Check,
    calibration_checks,
    expect,
    integer,
    list_of,
    one_of,
    read_json,
    write_model,
)
from clailearn.tensors import fill_module, load_tensors

if TYPE_CHECKING:
    from clailearn.estimator import CLaIClassifier
    from clailearn.published_model import PublishedModel

_UNSAVED = {"trunk", "device", "calibration", "random_state"}
"""Parameters that a record leaves out: objects, and the device. They get their defaults, as far as `load` is not told them."""


def _are_labels(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2 or {*map(type, value)} not in ({bool}, {int}, {float}, {str}):
        return False
    return bool(value == sorted({*value}))


_CHECKS = {
    "format": one_of(FORMAT),
    "estimator": one_of("CLaIClassifier"),
    "trunk": Check("null or a text", lambda value: value is None or TEXT.holds(value)),
    "names": Check("null or a list of texts", lambda value: value is None or list_of(TEXT, 2**31).holds(value)),
    "classes": Check("a sorted list of at least two labels of one type", _are_labels),
    "objects": SWITCH,
    "next_index": integer(2**62),
    "parameters": Check("a mapping", lambda value: isinstance(value, dict)),
    "parameters.embedding_size": integer(4096),
    "parameters.width": integer(65536),
    "calibration": Check("a mapping", lambda value: isinstance(value, dict)),
    "sha256": SHA256,
}


def save_estimator(model: Any, folder: str | Path) -> None:
    """Write what predictions of a fitted estimator need: `model.json` and `model.safetensors`.

    Raises ValueError for labels that JSON would change, such as dates.
    """
    labels = model.classes_.tolist()
    if not _are_labels(labels) or np.array(labels).tolist() != labels:
        raise ValueError(
            f"classes_ holds labels of type {model.classes_.dtype} that JSON cannot hold, expected numbers of 64 bits, texts or "
            "truth values; encode y, for instance by sklearn.preprocessing.LabelEncoder"
        )
    z, y, item, counts, _ = model._references
    tensors = nn.ModuleList([model.encoder_, model.kernel_]).state_dict()
    tensors |= dict(zip(published_model.REFERENCES, (z, y, item), strict=True))
    record = {
        "format": FORMAT,
        "estimator": "CLaIClassifier",
        "parameters": {k: v for k, v in model._fitted.items() if k not in _UNSAVED},
        "trunk": None if model._fitted["trunk"] is None else type(model._fitted["trunk"]).__name__,
        "inputs": getattr(model, "n_features_in_", None),
        "names": getattr(model, "feature_names_in_", np.array(None)).tolist(),
        "classes": labels,
        "objects": model.classes_.dtype == object,
        "class_count": counts.tolist(),
        "next_index": model._next_index,
        "calibration": _calibration(model.calibration_),
    }
    write_model(Path(os.path.expanduser(folder)), record, tensors)


def _calibration(calibration: float | LogisticCalibration | None) -> dict[str, float]:
    if isinstance(calibration, LogisticCalibration):
        return dict(vars(calibration))
    return {} if calibration is None else {"temperature": calibration}


@fresh_modes("cpu")
def load(folder: str | Path, trunk: nn.Module | None = None) -> "PublishedModel | CLaIClassifier":
    """Read a model of a folder, ready to use on the CPU: a published one, or a `CLaIClassifier` that `save` wrote.

    Both are read without trust: the files hold no code, and a damaged or hostile one raises an error.

    Args:
        folder: with `model.json` and `model.safetensors`, such as results/published/pathmnist/models/clai-m; or one of its files.
        trunk: for an estimator with a trunk of one's own, a module of the same architecture; its weights are replaced in a copy.

    Raises:
        InputError: a file is missing, is damaged, has another checksum than the record says, or does not fit the record or the
            trunk.
    """
    folder = Path(os.path.expanduser(folder))
    path = folder.with_name(RECORD) if folder.is_file() else folder / RECORD
    record = read_json(path)
    if isinstance(record, dict) and "estimator" in record:
        return _estimator(path, record, trunk)
    return published_model.load(path.parent)


def _estimator(path: Path, record: Mapping[str, Any], trunk: nn.Module | None) -> "CLaIClassifier":
    from clailearn.estimator import CLaIClassifier

    expect(path, record, _CHECKS)
    if record["trunk"] is None:
        expect(path, record, {"inputs": integer(2**31)})
    if (record["trunk"] is None) != (getattr(trunk, "features", None) is None):
        kind = (
            f"a {record['trunk']} as the argument trunk, with its attribute features"
            if record["trunk"]
            else "no argument trunk"
        )
        raise InputError(f"{path}: found a saved estimator that needs {kind}. Load it so")
    expected = CLaIClassifier().get_params(deep=False).keys() - _UNSAVED
    if record["parameters"].keys() != expected:
        raise InputError(f"{path}: found other parameters than {', '.join(sorted(expected))}. {ADVICE}")
    model = CLaIClassifier(trunk=trunk, **record["parameters"])
    model.classes_ = np.array(record["classes"], dtype=object if record["objects"] else None)
    try:
        model._validate_params()
        model._fitted = model.get_params(deep=False)
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # shapes without numbers take no memory
            network = model._untrained(record["inputs"]).to(model._computation.dtype)
    except ValueError as error:  # of a parameter
        raise InputError(f"{path}: {error}. {ADVICE}") from None
    model._next_index = record["next_index"]
    if record["trunk"] is None:
        model.n_features_in_ = record["inputs"]
    if record["names"] is not None:
        model.feature_names_in_ = np.array(record["names"], dtype=object)
    model.calibration_ = None
    if found := record["calibration"]:
        expect(path, record, calibration_checks(len(model.classes_)))
        two = len(model.classes_) == 2
        model.calibration_ = LogisticCalibration(found["slope"], found["intercept"]) if two else found["temperature"]
    weights = path.with_name(WEIGHTS)
    tensors = load_tensors(weights, record["sha256"])
    conditions, _, size = network[0].head.weight.shape
    expect(path, record, {"class_count": list_of(integer(2**40), len(model.classes_), len(model.classes_))})
    references = published_model.checked_references(
        weights, tensors, (conditions, size), model._computation.dtype, record["class_count"]
    )
    fill_module(network, tensors, weights)
    model.encoder_, model.kernel_ = network.requires_grad_(False).eval()
    model.reference_embeddings_, model.reference_labels_ = references.z, references.y
    model.reference_indices_, model.class_count_ = references.item.numpy(), references.population.numpy()
    numbers = model.reference_indices_
    if len(np.unique(numbers)) < len(numbers) or numbers.max() >= model._next_index:
        raise InputError(
            f"{weights}: found positions of references that are not unique, or not below next_index. {ADVICE}"
        )
    return model
