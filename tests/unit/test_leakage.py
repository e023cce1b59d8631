"""Nothing of the test data, of validation patients or of later hours reaches what is learned from."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clailearn.checkpoints import Checkpoint
from clailearn.errors import InputError
from replication.datasets.prepared import Prepared
from replication.datasets.recordings import hourly_inputs, patient_folds
from replication.datasets.samples import group_split, stratified_validation
from replication.models.base import create
from replication.models.items import NO_AUGMENTATION, Splits, splits_of
from replication.models.run import Run
from replication.runs.run import RunId
from replication.runs.settings import dataset_settings, merge, model_settings
from support.repository import MINI, REAL
from support.training import pictures, rows

CPU = torch.device("cpu")
SEEDS = st.integers(0, 2**31 - 1)
SHARES = st.floats(0.05, 0.6)
QUICKLY = settings(max_examples=40, deadline=None)


# Splits and folds


@QUICKLY
@given(st.lists(st.integers(0, 82), min_size=3, max_size=160), SHARES, SHARES, SEEDS)
def test_a_subject_is_on_one_side_of_every_split(subjects: list[int], test: float, val: float, seed: int) -> None:
    if len(set(subjects)) < 3:
        subjects = [*subjects, 100, 101, 102]
    shares = {"test_share": test, "validation_share": val}
    parts = group_split(np.array(subjects), shares, seed, "subjects").values()
    assert all(len(part) for part in parts)
    assert sorted(np.concatenate([*parts])) == sorted(set(subjects))


@QUICKLY
@given(st.lists(st.integers(0, 9), min_size=60, max_size=300), st.floats(0.2, 0.8), SEEDS)
def test_a_sample_is_for_training_or_for_validation(labels: list[int], share: float, seed: int) -> None:
    y = np.concatenate([np.repeat(np.arange(10), 2), labels])
    with suppress(InputError):  # for a class of too few samples
        training, validation = stratified_validation(y, share, seed, "0123456789")
        np.testing.assert_array_equal(np.sort(np.concatenate([training, validation])), np.arange(len(y)))
        assert len(set(y[training])) == len(set(y[validation])) == 10


def test_a_class_too_small_for_its_share_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="test_share: found 3 of 100 samples in class 'rare'"):
        stratified_validation(np.repeat([0, 1], [97, 3]), 0.1, 0, ["other", "rare"], "test_share")


@st.composite
def cohorts(draw: st.DrawFn) -> dict[str, NDArray[Any]]:
    """Recordings of 24 to 40 patients, one to three each, at least four patients with and four without an event."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(24, 40))
    patients = np.repeat(rng.permutation(1000)[:n], rng.integers(1, 4, n))
    patients = rng.permutation(patients)
    septic = np.isin(patients, rng.permutation(np.unique(patients))[: draw(st.integers(6, n - 6))])
    lengths = rng.integers(2, 7, len(patients))
    y = np.concatenate([np.r_[np.zeros(k - 1), s] for k, s in zip(lengths, septic, strict=True)]).astype(np.int64)
    x = rng.normal(50, 10, (len(y), 3)).astype(np.float32)
    x[rng.random(x.shape) < 0.4] = np.nan
    folds = patient_folds(patients, septic, 3, seed=int(rng.integers(1000)))
    rows = {"groups": np.arange(len(patients)) + 7000, "patients": patients, "folds": folds}
    long = {f"{name}_all": np.repeat(values, lengths) for name, values in rows.items()}
    hours = np.concatenate([np.arange(k, dtype=np.float32) + 1 for k in lengths])
    return long | {"x_all": x, "y_all": y, "hours_all": hours}


def drawn(arrays: dict[str, NDArray[Any]], fold: int, seed: int) -> Splits:
    config = {"validation_share_recordings": 0.2}
    data = Prepared({"kind": "recordings", "variables": ["a", "b", "c"]}, arrays)
    return splits_of(data, config, RunId("stays", "clai-m", seed, fold), CPU)


@QUICKLY
@given(cohorts(), st.integers(0, 2), st.integers(0, 5))
def test_a_patient_is_in_one_fold_and_in_one_part_of_it(arrays: dict[str, NDArray[Any]], fold: int, seed: int) -> None:
    patients, folds = arrays["patients_all"], arrays["folds_all"]
    for patient in np.unique(patients):
        assert len(np.unique(folds[patients == patient])) == 1
    # Each row's patient in place of its value, which the splits then hold; normalised alike, patients stay distinct.
    marked = arrays | {"x_all": np.repeat(patients[:, None].astype(np.float32), 3, axis=1)}
    seen = [set(np.unique(part.x[:, 0].numpy())) for part in drawn(marked, fold, seed)]
    assert sum(map(len, seen)) == len(set.union(*seen)) == len(np.unique(patients))


# Normalisation


