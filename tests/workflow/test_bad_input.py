"""Bad input is refused with a message that names it and says what to do, and leaves nothing half-written."""

from pathlib import Path

import pytest
import yaml
from PIL import Image

from replication.datasets.miniature.make import make
from support.copies import Tree, copy_of_repository


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return copy_of_repository(tmp_path_factory.mktemp("bad") / "copy")


def refusal(tree: Tree, dataset: str, settings: dict[str, object]) -> str:
    """What is said when preparing a dataset of the full run fails; nothing may be left of it."""
    local = tree.path / "local.yaml"
    local.write_text(yaml.safe_dump({"run": [dataset], "data_dir": "downloads", **settings}))
    target = f"results/real/{dataset}/prepared/dataset.json"
    run = tree.snakemake(target, "--configfile", "local.yaml", "--config", "evidence=real")
    local.unlink()
    assert run.returncode != 0, run.stdout
    folder = tree.path / "results" / "real" / dataset
    assert {path.name for path in folder.rglob("*")} <= {"raw.json", "download_resources.json"}
    assert not list((tree.path / "downloads").rglob("*.*"))
    assert "Traceback" not in run.stdout.split("error:")[-1]
    return run.stdout


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("seeds=many", "many"),
        ("datasets={cifar10: {image_sise: 32}}", "image_sise"),
        ("datasets={challenge2019-septic: {path: mine}}", "Set datasets.challenge2019.path instead"),
    ],
)
def test_setting_that_does_not_exist_or_has_the_wrong_type(tree: Tree, setting: str, named: str) -> None:
    run = tree.snakemake("--dry-run", "all", "--config", setting)
    assert run.returncode != 0
    assert named in run.stdout


def test_image_folder_that_is_not_there(tree: Tree) -> None:
    said = refusal(tree, "cifar10", {"datasets": {"cifar10": {"source": "image_folder", "path": "nowhere/images"}}})
    assert "datasets.cifar10.path: nowhere/images does not exist" in said


def test_image_of_another_size(tree: Tree, tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            for number in range(30):
                side = 16 if (split, name, number) == ("test", "dog", 2) else 32
                Image.new("RGB", (side, side)).save(folder / f"{number}.png")
    said = refusal(tree, "cifar10", {"datasets": {"cifar10": {"source": "image_folder", "path": str(tmp_path)}}})
    assert "test/dog/2.png: found an image of 16 x 16 pixels, expected 32 x 32" in said
    assert "image_size" in said


def test_archive_with_other_pickles_than_the_official_ones(tree: Tree, tmp_path: Path) -> None:
    make("cifar10", tmp_path, 1)
    (archive,) = tmp_path.glob("*.tar.gz")
    said = refusal(tree, "cifar10", {"datasets": {"cifar10": {"path": str(archive)}}})
    assert "datasets.cifar10.path" in said
    assert "not the official one of its name" in said


def test_recording_that_ends_too_early(tree: Tree, tmp_path: Path) -> None:
    make("sleepedf", tmp_path, 1)
    recording = sorted(tmp_path.glob("*-PSG.edf"))[2]
    recording.write_bytes(recording.read_bytes()[:-50_000])
    said = refusal(tree, "sleepedf", {"datasets": {"sleepedf": {"path": str(tmp_path)}}})
    assert f"{recording}: cannot be read as EDF (Number of records from the header does not match the file size" in said
    assert "Correct the entry or replace the file" in said
