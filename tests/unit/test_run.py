"""A run knows its identity, opens its data, computes its splits once and knows what its fit depends on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from clailearn.checkpoints import Checkpoint
from clailearn.errors import InputError
from replication.datasets.prepared import Prepared
from replication.models import base
from replication.models.base import create
from replication.models.embedding import further_views
from replication.models.items import NO_AUGMENTATION, recording_rows
from replication.models.run import Run, check_runs, choose_precision, suited
from replication.runs.run import RunId
from replication.runs.settings import merge, model_settings
from support.repository import MINI

CPU = torch.device("cpu")
TRAINING = {"samples": None, "augmentation": NO_AUGMENTATION}
SETTINGS: dict[str, Any] = {"threads": 1, "normalise_test_separately": True, "training": TRAINING}


def run_of(run_id: RunId, **settings: Any) -> Run:
    statistics = {"mean": [0.0], "sd": [1.0]}
    info = {"kind": "images", "classes": ["a", "b"], "normalisation": {"train": statistics, "test": statistics}}
    arrays = {f"x_{split}": np.zeros((4, 2, 2, 1), np.uint8) for split in ("train", "val", "test")}
    arrays |= {f"y_{split}": np.arange(4) % 2 for split in ("train", "val", "test")}
    return Run(Prepared(info, arrays), SETTINGS | settings, run_id, CPU)


@pytest.mark.parametrize(
    "run_id", [RunId("cifar10", "clai-m", 1), RunId("ablation", "full_zero", 0, 12), RunId("seed1", "gp", 0)]
)
def test_a_run_is_read_from_its_name_and_from_every_path_of_its_files(run_id: RunId) -> None:
    assert RunId.parse(str(run_id)) == run_id
    assert RunId.parse(Path("results", "seed3-copy", "real", str(run_id), "metrics.csv")) == run_id
    with pytest.raises(ValueError, match="cifar10/clai-m names no run: expected <dataset or study>/<model or cell>"):
        RunId.parse("cifar10/clai-m")


@pytest.mark.parametrize(("mirror", "shift", "views"), [(False, 0, 0), (True, 0, 1), (False, 1, 2), (True, 1, 5)])
def test_views_of_an_image_are_mirrored_and_shifted_both_ways(mirror: bool, shift: int, views: int) -> None:
    x = torch.arange(9.0).view(1, 1, 3, 3)
    run = run_of(RunId("cifar10", "clai-m", 0), inference={"mirror": mirror, "shift": shift})
    seen = [view(x)[0, 0].tolist() for view in further_views(run)]
    assert len(seen) == views
    assert ([[2, 1, 0], [5, 4, 3], [8, 7, 6]] in seen) == mirror
    for moved in ([[4, 3, 4], [1, 0, 1], [4, 3, 4]], [[4, 5, 4], [7, 8, 7], [4, 5, 4]]):
        assert (moved in seen) == bool(shift)
    if shift:
        run.data.info["kind"] = "signals"
        with pytest.raises(InputError, match=r"inference\..*, which are no images"):
            further_views(run)


def test_a_trunk_and_a_model_of_other_data_are_refused_by_name() -> None:
    training = {"samples": None}  # rules pass augmentation on to networks alone
    run = run_of(RunId("pets", "gradient-boosting", 0), encoder={"trunk": "mlp"}, training=training)
    with pytest.raises(InputError, match=r"found encoder.trunk mlp and images, expected resnet2d or convnet.* of pets"):
        _ = run.inputs
    run.settings["encoder"]["trunk"] = "convnet"
    with pytest.raises(InputError, match=r"found images with 2 pixels a side, expected at least 9 for .* convnet"):
        _ = run.inputs
    with pytest.raises(InputError, match=r"pets: found images, expected features or recordings for"):
        create("gradient-boosting").fit(run, None)


def test_models_of_rows_are_refused_for_pictures_before_anything_trains(tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text('{"kind": "images"}')
    settings = {"datasets": {"pets": {"models": ["clai-m", "gradient-boosting"]}}}
    with pytest.raises(InputError, match="pets: found images, expected features or recordings for gradient-boosting"):
        check_runs(settings, "pets", tmp_path / "dataset.json")


AUTO = {"epochs": "auto", "batch_size": "auto", "augmentation": {"crop": "auto", "flip": "auto"}}


@pytest.mark.parametrize(
    ("samples", "side", "mean", "expected"),
    [
        (198, 28, [1.0, 2.0, 3.0], {"epochs": 67, "batch_size": 32, "augmentation": {"crop": 4, "flip": True}}),
        (20, 28, [1.0, 1.0, 1.0], {"epochs": 200, "batch_size": 10, "augmentation": {"crop": 4, "flip": False}}),
        (50_000, 8, [1.0, 2.0, 3.0], {"epochs": 16, "batch_size": 128, "augmentation": {"crop": 1, "flip": False}}),
    ],
)
def test_auto_suits_the_number_and_the_size_of_the_images(
    samples: int, side: int, mean: list[float], expected: dict[str, Any]
) -> None:
    info = {
        "kind": "images", "splits": {"train": {"n": samples}}, "arrays": {"x_train": {"shape": [samples, side, side, 3]}},
        "normalisation": {"train": {"mean": mean}},
    }  # fmt: skip
    encoder = {"trunk": "auto", "width": 8, "blocks": "auto", "pool": True}
    found = suited({"device": "auto", "encoder": encoder, "training": AUTO}, info)
    assert found["training"] == expected
    assert found["encoder"] == {"trunk": "resnet2d", "width": 8, "blocks": [2, 2, 2, 2], "pool": True}
    assert found["device"] == "auto"


@pytest.mark.parametrize(("native", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_bfloat16_only_where_it_is_native_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, native: bool, precision: str
) -> None:
    monkeypatch.setattr("replication.models.run.has_native_bfloat16", lambda device: native)
    with caplog.at_level("INFO", logger="replication"):
        assert choose_precision("auto", CPU) == precision
    assert f"training.precision auto: {precision}, because this CPU" in caplog.text


def test_a_state_is_resumed_by_the_same_fit_alone(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("first")

    def fingerprint(run: Run) -> str:
        return run.checkpoint(tmp_path / "metrics.csv", [str(file)]).fingerprint

    first = fingerprint(run_of(RunId("stays", "gp", 0, 1)))
    others = [run_of(RunId("stays", "gp", 1, 0)), run_of(RunId("stays", "constant", 0, 1))]
    others.append(run_of(RunId("stays", "gp", 0, 1), threads=2))
    assert first not in map(fingerprint, others)
    file.write_text("second")
    assert fingerprint(run_of(RunId("stays", "gp", 0, 1))) != first


def test_a_batch_of_more_than_half_the_training_items_is_refused_before_training(tmp_path: Path) -> None:
    run = run_of(RunId("pictures", "cross-entropy", 0))
    vars(run)["training"] = SimpleNamespace(batch_size=3)
    refusal = "pictures/cross-entropy/seed0: found training.batch_size 3 and 4 training images, .* to 2 or less"
    with pytest.raises(InputError, match=refusal):
        create(run.model).fit(run, Checkpoint(tmp_path / "state", ""))


@pytest.mark.parametrize(("septic", "part"), [([0, 1], "training"), ([0, 1, 2], None)])
def test_a_run_whose_rows_lack_a_class_is_refused(septic: list[int], part: str | None) -> None:
    patients = np.repeat(np.arange(9), 2)
    y = np.isin(patients, septic) & (np.arange(18) % 2 == 1)
    folds = (patients == septic[0]).astype(np.int64)
    data = Prepared({"kind": "recordings"}, {"folds_all": folds, "patients_all": patients, "y_all": y.astype(np.int64)})
    settings = {"validation_share_recordings": 0.1}
    if part is None:
        assert all(y[rows].any() for rows in recording_rows(data, settings, RunId("icu", "clai-m", 0, 1)))
        return
    with pytest.raises(InputError, match=rf"icu/clai-m/seed0/fold1: the hours for {part}: found none of 'sepsis'"):
        recording_rows(data, settings, RunId("icu", "clai-m", 0, 1))


def test_images_of_all_classes_decide_how_the_convnet_whitens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared images stand in the order of their classes. Here they are of two colours."""
    monkeypatch.setattr(base, "_IMAGES_TO_WHITEN", 40)
    pixels = np.random.default_rng(0).integers(0, 60, (100, 12, 12, 3), dtype=np.uint8)
    pixels[50:, ..., 0] += 190
    statistics = {"mean": [60.0] * 3, "sd": [60.0] * 3}
    info = {"kind": "images", "classes": ["a", "b"], "normalisation": {"train": statistics, "test": statistics}}
    arrays = {"x_train": pixels, "x_val": 0 * pixels, "x_test": 0 * pixels}
    arrays |= {f"y_{split}": np.arange(100) // 50 for split in ("train", "val", "test")}
    own = {"encoder": {"trunk": "convnet", "width": 2}}
    settings = merge(model_settings(MINI, "cifar10", "cross-entropy"), own)
    run = Run(Prepared(info, arrays), settings, RunId("cifar10", "cross-entropy", 0), CPU)
    model = create(run.model).start(run)
    images = run.splits.train.batch(torch.arange(100), None)[0]
    responses = torch.nn.functional.conv2d(images, model.network.trunk.whitening).transpose(0, 1).flatten(1)
    assert 0.7 < responses.square().mean(1).max() < 1.5
