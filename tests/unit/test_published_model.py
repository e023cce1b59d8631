"""A published model gives what its run gave, says which references vote, and is refused where it is not as published."""

import gzip
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors import safe_open

import clailearn
from clailearn.calibration import calibrated, fit_calibration
from clailearn.cli import main
from clailearn.computation import Computation, Inputs
from clailearn.errors import InputError
from clailearn.model import Model
from replication.datasets.prepared import Prepared
from replication.experiments import packing
from replication.experiments.evaluation import evaluate
from replication.models.base import Network, create
from replication.models.clai import CLaI
from replication.models.embedding import Embedded, embed_splits
from replication.models.items import drawn_rows
from replication.models.run import Run
from replication.report.evidence import printed_reading
from replication.runs.run import RunId, checksums
from replication.runs.settings import merge, model_settings
from support.repository import MINI

OWN = {
    "embedding_size": 4,
    "encoder": {"width": 4, "blocks": [1, 1]},
    "inference": {"mirror": False, "validation_references": 20},
    "training": {"precision": "bfloat16"},
}
SETTINGS = merge(model_settings(MINI, "cifar10", "clai-m"), OWN)
RECORD = {"commit": "0" * 40, "dirty": False, "hardware": "test, 1 core", "seed": 0, "fold": None}


