"""Image sources: official archives are read safely, wrong files are named, splits hold what they should."""

import hashlib
import io
import json
import os
import pickle
import resource
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from medmnist import INFO
from PIL import Image

from clai.errors import InputError
from replication.datasets import cifar10, image_folder, jpeg_copy, medmnist, prepared
from replication.datasets.fetch import Raw, obtain
from replication.datasets.miniature.cifar10 import python2_pickle
from replication.datasets.miniature.make import GENERATORS, make
from replication.datasets.prepare import prepare
from replication.datasets.prepared import load, statistics, writing
from replication.datasets.sources import COLUMNS
from replication.datasets.splits import stratified_validation
from support.loopback import ONCE, entry, serving

MEDMNIST: dict[str, Any] = {"title": "PathMNIST", "medmnist_flag": "pathmnist", "medmnist_size": 28}
OPTIONS = {"title": "CIFAR-10", "image_size": 32, "validation_share": 0.25}


def raw(path: Path, source: str, miniature: bool = False) -> Raw:
    return Raw("cifar10", source, "1", path, (), "licence", "open", miniature)


# The prepared form


def describe(writer: Any, **changes: Any) -> None:
    description = {"kind": "images", "classes": ["a", "b"], "channels": ["red"], "dataset": "toy"} | changes
    writer.describe(description)


def write_toy(folder: Path, offset: int = 0, spread: int = 9) -> None:
    rng = np.random.default_rng(0)
    with writing(folder) as writer:
        for split, n in (("train", 6), ("val", 2), ("test", 4)):
            level = {"train": 50, "val": 200, "test": 100}[split] + offset
            writer.array(f"x_{split}", (level + rng.integers(0, spread, (n, 2, 2, 1))).astype(np.uint8))
            writer.array(f"y_{split}", np.arange(n) % 2)
        describe(writer)


