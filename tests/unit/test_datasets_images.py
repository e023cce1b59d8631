"""Sources of images: official files are verified before they are read, wrong files are named, splits hold what they
should."""

import hashlib
import io
import os
import pickle
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from medmnist import INFO
from PIL import Image

from clailearn.errors import InputError
from clailearn.pictures import read_picture
from replication.datasets import images, prepared
from replication.datasets.miniature import make
from replication.datasets.prepared import load
from replication.datasets.sources import Raw, Row, obtain, prepare
from support.loopback import entry
from support.repository import lay

MEDMNIST: dict[str, Any] = {"title": "PathMNIST", "medmnist_flag": "pathmnist", "medmnist_size": 28}
OPTIONS = {"title": "CIFAR-10", "image_size": 32, "validation_share": 0.25}


def raw(path: Path, source: str) -> Raw:
    return Raw("cifar10", source, "1", path, ({"file": path.name},), "licence", "open", False)


# The official CIFAR-10


def files_of_cifar10(folder: Path) -> tuple[dict[str, bytes], Path]:
    """The seven files of the miniature by their names in the archive, and a table of sources with their MD5s."""
    table = make("cifar10", folder / "source")
    with tarfile.open(table.with_name(images.ARCHIVE)) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    rows = [
        f"cifar10,official,{name},,md5:{hashlib.md5(content).hexdigest()},not stated,open\n"
        for name, content in files.items()
    ]
    table.write_text(f"{','.join(Row._fields)}\n{''.join(rows)}")
    return files, table


def packed(files: dict[str, bytes], folder: Path, form: str) -> Path:
    """Write the files, and another, as a user may have them; returns what `path` may name."""
    lay(folder, files | {"other.py": b"raise SystemExit"})
    if form in ("gztar", "zip"):
        return Path(shutil.make_archive(str(folder), form, folder))
    return folder / images.BATCHES if form == "folder" else folder


@pytest.mark.parametrize("form", ["folder", "parent", "gztar", "zip"])
def test_the_seven_files_are_official_however_they_are_packed(tmp_path: Path, form: str) -> None:
    files, table = files_of_cifar10(tmp_path)
    path = packed(files, tmp_path / "own", form)
    raw_files = obtain("cifar10", entry("cifar10", path=str(path)), table, tmp_path / "data", False)
    assert raw_files.version == "official"
    assert [file["file"] for file in raw_files.files] == sorted(images.MEMBERS)
    prepare(raw_files, tmp_path / "prepared", OPTIONS, 0)
    data = load(tmp_path / "prepared")
    assert data.info["title"] == "CIFAR-10"
    assert data.info["classes"][:3] == ["airplane", "automobile", "bird"]
    assert {s: v["n"] for s, v in data.info["splits"].items()} == {"train": 450, "val": 150, "test": 200}
    assert set(data.info["splits"]["val"]["counts"]) == {15}
    batch = pickle.loads(files[f"{images.BATCHES}/test_batch"])
    assert list(data["x_test"][3, 5, 7]) == [batch["data"][3, 1024 * plane + 32 * 5 + 7] for plane in range(3)]
    assert list(data["y_test"]) == batch["labels"]


class Payload:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch payload_ran",)


@pytest.mark.parametrize("form", ["folder", "zip"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data_batch_2": pickle.dumps({"data": Payload()})}, r"data_batch_2 has checksum md5:\w+, not the official one"),
        ({"test_batch": b""}, r"test_batch has checksum md5:\w+, not the official one"),
        ({"batches.meta": None}, r"found .*; expected each of data_batch_1, .* once, in one folder"),
        ({"data_batch_1": "data_batch_2", "data_batch_2": "data_batch_1"}, r"data_batch_1 has checksum .* of its name"),
    ],
)  # fmt: skip
def test_other_pickles_than_the_official_ones_are_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, change: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    files, table = files_of_cifar10(tmp_path)
    batches = {name: files.get(f"{images.BATCHES}/{content}", content) for name, content in change.items()}
    changed = files | {f"{images.BATCHES}/{name}": content for name, content in batches.items()}
    path = packed({name: content for name, content in changed.items() if content is not None}, tmp_path / "own", form)
    with pytest.raises(InputError, match=message):
        obtain("cifar10", entry("cifar10", path=str(path)), table, tmp_path / "data", False)
    assert not (tmp_path / "payload_ran").exists()