@QUICKLY
@given(cohorts(), st.integers(0, 2), st.floats(-1e4, 1e4))
def test_held_out_rows_change_no_training_input(arrays: dict[str, NDArray[Any]], fold: int, value: float) -> None:
    plain = drawn(arrays, fold, seed=0)
    positions = np.arange(len(arrays["y_all"]), dtype=np.float32)
    marked = drawn(arrays | {"x_all": np.repeat(positions[:, None], 3, axis=1)}, fold, seed=0)
    order = np.argsort(np.concatenate([part.x[:, 0].numpy() for part in marked]))
    part_of_row = np.repeat([0, 1, 2], [len(part.labels) for part in marked])[order]
    for held_out in (1, 2):
        x = arrays["x_all"].copy()
        x[part_of_row == held_out] = value
        changed = drawn(arrays | {"x_all": x}, fold, seed=0)
        torch.testing.assert_close(changed.train.x, plain.train.x, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["images", "signals", "features"])
def test_training_inputs_depend_on_training_statistics_alone(kind: str) -> None:
    """The statistics of the test set, which the paper's protocol uses, reach the test set only."""
    rng = np.random.default_rng(0)
    shape = {"images": (6, 4, 4, 2), "signals": (6, 2, 8), "features": (6, 2)}[kind]
    arrays: dict[str, NDArray[Any]] = {}
    for split in ("train", "val", "test"):
        arrays[f"x_{split}"] = rng.integers(0, 255, shape).astype(np.uint8 if kind == "images" else np.float32)
        arrays[f"y_{split}"] = np.arange(6) % 2
    training = {"samples": None, "augmentation": NO_AUGMENTATION}

    def batches(test_mean: float, separately: bool) -> list[torch.Tensor]:
        norm = {"train": {"mean": [100.0] * 2, "sd": [50.0] * 2}, "test": {"mean": [test_mean] * 2, "sd": [9.0] * 2}}
        data = Prepared({"kind": kind, "normalisation": norm}, arrays)
        chosen = {"normalise_test_separately": separately, "training": training}
        parts = splits_of(data, chosen, RunId(kind, "clai-m", 0), CPU)
        return [part.batch(torch.arange(6), None)[0] for part in parts]

    a, b = batches(1.0, True), batches(2.0, True)
    for part in (0, 1):
        torch.testing.assert_close(a[part], b[part], rtol=0, atol=0)
        expected = (arrays[f"x_{('train', 'val')[part]}"].astype(float) - 100) / 50
        np.testing.assert_allclose(np.sort(a[part].numpy(), axis=None), np.sort(expected, axis=None), atol=1e-5)
    assert torch.equal(a[2], b[2]) == (kind == "features")
    torch.testing.assert_close(batches(1.0, False)[2], batches(2.0, False)[2], rtol=0, atol=0)


def test_only_the_test_images_that_the_paper_normalises_separately_meet_their_own_statistics() -> None:
    separately = [name for name in REAL["datasets"] if dataset_settings(REAL, name)["normalise_test_separately"]]
    assert separately == ["cifar10"]


# Time


@QUICKLY
@given(cohorts(), SEEDS)
def test_no_input_depends_on_later_hours_or_other_recordings(arrays: dict[str, NDArray[Any]], seed: int) -> None:
    x, recording, hours = (arrays[f"{name}_all"] for name in ("x", "groups", "hours"))
    rng = np.random.default_rng(seed)

    def inputs(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return hourly_inputs(values, recording, hours, [50.0] * 3, [10.0] * 3)

    row = int(rng.integers(len(x)))
    past = (recording == recording[row]) & (np.arange(len(x)) <= row)
    other = np.where(rng.random(x.shape) < 0.5, np.nan, rng.normal(0, 1e3, x.shape)).astype(np.float32)
    other[past] = x[past]
    np.testing.assert_array_equal(inputs(other)[past], inputs(x)[past])


@pytest.mark.parametrize("model", ["clai-m", "cross-entropy", "gradient-boosting"])
def test_no_test_sample_reaches_a_fit_and_validation_samples_are_measured(model: str, tmp_path: Path) -> None:
    of_images = model != "gradient-boosting"
    own: dict[str, Any] = {"training": {"epochs": 2, "batch_size": 16, "precision": "float32"}}
    own |= {"encoder": {"trunk": "convnet", "width": 2}} if of_images else {}
    settings = merge(model_settings(MINI, "cifar10" if of_images else "sleepedf-bands", model), own)

    def fitted(**changed: NDArray[Any]) -> tuple[list[Any], NDArray[Any]]:
        """Return what validation measured, and scores of training samples."""
        data = pictures() if of_images else rows()
        run = Run(Prepared(data.info, {**data.arrays, **changed}), settings, RunId("mine", model, 0), CPU)
        made = create(model)
        history = made.fit(run, Checkpoint(tmp_path / f"{sorted(changed)}.pt", ""))
        return [epoch.get("validation_accuracy") for epoch in history], made.scores(run, run.splits.train)

    data, generator = pictures() if of_images else rows(), np.random.default_rng(1)
    before = fitted()
    without_test = fitted(x_test=0 * data["x_test"], y_test=generator.permutation(data["y_test"]))
    assert without_test[0] == before[0]
    np.testing.assert_array_equal(without_test[1], before[1])
    other = fitted(y_val=generator.permutation(data["y_val"]))
    assert other[0] != before[0] or not np.array_equal(other[1], before[1])