def run_of(model: str, classes: int, kind: str = "images", **settings: Any) -> Run:
    """Return a run on random images of 6 x 6 pixels, or on rows of 3 features."""
    rng = np.random.default_rng(5)
    arrays: dict[str, Any] = {}
    for split, n in (("train", 60), ("val", 30), ("test", 30)):
        y = np.arange(n) % classes
        arrays[f"y_{split}"] = y
        arrays[f"x_{split}"] = (
            np.clip(rng.integers(0, 256, (n, 6, 6, 3)) // 2 + 30 * y[:, None, None, None], 0, 255).astype(np.uint8)
            if kind == "images"
            else (rng.normal(size=(n, 3)) + y[:, None]).astype(np.float32)
        )
    statistics = {"mean": [120.0, 121.0, 122.0], "sd": [40.0, 41.0, 42.0]}
    if kind == "images":
        arrays["files_train"] = np.array([f"train/{label}/{row}.png" for row, label in enumerate(arrays["y_train"])])
    info = {
        "dataset": "pictures", "title": "Pictures", "version": "1", "licence": "CC0-1.0", "kind": kind, "source": "image_folder",
        "classes": ["ash", "birch", "cedar"][:classes], "miniature": True, "channels": ["red", "green", "blue"],
        "files": [{"file": "pictures.zip", "checksum": "sha256:ab"}],
        "normalisation": {"train": statistics, "test": {**statistics, "mean": [118.0, 119.0, 120.0]}},
    }  # fmt: skip
    encoder = SETTINGS["encoder"] if kind == "images" else {**SETTINGS["encoder"], "trunk": "mlp", "blocks": []}
    merged = SETTINGS | {"encoder": encoder} | settings
    return Run(Prepared(info, arrays), merged, RunId("pictures", model, 0), torch.device("cpu"))


def trained_for(run: Run) -> Network:
    """Return a network with random weights, normalising statistics among them, ready to evaluate."""
    model = create(run.model).build(run)
    with torch.no_grad():
        for _ in range(30):
            model.network.train()(run.splits.train.batch(torch.arange(len(run.splits.train)), None)[0])
    model.network.eval()
    return model  # type: ignore[no-any-return]


def packed(folder: Path, run: Run, references: int = 30) -> tuple[Model, pd.DataFrame, dict[str, Embedded]]:
    """Publish the run's model; return it as loaded, the metrics of the run and its embeddings."""
    model = trained_for(run)
    record = {**RECORD, "run": str(run.id), "settings": dict(run.settings), "data": checksums(run.data.info)}
    record["evaluation"] = {**RECORD, "settings": dict(run.settings)}
    embedded = embed_splits(run, model.network) if isinstance(model, CLaI) else {}
    metrics = evaluate(run, model)[0].metrics
    folder.mkdir(parents=True)
    printed = metrics[printed_reading(metrics)].set_index("metric")["value"].to_dict()
    packing.pack(run, model, embedded or None, references, record, printed, folder)
    return clailearn.load(folder), metrics, embedded


Published = tuple[Model, Run, pd.DataFrame, Path]
PublishedBy = Callable[[str, int, str], Published]


@pytest.fixture(scope="module")
def publish(tmp_path_factory: pytest.TempPathFactory) -> PublishedBy:
    """From model, classes and kind to a published model that keeps all references, its run, the run's metrics and its folder."""

    @cache
    def find(model: str, classes: int, kind: str) -> Published:
        folder, run = tmp_path_factory.mktemp("published") / "model", run_of(model, classes, kind)
        loaded, metrics, _ = packed(folder, run, references=1000)
        return loaded, run, metrics, folder

    return find


@pytest.mark.parametrize(
    "case",
    [
        ("clai-m", 3, "images"), ("clai-c", 3, "images"), ("clai-c", 2, "images"), ("clai-m", 2, "features"),
        ("cross-entropy", 3, "images"), ("cross-entropy", 2, "features"),
    ],
)  # fmt: skip
def test_a_model_with_all_references_predicts_as_its_run_and_votes(
    publish: PublishedBy, case: tuple[str, int, str]
) -> None:
    loaded, run, metrics, _ = publish(*case)
    x, y, names = np.asarray(run.data["x_test"]), np.asarray(run.data["y_test"]), np.asarray(loaded.classes)
    main_rule = metrics[metrics["rule"].isin(["printed", ""])]
    expected = main_rule.loc[main_rule["metric"] == "accuracy", "value"].iloc[0]
    assert (loaded.predict(x) == names[y]).mean() == expected
    if case[1] == 2:
        scores = loaded.scores(x)
        np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
        assert ((scores[:, 1] > 0) == (loaded.predict(x) == names[1])).all()
    published_metrics, of_run = loaded.record["metrics"]["published"], loaded.record["metrics"]["run"]
    assert of_run.keys() == published_metrics.keys()
    probabilities = loaded.probabilities(x)
    assert probabilities.shape == (len(x), case[1])
    assert np.allclose(probabilities.sum(1), 1)
    if case[2] == "features":  # of images, validation samples are normalised otherwise than what is predicted
        calibration = fit_calibration(loaded.scores(run.data["x_val"]), run.data["y_val"])
        np.testing.assert_allclose(probabilities, calibrated(loaded.scores(x), calibration), atol=0.01)
    if case[0] == "cross-entropy":
        with pytest.raises(InputError, match="without references, expected one of Collaborative Learning"):
            loaded.votes(x)
        return
    for votes in loaded.votes(x[:7], k=1000):
        assert sum(vote.vote for vote in votes.support + votes.opposition) == pytest.approx(votes.score, abs=2e-5)
        for side in (votes.support, votes.opposition):
            similarities = [vote.similarity for vote in side]
            assert similarities == sorted(similarities, reverse=True)
            assert all(run.data["y_train"][vote.item] == loaded.classes.index(vote.label) for vote in side)
            if case[2] == "images":
                assert all(vote.file == run.data["files_train"][vote.item] for vote in side)


@pytest.mark.parametrize(("precision", "bits"), [("bfloat16", 8), ("float32", 11)])
def test_the_weights_of_the_trunk_are_published_in_half_the_bits(tmp_path: Path, precision: str, bits: int) -> None:
    run = run_of("clai-m", 3, training=SETTINGS["training"] | {"precision": precision})
    loaded, _, _ = packed(tmp_path / "model", run)
    read = loaded.network.trunk.state_dict()
    for name, tensor in trained_for(run).network.trunk.state_dict().items():
        assert torch.allclose(read[name], tensor, rtol=2.0**-bits, atol=1e-7), name
    with safe_open(tmp_path / "model" / "model.safetensors", "pt") as file:
        assert file.get_tensor("0.trunk.stem.0.weight").dtype.itemsize == 2
    assert packing.keeps_weights(tmp_path / "model") == (precision == "bfloat16")


def test_a_mirrored_vote_is_the_mean_of_both_views(tmp_path: Path) -> None:
    run = run_of("clai-m", 3, inference={**SETTINGS["inference"], "mirror": True})
    loaded, _, embedded = packed(tmp_path / "model", run, references=1000)
    assert [part.z_views is None for part in embedded.values()] == [True, False, False]
    x = np.asarray(run.data["x_test"])[:5]
    assert np.allclose(loaded.scores(x), loaded.scores(x[:, :, ::-1]), atol=1e-5)
    (votes,) = loaded.votes(x[:1], k=1000)
    assert sum(vote.vote for vote in votes.support + votes.opposition) == pytest.approx(votes.score, abs=2e-5)


@pytest.mark.parametrize(
    ("kind", "x", "found"),
    [
        ("images", np.zeros((2, 6, 7, 3), np.uint8), r"found uint8 \[2, 6, 7, 3\], expected uint8 of shape \(samples, 6, 6, 3\)"),
        ("images", np.zeros((6, 6, 3), np.uint8), "a single sample is an array of one"),
        ("features", [[1.0, np.nan, 2.0]], "not finite"),
        ("features", np.ones((2, 3)) * 1j, "found complex128"),
        ("features", pd.DataFrame({"red": [1.0], "green": [1.0]}), "x: found no column blue, expected red, green, blue"),
    ],
)  # fmt: skip
def test_an_input_of_another_form_is_named(publish: PublishedBy, kind: str, x: Any, found: str) -> None:
    with pytest.raises(InputError, match=found):
        publish("clai-m", 3 if kind == "images" else 2, kind)[0].predict(x)


def test_columns_of_a_data_frame_go_by_their_names(publish: PublishedBy) -> None:
    loaded, run, _, _ = publish("clai-m", 2, "features")
    x = np.asarray(run.data["x_test"])[:4]
    frame = pd.DataFrame(x, columns=["red", "green", "blue"])
    for table in (frame[["blue", "red", "green"]], frame.convert_dtypes(), frame.astype(object)):
        np.testing.assert_array_equal(loaded.scores(table), loaded.scores(x))
    with pytest.raises(InputError, match=r"x: found no numbers .*NAType"):
        loaded.scores(frame.convert_dtypes().mask(frame > frame.iloc[0, 0]))
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(loaded.scores(tensor), loaded.scores(x))


def test_the_global_state_of_torch_changes_no_prediction(publish: PublishedBy) -> None:
    loaded, run, _, folder = publish("clai-m", 3, "images")
    x = np.asarray(run.data["x_test"])[:2]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"), torch.autocast("cpu", dtype=torch.float16):
            np.testing.assert_array_equal(clailearn.load(folder).scores(x), loaded.scores(x))
    finally:
        torch.set_default_dtype(torch.float32)


def test_signals_may_have_any_byte_order() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    inputs = Inputs("signals", [3, 4], mean=[1.0] * 3, sd=[2.0] * 3)
    for kind in (">f4", ">i2", "g"):
        (found,) = inputs.blocks(x.astype(kind), Computation("cpu", "float32"))
        assert found.tolist() == ((x - 1) / 2).tolist()


@pytest.mark.parametrize("model", ["clai-m", "clai-c", "cross-entropy"])
def test_a_published_model_is_evaluated_as_its_run_was(
    monkeypatch: pytest.MonkeyPatch, publish: PublishedBy, model: str
) -> None:
    _, run, metrics, folder = publish(model, 3, "images")

    def opened(description: Path, settings: dict[str, Any], run_id: RunId) -> Run:
        # bfloat16 as in the run, though a CPU may emulate it
        training = settings["training"] | {"precision": run.settings["training"]["precision"]}
        return Run(run.data, settings | {"training": training}, run_id, run.device)

    monkeypatch.setattr(packing, "Run", SimpleNamespace(open=opened))
    frame = packing.evaluate(folder, folder)
    assert list(frame) == ["name", "cell", "seed", "fold", "rule", "shares", "metric", "value"]
    assert set(frame["cell"]) == {model}
    assert np.allclose(frame["value"], metrics["value"], atol=1e-6)
    accuracy = frame["metric"] == "accuracy"
    assert (frame["value"][accuracy].to_numpy() == metrics["value"][metrics["metric"] == "accuracy"].to_numpy()).all()


def test_other_data_are_refused(monkeypatch: pytest.MonkeyPatch, publish: PublishedBy) -> None:
    _, run, _, folder = publish("clai-m", 3, "images")
    info = {**run.data.info, "files": [{"file": "pictures.zip", "checksum": "sha256:cd"}]}
    other = Run(Prepared(info, run.data.arrays), run.settings, run.id, run.device)
    monkeypatch.setattr(packing, "Run", SimpleNamespace(open=lambda *_, **__: other))
    with pytest.raises(InputError, match="on which the model was trained"):
        packing.evaluate(folder, folder)


def test_references_of_a_run_on_some_samples_are_named_by_their_place_among_all(tmp_path: Path) -> None:
    run = run_of("clai-m", 3, training=SETTINGS["training"] | {"samples": 30})
    packed(tmp_path / "model", run, references=12)
    with safe_open(tmp_path / "model" / "model.safetensors", "np") as file:
        places, classes = file.get_tensor("reference.item"), file.get_tensor("reference.y")
    np.testing.assert_array_equal(run.data["y_train"][places], classes)
    drawn = drawn_rows(run.settings, run.id, 60)
    assert set(places) <= set(drawn)


def test_an_orthonormal_head_is_packed_as_the_weight_that_it_is(tmp_path: Path) -> None:
    run = run_of("clai-m", 3, encoder=SETTINGS["encoder"] | {"head": "orthonormal"})
    weight = packed(tmp_path / "model", run)[0].network.head.weight
    torch.testing.assert_close(weight.mT @ weight, torch.eye(weight.shape[2]).expand(3, -1, -1), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("rows.csv", b"red,green,blue,red\n1,2,3,4\n", "rows.csv: found 2 columns 'red', expected one"),
        ("rows.csv", b"red,green,blue\n1,2,1_0\n", "rows.csv:2: column 'blue': found '1_0'"),
        ("rows.csv", b"red;green;blue\n1;2;3\n", "rows.csv: found no columns 'red', expected one among red;green;blue"),
        ("rows.csv", b"red,green,blue\n", "rows.csv: found no row"),
        ("rows.csv", b"red,green,blue\n\n\n", "rows.csv: found no row"),
        ("rows.csv", b"red,green,blue\n1,2,\xff\n", "rows.csv: cannot be read"),
        ("0.png", b"no picture", "0.png: cannot be decoded as an image"),
        (".", None, ": found no picture in it, expected .jpg"),
    ],
)
def test_the_command_refuses_a_file_that_does_not_fit(
    tmp_path: Path, publish: PublishedBy, capsys: pytest.CaptureFixture[str], file: str, content: Any, message: str
) -> None:
    if content is not None:
        (tmp_path / file).write_bytes(content)
    folder = publish("clai-m", 2, "features")[3] if file == "rows.csv" else publish("clai-m", 3, "images")[3]
    with pytest.raises(SystemExit, match="1"):
        main(["predict", str(folder), str(tmp_path / file)])
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("way", ["arguments", "folder"])
def test_one_bad_input_among_many_has_its_reason_in_its_row(
    tmp_path: Path, publish: PublishedBy, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    loaded, run, _, folder = publish("clai-m", 3, "images")
    x = np.asarray(run.data["x_test"])[:2]
    paths = [tmp_path / name for name in ("0.png", "deep/1.png", os.fsdecode(b"gr\xfcn.png"))]
    for name in ("deep", "__MACOSX", ".hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "no.png").write_bytes(b"")
    (tmp_path / "deep" / "no.png").rename(paths[1])
    Image.fromarray(x[0]).save(paths[0])
    Image.fromarray(x[1]).save(paths[2])
    (tmp_path / "notes.txt").touch()
    given = {"folder": [str(tmp_path)], "arguments": [str(path) for path in paths]}[way]
    assert main(["predict", str(folder / "model.json"), *given, "--json"]) == 1
    printed = capsys.readouterr()
    assert (": files left out: 1 (.txt)" in printed.err) == (way == "folder")
    rows = json.loads(printed.out)
    assert [row["input"] for row in rows] == [str(path) for path in paths]
    labels = loaded.predict(x)
    assert [row.get("label") for row in rows] == [labels[0], None, labels[1]]
    assert "found an empty file" in rows[1]["error"]


def test_what_is_no_file_or_too_large_costs_a_message_and_nothing_printed_is_more_than_text(
    tmp_path: Path, publish: PublishedBy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images, features = publish("clai-m", 3, "images")[3], publish("clai-m", 2, "features")[3]
    picture = Image.fromarray(np.zeros((*clailearn.load(images).inputs.shape[:2], 3), np.uint8))
    picture.save(tmp_path / "a.png: b (1.000)\nc\x1b[2J.png")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "device.png").symlink_to("/dev/zero")
    (tmp_path / "none.png").symlink_to("/none")
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(2**28 + 1)
    (tmp_path / "x\x1b[1m").touch()
    assert main(["predict", str(images), str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 5
    assert r"a.png: b (1.000)\nc\x1b[2J.png: " in printed.out
    assert printed.out.count("found a folder, a pipe or a device") == 2
    assert "found 268,435,457 bytes" in printed.out
    assert "\x1b" not in printed.out + printed.err
    with gzip.open(tmp_path / "line.csv.gz", "wb") as packed:
        packed.write(b"1" * (2**24 + 1))
    with gzip.open(tmp_path / "rows.csv.gz", "wb") as packed:
        packed.write(b"red,green,blue\n" + b"\n" * 2**20)
    monkeypatch.setattr("clailearn.limits.LARGEST_UNPACKED", 2**20)
    for name, message in (("line", "a line of more than 16,777,216"), ("rows", "unpacks to 1,048,577 bytes or more")):
        with pytest.raises(SystemExit):
            main(["predict", str(features), str(tmp_path / f"{name}.csv.gz")])
        assert message in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(SystemExit):
        main(["predict", str(features), str(tmp_path / "pipe.csv")])


def test_one_bad_row_of_a_table_has_its_reason_in_its_row(
    tmp_path: Path, publish: PublishedBy, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("red,green,blue\nTrue,2,3\n1,2,x\n1,2\n3,2,1\n3,-3.4028234e38,1\n\n")
    folder, paths = publish("clai-m", 2, "features")[3], (tmp_path / "rows.csv", tmp_path / "none.csv")
    assert main(["predict", str(folder), *map(str, paths)]) == 1
    said = capsys.readouterr().out
    places = [line.removeprefix(str(tmp_path)).split(": ")[:2] for line in said.splitlines()]
    assert [place for place, _ in places] == [*(f"/rows.csv:{line}" for line in range(2, 7)), "/none.csv"]
    assert [text[:8] for _, text in places[1:3]] == ["column '", "found 2 "]
    assert "column 'green': found -3.40282e+38, which is too far" in said
