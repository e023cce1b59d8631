"""A published model from a stranger is used as its record says, or refused."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor

import clailearn
from clailearn.errors import InputError
from clailearn.files import OF_RECORD, checksum_of_record
from replication.models.clai import build_clai
from support.hostile import NUMBERS, TEXTS, attack, some_damaged
from support.repository import lay

CLASSES, INPUTS, SIZE = ["ash", "birch", "cedar"], 2, 3
SETTINGS: dict[str, Any] = {
    "embedding_size": SIZE, "kernel": {"name": "gaussian", "metric": "full"}, "conditioning": "class", "rule": "printed",
    "precision": "float32",
    "encoder": {"trunk": "mlp", "width": 4, "blocks": [1], "pool": False, "layers": 1, "dropout": 0.0, "head": "linear"},
}  # fmt: skip
RECORD: dict[str, Any] = {
    "format": 3, "classes": CLASSES, "settings": SETTINGS, "population": [2, 1, 1], "calibration": {"temperature": 1.0},
    "input": {
        "kind": "features", "shape": [INPUTS], "names": ["height", "girth"], "mean": [0.0, 0.0], "sd": [1.0, 1.0],
        "mirror": False, "variables": [],
    },
    "run": "trees/clai-m/seed0", "model": "clai-m", "metrics": {}, "record": {},
    "data": {"dataset": "trees", "title": "Trees", "licence": "CC0-1.0"},
}  # fmt: skip
ODD = st.sampled_from(
    (
        None, True, -1, 0, 1, 2, 7, 4096, 4097, 2**31, 2**63, 10**30, -1e30, 1e-300, 1e31, "", [], {}, [[]], [0], [1, 1],
        [2**40] * 3, ["a"] * 2, ["a", "b", "c", "d"], [-1, 1, 2], [16] * 8, [16] * 9, [1.5] * 2, [65536] * 3, "gru",
        "convnet", "resnet2d", "resnet1d", "clai-c", "cross-entropy", "gp", "images", "signals", "recordings", "identity",
        "full", "bfloat16", *NUMBERS, *TEXTS,
    )
)  # fmt: skip
ODD_TENSORS = (
    torch.zeros(3, 3, SIZE), torch.zeros(3, 2, SIZE, dtype=torch.float16), torch.zeros(3, 3, SIZE, dtype=torch.bfloat16),
    torch.full((3, 3, SIZE), torch.nan, dtype=torch.float16), torch.tensor([0, 1, 3]), torch.tensor([0, -1, 2]),
    torch.tensor([0, 1, 1]), torch.tensor([0, 1]), torch.tensor([0.0, 1.0, 2.0]), torch.zeros(0, dtype=torch.int64),
    torch.tensor(2**62), torch.zeros(3, 0, SIZE, dtype=torch.float16),
)  # fmt: skip


def places(record: Mapping[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the keys of all entries of a record, those within blocks too."""
    found = []
    for key, value in record.items():
        found.append((*above, key))
        if isinstance(value, dict):
            found += places(value, (*above, key))
    return found


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """Return the record with one to three entries changed, left out or added."""
    record = json.loads(json.dumps(RECORD))
    for _ in range(draw(st.integers(1, 3))):
        *blocks, last = draw(st.sampled_from(places(RECORD)))
        place = record
        for block in blocks:
            place = place.get(block, {}) if isinstance(place, dict) else {}
        if not isinstance(place, dict):
            continue
        if draw(st.booleans()) and last in place:
            del place[last]
        else:
            place[draw(st.sampled_from((last, "unknown")))] = draw(ODD)
    return record


@st.composite
def weights(draw: st.DrawFn, whole: bytes) -> bytes:
    """Return the file of weights with a tensor left out, exchanged for another or an odd one, or one added."""
    tensors: dict[str, Tensor] = load(whole)
    place, kind = draw(st.sampled_from((*sorted(tensors), "more"))), draw(st.sampled_from(("drop", "exchange", "odd")))
    dropped = tensors.pop(place, None)
    if kind == "exchange":
        tensors[place] = tensors[draw(st.sampled_from(sorted(tensors)))].clone()
    elif kind == "odd" or dropped is None:
        tensors[place] = draw(st.sampled_from(ODD_TENSORS)).clone()
    return save(tensors)


def files() -> dict[str, bytes]:
    """A small published model of rows."""
    model = build_clai(SETTINGS, "clai-m", INPUTS, len(CLASSES), seed=0)
    tensors = torch.nn.ModuleList(model).state_dict()
    tensors |= {
        "reference.z": torch.ones(len(CLASSES), 3, SIZE, dtype=torch.float16), "reference.y": torch.arange(3),
        "reference.item": torch.arange(3) + 5,
    }  # fmt: skip
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    return {"model.safetensors": content, "model.json": text(RECORD, content)}


def text(record: Mapping[str, Any], content: bytes) -> bytes:
    """Return the record as JSON, with the checksums of the weights and of itself."""
    whole = {"sha256": hashlib.sha256(content).hexdigest(), **record}
    return json.dumps({OF_RECORD: checksum_of_record(whole), **whole}).encode("utf-8", "surrogatepass")


def use(folder: Path) -> None:
    """Load the model; one that takes rows of two features must classify one."""
    model = clailearn.load(folder)
    if model.inputs.kind == "features" and list(model.inputs.shape) == [INPUTS]:
        x = np.zeros((1, INPUTS))
        assert model.predict(x)[0] in model.classes
        probabilities = model.probabilities(x)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


def altered(files: Mapping[str, bytes]) -> st.SearchStrategy[Mapping[str, bytes]]:
    """Return damaged files, records that lie about the weights, and, under a right checksum, weights that do not fit."""
    content = files["model.safetensors"]
    return st.one_of(
        some_damaged(files),
        records().map(lambda record: {**files, "model.json": text(record, content)}),
        weights(content).map(lambda other: {"model.safetensors": other, "model.json": text(RECORD, other)}),
    )


def test_published_models(tmp_path: Path) -> None:
    whole = files()
    attack(tmp_path, altered(whole), use, valid=whole, named=("model.json", "model.safetensors"), cases=1000)


@pytest.mark.parametrize(("key", "value"), [("calibration", {}), ("classes", [float("nan"), 1.5, 2.5])])
def test_an_entry_that_would_change_results_without_a_word_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    content = files()["model.safetensors"]
    lay(tmp_path, {"model.safetensors": content, "model.json": text({**RECORD, key: value}, content)})
    with pytest.raises(InputError, match=key):
        clailearn.load(tmp_path)