def test_a_file_that_changed_since_its_check_is_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = make("cifar10", tmp_path / "raw")
    source = obtain("cifar10", entry("cifar10"), table, tmp_path / "raw", True)
    (source.path / "data_batch_3").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(InputError, match=r"data_batch_3: found md5:\w+, expected md5:\w+"):
        prepare(source, tmp_path / "p", OPTIONS, 0)
    assert not (tmp_path / "payload_ran").exists()


# Folders and archives of pictures


def image_bytes(level: int, size: tuple[int, int] = (32, 32), kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(level).integers(0, 255, (size[1], size[0], 3)).astype(np.uint8)
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def write_pictures(folder: Path, numbers: dict[str, int], sides: Sequence[int] = (32,)) -> Path:
    """Write so many pictures of each class below each folder of `numbers`, with these sides in turn."""
    for split, n in numbers.items():
        for k, name in enumerate(("cat", "airplane")):
            (folder / split / name).mkdir(parents=True)
            for i in range(n):
                content = image_bytes(100 * k + 10 * n + i, (sides[i % len(sides)], sides[-1]))
                (folder / split / name / f"{i:04d}.png").write_bytes(content)
    return folder


def write_folder(folder: Path) -> Path:
    return write_pictures(folder, {"train": 8, "test": 2})


def read_folder(path: Path, out: Path) -> prepared.Prepared:
    prepare(raw(path, "image_folder"), out, OPTIONS, 0)
    return load(out)


def test_a_zip_with_paths_of_windows_is_read_and_a_name_of_other_bytes_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "images")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for path in folder.rglob("*.png"):
            info = zipfile.ZipInfo("/".join(path.relative_to(folder).parts))
            info.filename = info.filename.replace("/", "\\")
            archive.writestr(info, path.read_bytes())
    assert read_folder(tmp_path / "images.zip", tmp_path / "a")["x_test"].shape == (4, 32, 32, 3)
    (folder / "test" / "cat" / "0000.png").rename(folder / "test" / "cat" / os.fsdecode(b"\xff.png"))
    with pytest.raises(InputError, match="found a name of other bytes than UTF-8"):
        read_folder(folder, tmp_path / "b")


@pytest.mark.parametrize("form", ["zip", "gztar"])
def test_a_folder_and_an_archive_of_it_give_the_same_arrays(tmp_path: Path, form: str) -> None:
    folder = write_folder(tmp_path / "top" / "images")
    archive = Path(shutil.make_archive(str(tmp_path / "images"), form, tmp_path, "top"))
    a, b = read_folder(folder, tmp_path / "a"), read_folder(archive, tmp_path / "b")
    assert a.info["classes"] == ["airplane", "cat"]
    assert a.info["title"] == "CIFAR-10 (PNG copy)"
    assert a.info["splits"]["val"]["counts"] == [2, 2]
    assert a.info["exclusions"] == []
    assert a["files_train"][0] == "train/airplane/0000.png"
    for name in a.arrays:
        np.testing.assert_array_equal(a[name], b[name])
    first = np.asarray(Image.open(folder / "test" / "airplane" / "0000.png"))
    np.testing.assert_array_equal(a["x_test"][0], first)
    assert {p.name for p in tmp_path.iterdir()} == {"top", archive.name, "a", "b"}, "nothing stays unpacked"