def test_what_is_written_is_what_is_loaded(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    data = load(tmp_path / "prepared")
    assert data["x_train"].shape == (6, 2, 2, 1)
    assert isinstance(data["x_train"], np.memmap)
    assert data.info["splits"]["train"] == {"n": 6, "counts": [3, 3]}
    assert data.info["arrays"]["y_test"].items() >= {"shape": [4], "dtype": "int64"}.items()


def test_normalisation_of_training_comes_from_training_data_alone(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    data = load(tmp_path / "prepared")
    for split in ("train", "test"):
        x = np.asarray(data[f"x_{split}"], dtype=float)
        assert data.info["normalisation"][split]["mean"] == pytest.approx([x.mean()])
        assert data.info["normalisation"][split]["sd"] == pytest.approx([x.std()])


def test_a_failed_preparation_leaves_the_earlier_one_untouched(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    before = np.asarray(load(tmp_path / "prepared")["x_train"]).copy()
    with pytest.raises(InputError, match="same value"):
        write_toy(tmp_path / "prepared", offset=20, spread=1)
    np.testing.assert_array_equal(load(tmp_path / "prepared")["x_train"], before)
    assert [p.name for p in tmp_path.iterdir()] == ["prepared"]


def test_a_disk_that_fills_up_leaves_no_half_of_a_dataset(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(InputError, match="make room and run again"):
            write_toy(tmp_path / "prepared")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_an_array_with_columns_one_after_another_is_written_row_by_row(tmp_path: Path) -> None:
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(6, 2))
    prepared.Writer(tmp_path).array("x", x)
    np.testing.assert_array_equal(prepared.Slices(tmp_path / "x.npy")[1:3], x[1:3])
    np.save(tmp_path / "y.npy", x)
    with pytest.raises(ValueError, match=r"y\.npy: found columns one after another, expected rows"):
        prepared.Slices(tmp_path / "y.npy")


def test_a_streamed_array_is_as_the_whole_one_and_must_be_complete(tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
    writer = prepared.Writer(tmp_path)
    with writer.stream("a", x.shape, np.float32) as append:
        append(x[:4])
        append(x[4:])
    writer.array("b", x)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    assert writer.written["a"] == writer.written["b"]
    np.testing.assert_array_equal(prepared.Slices(tmp_path / "a.npy")[3:5], x[3:5])
    with (
        pytest.raises(RuntimeError, match="4 rows were written, 6 announced"),
        writer.stream("c", x.shape, "f4") as append,
    ):
        append(x[:4])


def test_preparing_again_replaces_everything(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    (tmp_path / "prepared" / "stale.npy").touch()
    write_toy(tmp_path / "prepared", offset=10)
    assert not (tmp_path / "prepared" / "stale.npy").exists()


def test_an_array_that_does_not_match_its_description_is_refused(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    np.save(tmp_path / "prepared" / "y_test.npy", np.zeros(3, dtype=np.int64))
    with pytest.raises(InputError, match=r"y_test\.npy: found int64 \[3\], expected int64 \[4\]"):
        load(tmp_path / "prepared")


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    write_toy(tmp_path / "prepared")
    np.save(tmp_path / "prepared" / "y_test.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"y_test\.npy"):
        load(tmp_path / "prepared")


def test_a_channel_that_never_varies_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x_train: 'red' has the same value"):
        write_toy(tmp_path / "prepared", spread=1)


def test_streamed_statistics_equal_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.datasets.prepared._CHUNK_VALUES", 7)
    rng = np.random.default_rng(0)
    x = rng.normal(1000, 3, (50, 4))
    x[rng.random(x.shape) < 0.3] = np.nan
    rows = rng.random(50) < 0.7
    mean, sd = statistics(x, -1, rows)
    np.testing.assert_allclose(mean, np.nanmean(x[rows], axis=0), rtol=1e-12)
    np.testing.assert_allclose(sd, np.nanstd(x[rows], axis=0), rtol=1e-9)


def test_a_holdout_takes_the_same_share_of_every_class() -> None:
    y = np.repeat([0, 1, 2], [40, 80, 120])
    training, validation = stratified_validation(y, 0.25, seed=3)
    assert list(np.bincount(y[validation])) == [10, 20, 30]
    np.testing.assert_array_equal(np.sort(np.concatenate([training, validation])), np.arange(240))


# The official CIFAR-10 archive


def test_miniature_archive_is_read_as_written(tmp_path: Path) -> None:
    table = make("cifar10", tmp_path / "raw", 5)
    source = obtain("cifar10", entry("cifar10"), table, tmp_path / "raw", None, ONCE, True)
    prepare(source, tmp_path / "prepared", OPTIONS, 0)
    data = load(tmp_path / "prepared")
    assert data.info["title"] == "CIFAR-10 (miniature synthetic)"
    assert data.info["classes"][:3] == ["airplane", "automobile", "bird"]
    assert {s: v["n"] for s, v in data.info["splits"].items()} == {"train": 450, "val": 150, "test": 200}
    assert set(data.info["splits"]["val"]["counts"]) == {15}


def test_the_three_planes_of_a_row_become_the_channels_of_an_image() -> None:
    planes = np.stack([np.full((32, 32), level, dtype=np.uint8) for level in (1, 2, 3)])
    planes[0, 5, 7] = 99
    x, y = cifar10.images({"data": planes.reshape(1, -1), "labels": [4]}, "batch")
    assert list(x[0, 5, 7]) == [99, 2, 3]
    assert list(y) == [4]


class Payload:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch payload_ran",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_with_a_payload_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"data_batch_1: the pickle asks for \w+\.system"):
        cifar10.unpickle(pickle.dumps({"data": Payload()}, protocol), "data_batch_1")
    assert not (tmp_path / "payload_ran").exists()


def test_pickles_with_any_bytes_changed_are_read_or_refused_and_harm_nothing() -> None:
    """Among them states of numpy's own types that numpy itself would believe."""
    rng = np.random.default_rng(0)
    whole = {"data": np.arange(2 * 3072).reshape(2, -1).astype(np.uint8), "labels": [1, 2]}
    batch = python2_pickle(whole)
    np.testing.assert_array_equal(cifar10.unpickle(batch, "b")["data"], whole["data"])
    refused = 0
    for _ in range(1500):
        changed = bytearray(batch)
        for _ in range(2):
            at = int(rng.integers(250)) if rng.random() < 0.5 else len(changed) - 1 - int(rng.integers(60))
            changed[at] = int(rng.integers(256))
        try:
            x, y = cifar10.images(cifar10.unpickle(bytes(changed), "b"), "b")
        except InputError:
            refused += 1
        else:
            assert (x.shape, y.shape) == ((2, 32, 32, 3), (2,))
    assert 0 < refused < 1500
    assert np.dtype("u1") == np.uint8
    assert np.zeros(3, np.uint8).sum() == 0


def test_a_pickle_that_asks_for_endless_memory_gets_none() -> None:
    tracemalloc.start()
    bomb = pickle.PROTO + b"\x02" + pickle.EMPTY_DICT + pickle.LONG_BINPUT + b"\xff\xff\xff\x7f" + pickle.STOP
    assert cifar10.unpickle(bomb, "b") == {}
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def write_tar(path: Path, name: str, kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/passwd", 2 if kind == tarfile.REGTYPE else 0
        archive.addfile(member, io.BytesIO(b"no"))
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../data_batch_1", tarfile.REGTYPE),
        ("/data_batch_1", tarfile.REGTYPE),
        ("cifar-10-batches-py/data_batch_1", tarfile.SYMTYPE),
    ],
)
def test_an_archive_that_reaches_outside_itself_is_refused(tmp_path: Path, name: str, kind: bytes) -> None:
    with pytest.raises(InputError, match="points outside the archive"):
        cifar10.read_members(write_tar(tmp_path / "cifar-10-python.tar.gz", name, kind))


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    make("cifar10", tmp_path, 5)
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"cifar-10-python\.tar\.gz: cannot be read"):
        cifar10.read_members(path)


# Folders and zips of images


def image_bytes(level: int, size: tuple[int, int] = (32, 32), kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(level).integers(0, 255, (size[1], size[0], 3)).astype(np.uint8)
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def write_folder(folder: Path, suffix: str = "png") -> Path:
    for split, n in (("train", 8), ("test", 2)):
        for k, name in enumerate(("cat", "airplane")):
            (folder / split / name).mkdir(parents=True)
            for i in range(n):
                (folder / split / name / f"{i:04d}.{suffix}").write_bytes(image_bytes(100 * k + 10 * n + i))
    return folder


def test_a_folder_and_a_zip_of_it_give_the_same_arrays(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for path in folder.rglob("*.png"):
            archive.write(path, f"top/{path.relative_to(folder)}")
    image_folder.prepare(raw(folder, "image_folder"), tmp_path / "a", OPTIONS, 0)
    image_folder.prepare(raw(tmp_path / "images.zip", "image_folder"), tmp_path / "b", OPTIONS, 0)
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    assert a.info["classes"] == ["airplane", "cat"]
    assert a.info["title"] == "CIFAR-10 (PNG copy)"
    assert a.info["splits"]["val"]["counts"] == [2, 2]
    for name in a.arrays:
        np.testing.assert_array_equal(a[name], b[name])
    first = np.asarray(Image.open(folder / "test" / "airplane" / "0000.png"))
    np.testing.assert_array_equal(a["x_test"][0], first)


def test_an_image_of_the_wrong_size_is_named_with_both_sizes(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "test" / "cat" / "0001.png").write_bytes(image_bytes(1, (28, 30)))
    with pytest.raises(InputError, match=r"test/cat/0001\.png: found an image of 28 x 30 pixels, expected 32 x 32"):
        image_folder.prepare(raw(folder, "image_folder"), tmp_path / "out", OPTIONS, 0)
    assert not (tmp_path / "out").exists()


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "test" / "cat" / "0001.png").write_bytes(image_bytes(1)[:500])
    with pytest.raises(InputError, match=r"test/cat/0001\.png: cannot be decoded"):
        image_folder.prepare(raw(folder, "image_folder"), tmp_path / "out", OPTIONS, 0)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/cat/1.png"], "found no image under test/<class>/"),
        (["train/cat/1.png", "test/dog/1.png"], "classes cat, dog are in one of train/ and test/ only"),
    ],
)
def test_a_layout_without_both_splits_of_every_class_is_refused(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        image_folder.index(names, Path("images.zip"))


# MedMNIST


def test_medmnist_keeps_the_official_splits(tmp_path: Path) -> None:
    make("pathmnist", tmp_path, 5)
    medmnist.prepare(
        raw(tmp_path / "pathmnist.npz", "medmnist", True),
        tmp_path / "prepared",
        MEDMNIST,
        0,
    )
    data = load(tmp_path / "prepared")
    assert len(data.info["classes"]) == 9
    assert data.info["classes"][0] == "adipose"
    with np.load(tmp_path / "pathmnist.npz") as archive:
        np.testing.assert_array_equal(data["x_val"], archive["val_images"])
        np.testing.assert_array_equal(data["y_test"], archive["test_labels"][:, 0])


def test_a_pickled_npz_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", train_images=np.array([Payload()], dtype=object), train_labels=np.zeros((1, 1)))
    with pytest.raises(InputError, match=r"p\.npz: train_images holds Python objects .* nothing of it was read"):
        medmnist.prepare(raw(tmp_path / "p.npz", "medmnist"), tmp_path / "out", MEDMNIST, 0)


def write_npz(path: Path, flag: str, size: int, **changes: Any) -> Path:
    """A small set in the layout of MedMNIST: 9, 6 and 6 images."""
    info = INFO[flag]
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", 9), ("val", 6), ("test", 6)):
        shape = (n, size, size, 3)[: 3 if info["n_channels"] == 1 else 4]
        arrays[f"{split}_images"] = rng.integers(0, 255, shape).astype(np.uint8)
        arrays[f"{split}_labels"] = (np.arange(n) % len(info["label"])).astype(np.uint8)[:, None]
    np.savez_compressed(path, **arrays | changes)
    return path


TWO_DIMENSIONAL = [name for name, info in INFO.items() if "3d" not in name and "multi-label" not in info["task"]]


@pytest.mark.parametrize("flag", TWO_DIMENSIONAL)
def test_any_flat_set_of_medmnist_is_a_matter_of_configuration(tmp_path: Path, flag: str) -> None:
    settings = MEDMNIST | {"medmnist_flag": flag}
    medmnist.prepare(raw(write_npz(tmp_path / "x.npz", flag, 28), "medmnist"), tmp_path / "p", settings, 0)
    data = load(tmp_path / "p")
    assert data["x_train"].shape == (9, 28, 28, INFO[flag]["n_channels"])
    assert data.info["classes"] == list(INFO[flag]["label"].values())


@pytest.mark.parametrize("size", [28, 64, 128, 224])
def test_every_size_is_fetched_under_its_own_name_and_prepared(tmp_path: Path, size: int) -> None:
    settings = entry("medmnist", medmnist_flag="bloodmnist", medmnist_size=size, title="Blood")
    name = medmnist.file_name(settings)
    (row,) = medmnist.choose(medmnist.catalogued(settings), settings)
    suffix = "" if size == 28 else f"_{size}"
    assert (row.file, row.checksum) == (name, "md5:" + INFO["bloodmnist"][f"MD5{suffix}"])
    assert row.urls == (INFO["bloodmnist"][f"url{suffix}"],)
    assert row.licence == "CC-BY-4.0"
    with serving() as server:
        content = write_npz(tmp_path / "x.npz", "bloodmnist", size).read_bytes()
        server.files[name] = content
        table = tmp_path / "sources.csv"
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        table.write_text(f"{','.join(COLUMNS)}\nblood,1,{name},{server.url(name)},,,{digest},CC-BY-4.0,open\n")
        source = obtain("blood", settings, table, tmp_path / "raw", None, ONCE, False)
    prepare(source, tmp_path / "p", settings, 0)
    assert load(tmp_path / "p")["x_test"].shape == (6, size, size, 3)


def test_a_set_that_is_not_flat_or_not_there_is_refused() -> None:
    for flag in ("organmnist3d", "chestmnist", "pathminst"):
        with pytest.raises(InputError, match=f"medmnist_flag: found '{flag}', expected one of pathmnist"):
            medmnist.catalogue({"medmnist_flag": flag})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((9, 64, 64, 3), np.uint8)}, r"is uint8 \(9, 64, 64, 3\), expected uint8 \(N, 28, 28, 3\)"),
        ({"train_images": np.zeros((9, 28, 28, 3))}, "train_images is float64"),
        ({"train_images": np.zeros((10**5, 28, 28, 3), np.uint8)}, "announces 100000 images, expected at most 89996"),
        ({"test_labels": np.full((6, 1), 9, np.uint8)}, r"test_labels has labels outside 0\.\.8"),
        ({"val_labels": np.zeros((5, 1), np.uint8)}, r"val_labels is uint8 \(5, 1\), expected whole numbers \(6, 1\)"),
        ({"val_labels": np.array([[Payload()]] * 6, dtype=object)}, "val_labels holds Python objects"),
        ({"val_labels": np.asfortranarray(np.zeros((6, 2)))}, "val_labels holds Python objects or is in Fortran order"),
    ],
)  # fmt: skip
def test_arrays_that_are_not_images_and_labels_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_npz(tmp_path / "x.npz", "pathmnist", 28, **changes)
    with pytest.raises(InputError, match=message):
        medmnist.prepare(raw(path, "medmnist"), tmp_path / "out", MEDMNIST, 0)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "payload_ran").exists()


