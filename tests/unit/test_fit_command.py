"""`clailearn fit` makes a model of pictures or a table that `clailearn predict` takes, or says what it found instead."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.metrics import log_loss
from torch import nn

import clailearn
from clailearn import CLaIClassifier, fit_command
from clailearn.cli import main


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_command, "STEPS", 1)


def draw(file: Path, bright: str, size: tuple[int, int]) -> None:
    """A picture whose left or upper half is bright."""
    width, height = size
    pixels = np.random.default_rng(len(file.name)).integers(0, 90, (height, width, 3), dtype=np.uint8)
    pixels[(slice(height // 2), slice(None)) if bright == "top" else (slice(height // 2, None), slice(None))] += 120
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for n in range(15):
        draw(tmp_path / "pictures" / "top" / f"{n}.{'png' if n % 2 else 'JPG'}", "top", (12 + n, 40 - n))
        draw(tmp_path / "pictures" / "bottom" / f"{n}.bmp", "bottom", (20, 12 + n))
    return tmp_path / "pictures"


def table(rows: int = 60) -> pd.DataFrame:
    rng, y = np.random.default_rng(0), np.arange(rows) % 3
    frame = pd.DataFrame({"a": y + rng.normal(0, 0.2, rows), "b": 1e6 * rng.normal(0, 1, rows), "c": 7.0})
    return frame.assign(kind=np.array(["x", "y", "z"])[y], patient=np.arange(rows) // 6)


def test_pictures_of_any_size_become_a_model_and_the_last_line_predicts_one(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "notes.txt").touch()
    assert main(["fit", str(pictures), "--out", str(tmp_path / "model"), "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert "30 samples of 2 classes; each scaled to cover 28 x 28 pixels" in printed.err
    assert "6 held out by seed 3, 24 to train on" in printed.err
    assert "left out, as no pictures of a class: 1" in printed.err
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    held_out = record["held_out"]
    assert f"6 samples held out: accuracy {held_out['accuracy']:.1%}, log loss" in printed.out
    assert "the most frequent class for all: accuracy 50.0%" in printed.out
    assert (held_out["accuracy_of_majority"], held_out["accuracy"] >= 0.5) == (0.5, True)
    command = shlex.split(printed.out.splitlines()[-1])
    assert main(command[1:]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(str(pictures))
    assert Path(command[3]).exists()
    assert str(pictures) in lines[1]  # a reference by its file
    assert command[3] not in record["reference_files"]  # it was held out


def test_pictures_of_one_size_keep_it_and_are_embedded_as_in_training(pictures: Path, tmp_path: Path) -> None:
    for file in pictures.glob("*/*"):
        Image.open(file).resize((16, 12)).save(file)
    assert main(["fit", str(pictures), "--out", str(tmp_path / "model")]) == 0
    model = clailearn.load(tmp_path / "model")
    assert model.inputs.shape == [12, 16, 3]
    x = np.stack([np.asarray(Image.open(file)) for file in model.references.files])
    np.testing.assert_allclose(model.outputs(x)[0], model.references.z, atol=1e-4)


def test_folders_in_a_class_are_groups_which_are_held_out_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patient with all visits is one; the command understands a tilde, which shells leave in `--out=~/model`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for n in range(40):
        kind = ("top", "bottom")[n % 2]
        draw(tmp_path / "pictures" / kind / f"patient{n // 4}" / f"visit{n % 4}" / f"{n}.png", kind, (14, 14))
    assert main(["fit", str(tmp_path / "pictures"), "--out=~/model"]) == 0
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    used = [Path(file).parent.parent.name for file in record["reference_files"]]
    assert len(used) == 32
    assert all(used.count(name) == 4 for name in used)
    for kind in ("top", "bottom"):  # pictures beside folders stand for themselves
        draw(tmp_path / "pictures" / kind / "alone.png", kind, (14, 14))
        draw(tmp_path / "pictures" / kind / "lonely.png", kind, (14, 14))
    groups = fit_command._pictures(tmp_path / "pictures", None).groups
    assert groups is not None
    assert len(set(groups)) == 10 + 4


def test_a_table_becomes_a_model_of_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_command, "STEPS", 30)
    path, out = tmp_path / "my table.csv.gz", tmp_path / "model"
    frame = table()
    frame.to_csv(path, index=False, encoding="utf-8-sig")
    assert main(["fit", str(path), "--out", str(out), "--label", "kind", "--group", "patient"]) == 0
    printed = capsys.readouterr()
    assert "3 classes; 3 columns of numbers: a, b, c" in printed.err
    assert "12 held out in 2 whole groups by seed 0" in printed.err
    assert "epoch 30 of 30" in printed.err
    assert main([*shlex.split(printed.out.splitlines()[-1])[1:], "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert np.mean([row["label"] == kind for row, kind in zip(rows, frame["kind"], strict=True)]) > 0.8
    assert rows[0]["votes"]["for"][0]["file"].startswith(f"{path}:")


def test_figures_are_of_the_rows_held_out_and_statistics_of_the_others(tmp_path: Path) -> None:
    frame = table().assign(kind=np.random.default_rng(0).permutation(["x", "y", "x"] * 20))  # nothing to learn
    frame.to_csv(tmp_path / "table.csv", index=False)
    arguments = f"fit {tmp_path}/table.csv --out {tmp_path}/model --label kind --group patient"
    assert main(arguments.split()) == 0
    model, record = clailearn.load(tmp_path / "model"), json.loads((tmp_path / "model" / "model.json").read_text())
    used = [int(file.rpartition(":")[2]) - 2 for file in record["reference_files"]]
    others = frame.drop(index=used)
    found, x = record["held_out"], others[["a", "b", "c"]].to_numpy()
    assert found["accuracy"] == pytest.approx((np.array(model.predict(x)) == others["kind"]).mean())
    assert found["log_loss"] == pytest.approx(log_loss(others["kind"], model.probabilities(x)), rel=1e-4)
    assert found["accuracy_of_majority"] == pytest.approx((others["kind"] == "x").mean())
    np.testing.assert_allclose(record["input"]["mean"], frame.loc[used, ["a", "b", "c"]].mean())


def test_seed_and_groups_of_the_command_reach_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Spied(CLaIClassifier):
        def fit(self, X: Any, y: Any, *, groups: Any = None) -> "Spied":
            given.append((self.random_state, groups.tolist()))
            return super().fit(X, y, groups=groups)

    monkeypatch.setattr(fit_command, "CLaIClassifier", Spied)
    frame = table()
    frame.to_csv(tmp_path / "table.csv", index=False)
    main(f"fit {tmp_path}/table.csv --out {tmp_path}/model --label kind --group patient --seed 5".split())
    ((seed, groups),) = given
    files = json.loads((tmp_path / "model" / "model.json").read_text())["reference_files"]
    used = frame["patient"].iloc[[int(file.rpartition(":")[2]) - 2 for file in files]]
    assert (seed, sorted(groups)) == (5, sorted(map(str, used)))


def test_a_class_with_too_few_samples_for_probabilities_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five of the six samples of z are of one patient, who is held out."""
    kind = np.where(np.isin(np.arange(60), [0, 1, 2, 3, 4, 6]), "z", ["x", "y"] * 30)
    table().assign(kind=kind).to_csv(tmp_path / "table.csv", index=False)
    with pytest.warns(UserWarning, match="class z has one sample"), pytest.raises(SystemExit, match="1"):
        main(f"fit {tmp_path}/table.csv --out {tmp_path}/model --label kind --group patient".split())
    assert "class z: found 1 samples to train on, expected more" in capsys.readouterr().err
    assert not list((tmp_path / "model").iterdir())


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, [], "expected --label"), ({}, ["--label", "kind", "--size", "20"], "--size 20"),
        ({}, ["--label", "sort"], "found no columns 'sort', expected one among a, b, c, kind, patient"),
        ({}, ["--label", "kind", "--group", "kind"], "expected kind and kind"),
        ({"": 1}, ["--label", "kind"], "others with a name for the numbers"),
        ({"Unnamed: 0": 1}, ["--label", "kind"], "found Unnamed: 0, an index or identifier"),
        ({"b": range(60)}, ["--label", "kind"], "found b, an index or identifier"),
        ({"b": "much"}, ["--label", "kind"], "table.csv:2: column 'b': found 'much', expected a finite number"),
        ({"kind": ""}, ["--label", "kind"], "table.csv:2: column 'kind': found nothing"),
        ({"kind": "x"}, ["--label", "kind"], "found 1 classes"), ({"kind": 1}, ["--label", "b"], "60 classes, 1 samples"),
        ({"patient": 1}, ["--label", "kind", "--group", "patient"], ", 1 groups; expected"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_serve_is_refused_by_row_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], arguments: list[str], message: str
) -> None:
    table().assign(**change).to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(SystemExit, match="1"):
        main(["fit", str(tmp_path / "table.csv"), "--out", str(tmp_path / "model"), *arguments])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table().to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "notes").touch()
    with pytest.raises(SystemExit, match="1"):
        main(f"fit {tmp_path}/table.csv --out {tmp_path}/notes/model --label kind --group patient".split())
    assert "error: [Errno 20] Not a directory: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rename", "arguments", "message"),
    [
        (None, ["--label", "kind"], "--label kind"), (None, ["--size", "8"], "expected --label"),
        ({"top": "train", "bottom": "test"}, [], "folders of splits, ['test', 'train']"),
        ({"top": "a/b", "bottom": "a/c"}, [], "found 1 classes, 30 samples of 'a'"), ({"top": "../other"}, [], "found 1 classes"),
        ("damaged", [], "0.bmp: cannot be decoded as an image"), ("out", [], "expected a new folder as --out"),
    ],
)  # fmt: skip
def test_a_folder_that_does_not_serve_is_refused(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rename: Any, arguments: list[str], message: str
) -> None:
    for old, new in (rename if isinstance(rename, dict) else {}).items():
        (pictures / new).parent.mkdir(exist_ok=True)
        (pictures / old).rename(pictures / new)
    if rename == "damaged":
        (pictures / "bottom" / "0.bmp").write_bytes(b"no picture")
    out = pictures / "model" if rename == "out" else tmp_path / "model"
    with pytest.raises(SystemExit, match="1"):
        main(["fit", str(pictures), "--out", str(out), *arguments])
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_pictures_are_mirrored_in_training_alone() -> None:
    trunk = fit_command.PictureTrunk(Plain(), torch.zeros(1), torch.ones(1), shift=0.0)
    x = torch.arange(8.0).expand(64, 8, 8)[..., None]
    torch.manual_seed(0)
    assert {tuple(row) for row in trunk(x)[:, 0, 0].tolist()} == {tuple(range(8)), tuple(range(7, -1, -1))}
    assert torch.equal(trunk.eval()(x), x.permute(0, 3, 1, 2))


class Plain(nn.Identity):
    features = 1