def test_pictures_behind_links_are_read_and_others_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "train" / "cat" / "deep").mkdir()
    (folder / "train" / "cat" / "0000.png").rename(folder / "train" / "cat" / "deep" / "0000.PNG")
    (folder / "test" / "cat").rename(tmp_path / "elsewhere")
    (folder / "test" / "cat").symlink_to(tmp_path / "elsewhere")
    hidden = ("train/.ipynb_checkpoints/a.png", "train/#recycle/a.png", "__MACOSX/train/cat/a.png", "train/cat/.a.png")
    others = ("train/cat/notes.heic", "train/top.png", "README.md")
    lay(folder, dict.fromkeys((*hidden, *others), image_bytes(1)))
    with caplog.at_level("INFO"):
        data = read_folder(folder, tmp_path / "out")
    counts = {split: part["counts"] for split, part in data.info["splits"].items()}
    assert counts == {"train": [6, 6], "val": [2, 2], "test": [2, 2]}
    files = sorted(others)
    assert data.info["exclusions"] == [{"reason": "files that are no pictures of a class", "count": 3, "files": files}]
    assert f"left out: 3 files that are no pictures of a class: {', '.join(files)}" in caplog.text


OWN = {"title": "Pets", "image_size": None, "resize": True, "test_share": 0.2, "validation_share": 0.25}


@pytest.mark.parametrize(
    ("sides", "changes", "size"),
    [
        ([40], {}, (40, 40)), ([24, 40], {}, (28, 28)), ([300], {}, (28, 28)), ([40, 50], {"image_size": 32}, (32, 32)),
        ([20, 20, 20], {"image_size": 32}, (32, 32)),
    ],
)  # fmt: skip
def test_classes_without_splits_are_divided_and_resized_unless_all_agree(
    tmp_path: Path, sides: list[int], changes: dict[str, int], size: tuple[int, int]
) -> None:
    path = write_pictures(tmp_path / "top" / "pets", {".": 10}, sides)
    prepare(replace(raw(path, "image_folder"), dataset="pets"), tmp_path / "out", OWN | changes, 0)
    data = load(tmp_path / "out")
    assert (data.info["title"], data.info["classes"]) == ("Pets", ["airplane", "cat"])
    counts = {split: part["counts"] for split, part in data.info["splits"].items()}
    assert counts == {"train": [6, 6], "val": [2, 2], "test": [2, 2]}
    assert data["x_train"].shape[1:] == (*size, 3)
    assert data.info["resized"] == (sides != [size[0]])


def test_a_picture_is_resized_to_its_middle_without_being_distorted(tmp_path: Path) -> None:
    pixels = np.zeros((40, 120, 3), np.uint8)
    pixels[:, 36:84] = 255
    Image.fromarray(pixels).save(tmp_path / "x.png")
    assert (read_picture(tmp_path / "x.png", (28, 28), 3, "x", "", resize=True) == 255).all()


def test_classes_without_splits_need_a_share_for_test(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no folder test, expected one\. Make it, or set `test_share`"):
        read_folder(write_pictures(tmp_path / "pets", {".": 10}), tmp_path / "out")


@pytest.mark.parametrize("name", ["val", "Validation", "valid"])
def test_a_folder_for_validation_is_used(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "images")
    write_pictures(folder, {name: 1})
    data = read_folder(folder, tmp_path / "out")
    assert [data.info["splits"][split]["counts"] for split in ("train", "val", "test")] == [[8, 8], [1, 1], [2, 2]]
    assert data.info["repeated"] == []
    (folder / name / "cat").rename(folder / name / "cafe\u0301")  # an accent of its own, as macOS writes it
    for split in ("train", "test"):
        (folder / split / "cat").rename(folder / split / "caf\u00e9")
    assert read_folder(folder, tmp_path / "out").info["classes"] == ["airplane", "caf\u00e9"]
    (folder / name / "cafe\u0301" / "0000.png").unlink()
    with pytest.raises(InputError, match="are in one of train/ and val/ only"):
        read_folder(folder, tmp_path / "out")


def test_pictures_in_two_splits_or_classes_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "test" / "cat" / "copy.bmp").write_bytes(image_bytes(80, kind="BMP"))
    shutil.copy(folder / "test" / "cat" / "0000.png", folder / "test" / "airplane" / "other.png")
    data = read_folder(folder, tmp_path / "out")
    (entry,) = data.info["repeated"]
    assert (entry["count"], entry["files"][1]) == (2, "test/airplane/other.png = test/cat/0000.png")
    assert entry["files"][0] == "train/cat/0000.png = test/cat/copy.bmp"
    assert all(name in caplog.text for name in entry["files"])