def test_an_array_that_announces_more_than_follows_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (80_000, 28, 28, 3)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("train_images.npy", header.getvalue() + b"short")
    with pytest.raises(InputError, match=r"announces uint8 \(80000, 28, 28, 3\), which is not what follows"):
        medmnist.prepare(raw(tmp_path / "x.npz", "medmnist"), tmp_path / "out", MEDMNIST, 0)


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", "pathmnist", 28)
    content = bytearray(path.read_bytes())
    content[2000:2100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npz: train_images cannot be read"):
        medmnist.prepare(raw(path, "medmnist"), tmp_path / "out", MEDMNIST, 0)


# Hostile archives


def zip_with(path: Path, name: str, content: bytes = b"x", link: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        if link:
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


@pytest.mark.parametrize("name", ["../train/cat/1.png", "/train/cat/1.png", "..\\train\\cat\\1.png"])
@pytest.mark.parametrize("source", ["image_folder", "challenge2019", "medmnist"])
def test_a_zip_that_reaches_outside_itself_is_refused_whatever_reads_it(tmp_path: Path, name: str, source: str) -> None:
    path = zip_with(tmp_path / "data.zip", name)
    settings = (
        OPTIONS | MEDMNIST | {"cohort": "all", "folds": 2, "development_share": None, "variables": {"HR": [20, 300]}}
    )
    with pytest.raises(InputError, match="is a link or points outside the archive"):
        prepare(raw(path, source), tmp_path / "out" / "prepared", settings, 0)
    assert {p.name for p in tmp_path.rglob("*")} <= {"data.zip", "out"}


def test_a_zip_with_a_link_a_second_copy_or_a_bomb_is_refused(tmp_path: Path) -> None:
    paths = [
        zip_with(tmp_path / "link.zip", "train/cat/1.png", b"/etc/passwd", link=True),
        zip_with(tmp_path / "bomb.zip", "train/cat/1.png", bytes(2**25)),
        tmp_path / "twice.zip",
    ]
    with zipfile.ZipFile(paths[2], "w") as archive:
        archive.writestr("train/cat/1.png", b"a")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("train/cat/1.png", b"b")
    for path, message in zip(paths, ["is a link", "unpacks to 33554432 bytes", "is there twice"], strict=True):
        with pytest.raises(InputError, match=message):
            image_folder.prepare(raw(path, "image_folder"), tmp_path / "out", OPTIONS, 0)


def test_an_image_that_would_unfold_to_gigabytes_is_refused_by_its_header(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images")
    bomb = bytearray(image_bytes(1))
    bomb[16:24] = struct.pack(">II", 30_000, 30_000)
    bomb[29:33] = struct.pack(">I", zlib.crc32(bomb[12:29]))
    (folder / "test" / "cat" / "0001.png").write_bytes(bomb)
    with pytest.raises(InputError, match=r"0001\.png: (found an image of 30000 x 30000|cannot be decoded)"):
        image_folder.prepare(raw(folder, "image_folder"), tmp_path / "out", OPTIONS, 0)


@pytest.mark.parametrize("kind", ["member", "header"])
def test_a_tarball_that_unpacks_to_more_than_the_official_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(cifar10, "LARGEST_ARCHIVE", 2**20)
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        if kind == "member":
            member.size = 2**24
        else:
            member.pax_headers = {"comment": "0" * 2**24}
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 1048576 bytes"):
        cifar10.read_members(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23, "refused while reading, not after"


def test_an_archive_that_changed_after_it_was_fetched_is_not_unpickled(tmp_path: Path) -> None:
    table = make("cifar10", tmp_path / "raw", 5)
    source = obtain("cifar10", entry("cifar10"), table, tmp_path / "raw", None, ONCE, True)
    make("cifar10", tmp_path / "raw", 6)
    with pytest.raises(InputError, match=r"has checksum sha256:\w+, but sha256:\w+ when it was fetched"):
        prepare(source, tmp_path / "p", OPTIONS, 0)


# Miniature data


@pytest.mark.parametrize("dataset", list(GENERATORS))
def test_miniature_bytes_depend_on_the_seed_alone(tmp_path: Path, dataset: str) -> None:
    tables = [make(dataset, tmp_path / str(n), seed).read_bytes() for n, seed in enumerate((1, 1, 2))]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


# The JPEG copy


def jpeg_table(folder: Path, address: str, checksum: str) -> Path:
    table = folder / "data_sources.csv"
    name = "CIFAR-10-images-d7d0.zip"
    table.write_text(f"{','.join(COLUMNS)}\ncifar10,JPEG copy,{name},{address}/{name},,,{checksum},not stated,open\n")
    return table


def packed(folder: Path, archive: Path, above: str) -> Path:
    with zipfile.ZipFile(archive, "w") as pack:
        pack.writestr(f"{above}README.md", above)
        for path in sorted(folder.rglob("*.jpg")):
            pack.write(path, f"{above}{path.relative_to(folder).as_posix()}")
    return archive


def test_the_jpeg_copy_is_known_by_its_images_however_they_are_packed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images", "jpg")
    lines = [
        f"{path.relative_to(folder).as_posix()} sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted(folder.rglob("*.jpg"))
    ]
    checksum = "sha256-tree:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
    own = packed(folder, tmp_path / "own.zip", "")
    with serving() as server:
        server.files["CIFAR-10-images-d7d0.zip"] = packed(folder, tmp_path / "served.zip", "top/").read_bytes()
        table = jpeg_table(tmp_path, server.address, checksum)
        prepared_forms = []
        for number, path in enumerate((None, own, folder)):
            settings = entry("jpeg_copy", path=path and str(path))
            got = obtain("cifar10", settings, table, tmp_path / "raw", None, ONCE, False)
            prepare(got, tmp_path / str(number), OPTIONS, 0)
            prepared_forms.append(load(tmp_path / str(number)).info)
    for info in prepared_forms:
        assert (info["title"], info["version"]) == ("CIFAR-10 (JPEG copy)", "JPEG copy")
        assert info["arrays"] == prepared_forms[0]["arrays"]
        assert info["config"] == "datasets={cifar10: {source: jpeg_copy}}"

    (folder / "test" / "cat" / "0001.jpg").write_bytes(image_bytes(1))
    for path in (folder, packed(folder, tmp_path / "changed.zip", "")):
        with pytest.raises(InputError, match=rf"cifar10: .* holds other files than JPEG copy: .*expected {checksum}"):
            obtain("cifar10", entry("jpeg_copy", path=str(path)), table, tmp_path / "raw", None, ONCE, False)


def test_pixels_of_another_decoder_are_a_warning_and_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "images", "jpg")
    jpeg_copy.prepare(raw(folder, "jpeg_copy"), tmp_path / "a", OPTIONS, 0)
    decoder = load(tmp_path / "a").info["decoder"]
    assert decoder["as_published"] is False
    assert decoder["library"].startswith("Pillow ")
    assert f"decodes other pixels than the published evidence was made of ({decoder['pixels']}" in caplog.text

    caplog.clear()
    monkeypatch.setattr(jpeg_copy, "PIXELS", decoder["pixels"])
    jpeg_copy.prepare(raw(folder, "jpeg_copy"), tmp_path / "b", OPTIONS | {"validation_share": 0.5}, 7)
    assert load(tmp_path / "b").info["decoder"]["as_published"] is True, "the checksum does not depend on the split"
    assert not caplog.text


def test_the_real_jpeg_copy_gives_the_published_arrays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = os.environ.get("CLAI_CIFAR10_IMAGES")
    if path is None:
        pytest.skip("set CLAI_CIFAR10_IMAGES to the zip or folder of CIFAR-10 images")
    repository = Path(__file__).parents[2]
    table = repository / "workflow" / "config" / "data_sources.csv"
    got = obtain("cifar10", entry("jpeg_copy", path=path), table, tmp_path, None, ONCE, False)
    prepare(got, tmp_path / "prepared", OPTIONS | {"validation_share": 0.05}, 0)
    info = json.loads((tmp_path / "prepared" / "dataset.json").read_text())
    published = json.loads((repository / "results/published/cifar10/evidence/dataset.json").read_text())
    assert (info["title"], info["classes"]) == (published["title"], published["classes"])
    assert info["splits"]["test"]["counts"] == [1000] * 10
    if info["decoder"]["as_published"]:
        assert info["arrays"] == published["arrays"]
    else:
        assert "decodes other pixels" in caplog.text


def test_the_real_pathmnist_is_recognised_whatever_its_name(tmp_path: Path) -> None:
    path = os.environ.get("CLAI_PATHMNIST")
    if path is None:
        pytest.skip("set CLAI_PATHMNIST to the official pathmnist.npz")
    (tmp_path / "tiles.npz").symlink_to(Path(path).resolve())
    table = Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv"
    got = obtain("pathmnist", entry("medmnist", path=str(tmp_path / "tiles.npz")), table, tmp_path, None, ONCE, False)
    assert (got.version, got.licence) == ("MedMNIST v2 (Zenodo 10519652)", "CC-BY-4.0")