GREYS = np.linspace(500, 60_000, 1024).reshape(32, 32)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("PNG", np.uint16), ("TIFF", np.uint16), ("PPM", np.uint16), ("TIFF", np.int32), ("TIFF", np.float32)]
)  # fmt: skip
def test_grey_levels_of_16_bits_are_scaled_and_others_refused(tmp_path: Path, kind: str, dtype: Any) -> None:
    path = tmp_path / "x.png"
    Image.fromarray(GREYS.astype(dtype)).save(path, kind)
    if dtype != np.uint16:
        with pytest.raises(InputError, match="found grey levels of 32 bits or with a sign, expected 8 or 16 bits"):
            read_picture(path, (32, 32), 3, str(path), "")
    else:
        for channels in (1, 3):
            pixels = read_picture(path, (32, 32), channels, str(path), "")
            assert np.abs(pixels - (GREYS / 257)[..., None]).max() <= 1


@pytest.mark.parametrize(("dtype", "tag", "value"), [(np.uint16, 262, 0), (np.uint8, 339, 2), (np.uint16, 258, 12)])
def test_what_pillow_overlooks_is_refused_or_scaled(tmp_path: Path, dtype: Any, tag: int, value: int) -> None:
    """White as 0, grey levels with a sign, and white as 4,095 of 12 bits."""
    content, at = io.BytesIO(), struct.pack("<HHI", tag, 3, 1)
    Image.fromarray(np.full((32, 32), -1).astype(dtype)).save(content, "TIFF", tiffinfo={339: 1})
    written = bytearray(content.getvalue())
    written[(place := written.index(at) + len(at)) : place + 2] = struct.pack("<H", value)
    (tmp_path / "x.tif").write_bytes(written)
    if value == 12:
        assert (read_picture(tmp_path / "x.tif", (32, 32), 3, "x", "") == 255).all()
        return
    with pytest.raises(InputError, match="with a sign, or with white as 0"):
        read_picture(tmp_path / "x.tif", (32, 32), 3, "x", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (image_bytes(1, (28, 30)), "found an image of 28 x 30 pixels, expected 32 x 32"),
        (image_bytes(1)[:500], "cannot be decoded as an image"),
        (b"", "cannot be decoded as an image .*found an empty file"),
    ],
)
def test_a_picture_that_is_none_or_of_another_size_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "test" / "cat" / "0001.png").write_bytes(content)
    path = Path(shutil.make_archive(str(tmp_path / "own"), "zip", folder))
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError, match=rf"{path.name}: test/cat/0001\.png: {message}"):
        read_folder(path, tmp_path / "out")
    assert set(tmp_path.iterdir()) == before


def test_a_picture_beside_the_folders_of_classes_is_left_out_in_whatever_folder_these_are(tmp_path: Path) -> None:
    lay(tmp_path, dict.fromkeys(("pets/cat/1.png", "pets/dog/1.png", "pets/preview.png"), b""))
    for folder in (tmp_path, tmp_path / "pets"):
        pictures, others = images.listed(folder, folder)
        assert pictures["all"].keys() == {"cat", "dog"}
        assert [file.name for file in others] == ["preview.png"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/cat/1.png"], "found no picture under test/<class>/"),
        (["1.png"], "found no picture under train/<class>/ but 1.png; expected"),
        (["train/a/1.png", "test/a/1.png", "train/b/1.gif", "test/b/1.gif"], "found no picture in b of train"),
        (["train/a/1.png", "test/a/1.png", "val/a/1.png", "valid/a/1.png"], "found val and valid for val, expected"),
        (["cat/train/1.png", "cat/test/1.png", "dog/test/1.png"], "found test, train within folders; expected"),
        (["1/train/cat/1.png", "2/train/cat/1.png"], "found 1/train and 2/train for train, expected one folder"),
    ],
)
def test_a_layout_without_both_splits_of_every_class_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    lay(tmp_path, dict.fromkeys(names, b""))
    with pytest.raises(InputError, match=message):
        images.listed(tmp_path, tmp_path)


# MedMNIST


def write_npz(path: Path, flag: str, size: int, **changes: Any) -> Path:
    """A small set in the layout of MedMNIST, nine images a split."""
    info = INFO[flag]
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split in ("train", "val", "test"):
        shape = (9, size, size, 3)[: 3 if info["n_channels"] == 1 else 4]
        arrays[f"{split}_images"] = rng.integers(0, 255, shape).astype(np.uint8)
        arrays[f"{split}_labels"] = (np.arange(9) % len(info["label"])).astype(np.uint8)[:, None]
    np.savez_compressed(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


@pytest.mark.parametrize(("flag", "size"), [("pneumoniamnist", 28), ("bloodmnist", 28), ("bloodmnist", 64)])
def test_a_flat_set_of_any_size_is_fetched_under_its_name_and_prepared(tmp_path: Path, flag: str, size: int) -> None:
    settings = entry("medmnist", medmnist_flag=flag, medmnist_size=size, title="Flat")
    info, suffix = INFO[flag], "" if size == 28 else f"_{size}"
    row = images.catalogued(settings)
    name = f"{flag}{suffix}.npz"
    assert (row.file, row.checksum) == (name, "md5:" + info[f"MD5{suffix}"])
    assert (row.url, row.licence) == (info[f"url{suffix}"], "CC-BY-4.0")
    path = write_npz(tmp_path / name, flag, size)
    table = tmp_path / "sources.csv"
    digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    table.write_text(f"{','.join(Row._fields)}\nflat,1,{name},,{digest},CC-BY-4.0,open\n")
    prepare(obtain("flat", settings, table, tmp_path, False), tmp_path / "p", settings, 0)
    data = load(tmp_path / "p")
    assert data.info["classes"] == list(info["label"].values())
    with np.load(path) as archive:
        np.testing.assert_array_equal(data["x_val"], archive["val_images"].reshape(9, size, size, info["n_channels"]))
        np.testing.assert_array_equal(data["y_test"], archive["test_labels"][:, 0])


@pytest.mark.parametrize("flag", ["organmnist3d", "chestmnist", "pathminst"])
def test_a_set_that_is_not_flat_or_not_there_is_refused(flag: str) -> None:
    with pytest.raises(InputError, match=f"medmnist_flag: found '{flag}', expected a 2-D set of one label: pathmnist"):
        images.catalogue({"medmnist_flag": flag})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((9, 64, 64, 3), np.uint8)}, r"is uint8 \(9, 64, 64, 3\), expected uint8 \(N, 28, 28, 3\)"),
        ({"train_labels": np.arange(9)[:, None] % 5}, "train: found none of 'smooth muscle', .*colorectal adeno"),
        ({"test_labels": np.full((9, 1), 9, np.uint8)}, "found '9' in test_labels at sample 0, .* by number from 0 to 8"),
        ({"val_labels": np.zeros((5, 1), np.uint8)}, r"found val_labels as uint8 \(5,\) beside 9 samples, expected a whole"),
        ({"val_labels": np.array([[Payload()]] * 9, dtype=object)}, "cannot be read .*Object arrays cannot be loaded"),
        ({"train_images": None}, "cannot be read .*train_images"),
    ],
)  # fmt: skip
def test_arrays_that_are_not_images_and_labels_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_npz(tmp_path / "x.npz", "pathmnist", 28, **changes)
    with pytest.raises(InputError, match=rf"(x\.npz|cifar10): .*{message}"):
        prepare(raw(path, "medmnist"), tmp_path / "out", MEDMNIST, 0)
    assert {p.name for p in tmp_path.iterdir()} == {"x.npz"}
