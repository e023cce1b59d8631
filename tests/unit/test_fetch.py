"""Raw files: what is there is verified, what is missing is fetched, and every failure names the file and the remedy."""

import csv
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from medmnist import INFO
from mne.datasets import sleep_physionet
from torchvision.datasets import CIFAR10

from clailearn.errors import InputError
from replication.datasets import files, sources
from replication.datasets.files import describe_files, matching, shortened, unpack_archive
from replication.datasets.miniature import make
from replication.datasets.prepared import load
from replication.datasets.sources import Raw, Row, download, obtain, prepare, read_sources, state_of_raw
from support.loopback import Server, entry, serving
from support.repository import MINI, REAL, SOURCES, contents

CONTENT = bytes(range(256)) * 1200  # several blocks of the connection


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def row(url: str, checksum: str = sha256(CONTENT), file: str = "toy.npz") -> Row:
    return Row("toy", "1", file, url, checksum, "CC0-1.0", "open")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server, for a client that does not wait between attempts."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as state:
        state.files["toy.npz"] = CONTENT
        yield state


@pytest.mark.parametrize(
    ("source", "name", "other"),
    [
        ("image_folder", "train/cat/1.PNG", "train/cat/notes.txt"),
        ("sleep_edf", "SC4001E0-PSG.edf", "notes.txt"),
        ("challenge2019", "training_setA/p000001.psv", "LICENSE"),
        ("mimic_iv", "3.1/hosp/patients.csv.gz", "3.1/hosp/d_items.csv.gz"),
        ("feature_table", "wards.csv", "wards.txt"),
    ],
)
def test_the_state_changes_with_every_file_that_is_read_alone(
    tmp_path: Path, source: str, name: str, other: str
) -> None:
    own = entry(source, path=str(tmp_path))
    states = [state_of_raw(own)]
    for file, time in ((name, 1), (other, 1), (name, 2), (name.replace("1", "2"), 2)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"same size")
        os.utime(tmp_path / file, (time, time))
        states.append(state_of_raw(own))
    before, one, with_other, later, two = states
    assert one == with_other != later
    assert (two != later) == ("1" in name)
    assert state_of_raw(own | {"path": str(tmp_path / name)}) != before


# Downloads


@pytest.mark.parametrize(
    ("content", "said"), [(None, "404 Client Error"), (CONTENT[:-1], "does not match the known hash")]
)
def test_what_does_not_arrive_gets_no_name(tmp_path: Path, server: Server, content: bytes | None, said: str) -> None:
    server.files = {} if content is None else {"toy.npz": content}
    with pytest.raises(InputError, match=rf"toy: toy\.npz could not be obtained .*{said}.*raw/toy\.npz by hand"):
        download("toy", [row(server.url("toy.npz"))], tmp_path / "raw")
    assert contents(tmp_path / "raw") == {}
    assert len(server.requests) == 1 + sources.RETRIES


@pytest.mark.parametrize("content", [b"<html>Please log in</html>", b"", b"PK\x03\x04 cut off"])
def test_without_a_checksum_a_page_or_half_a_zip_is_refused(tmp_path: Path, server: Server, content: bytes) -> None:
    server.files["toy.zip"] = content
    with pytest.raises(InputError, match=r"toy\.zip: found another file, expected a complete zip"):
        download("toy", [row(server.url("toy.zip"), "", "toy.zip")], tmp_path)


def test_a_failure_loses_nothing_that_has_arrived(tmp_path: Path, server: Server) -> None:
    rows = [row(server.url("toy.npz"), file="a/1.npz"), row(server.url("absent"), file="2.npz")]
    with pytest.raises(InputError, match=r"toy: 2\.npz could not be obtained"):
        download("toy", rows, tmp_path)
    server.files["absent"] = CONTENT
    server.requests.clear()
    download("toy", rows, tmp_path)
    assert server.requests == ["absent"]


def test_a_file_already_there_needs_no_network_and_is_left_alone_where_it_differs(tmp_path: Path) -> None:
    (tmp_path / "toy.npz").write_bytes(CONTENT)
    download("toy", [row("http://127.0.0.1:9/unreachable")], tmp_path)
    with pytest.raises(InputError, match=r"toy: .*toy\.npz: found md5:\w+, expected md5:0000"):
        download("toy", [row("http://127.0.0.1:9/unreachable", "md5:0000")], tmp_path)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT


# Files of the user


@pytest.mark.parametrize(
    ("dataset", "source", "path", "message"),
    [
        ("cifar10", "image_folder", "nowhere", r"datasets\.cifar10\.path: .*nowhere does not exist"),
        ("cifar10", "image_folder", "~nobody-of-this-name/pets", r"datasets\.cifar10\.path: ~nobody.* does not exist"),
        ("cifar10", "image_folder", None, r"datasets\.cifar10\.path is not set"),
        ("challenge2019", "challenge2019", ".", r"datasets\.challenge2019\.path: found nothing in .*psv"),
    ],
)
def test_what_is_not_there_is_named_by_its_key(
    tmp_path: Path, dataset: str, source: str, path: str | None, message: str
) -> None:
    there = path if path is None or path.startswith("~") else str(tmp_path / path)
    assert state_of_raw({"source": source, "path": there})
    with pytest.raises(InputError, match=message):
        obtain(dataset, entry(source, path=there), SOURCES, tmp_path, False)


def test_an_own_file_is_the_published_one_if_it_equals_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.npz").write_bytes(CONTENT)
    settings = entry("medmnist", path="~/own.npz", medmnist_flag="bloodmnist")
    raw = obtain("mine", settings, SOURCES, tmp_path, False)
    assert raw.files[0]["checksum"] == sha256(CONTENT)
    assert (raw.version, raw.licence, raw.access) == ("as provided", "not stated", "as provided")
    raw.write(tmp_path / "raw.json")
    assert Raw.read(tmp_path / "raw.json") == raw
    assert raw.find() == [tmp_path / "own.npz"]
    md5 = hashlib.md5(CONTENT).hexdigest()
    table = tmp_path / "sources.csv"
    table.write_text(f"{','.join(Row._fields)}\ntoy,2.1,toy.npz,,md5:{md5},CC0-1.0,open\n")
    raw = obtain("toy", settings, table, tmp_path, False)
    assert (raw.version, raw.licence, raw.access) == ("2.1", "CC0-1.0", "open")
    monkeypatch.setitem(INFO["bloodmnist"], "MD5", md5)
    raw = obtain("mine", settings, SOURCES, tmp_path, False)
    assert raw.version.startswith("MedMNIST (Zenodo "), "by the catalogue, without a row of the table"
    (tmp_path / "own.npz").write_bytes(CONTENT[1:])
    assert obtain("toy", settings, table, tmp_path, False).version == "as provided"


def test_own_files_are_the_published_ones_only_if_all_of_them_are(tmp_path: Path) -> None:
    table = make("sleepedf", tmp_path / "own")
    settings = entry("sleep_edf", path=str(tmp_path / "own"))
    recordings = sorted((tmp_path / "own").glob("*.edf"))
    for path in recordings[4:]:
        path.unlink()
    assert obtain("sleepedf", settings, table, tmp_path, False).version == "miniature", "a part of them"
    with recordings[3].open("ab") as stream:
        stream.write(b" ")
    assert obtain("sleepedf", settings, table, tmp_path, False).version == "as provided"


def test_files_that_changed_since_they_were_verified_are_refused(tmp_path: Path) -> None:
    file, manifest = tmp_path / "own" / "own.npz", tmp_path / "results" / "raw.json"
    file.parent.mkdir()
    file.write_bytes(CONTENT)
    raw = obtain("pathmnist", entry("medmnist", path=str(file.parent)), SOURCES, tmp_path, False)
    raw.check_sizes(manifest)
    file.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match=rf"{file} has \d+ bytes, expected \d+ bytes as .*--forcerun {manifest}`"):
        raw.check_sizes(manifest)
    file.unlink()
    with pytest.raises(InputError, match=f"{file} is not there"):
        raw.check_sizes(manifest)


def test_many_files_are_a_tree_that_changes_with_any_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LISTED_ONE_BY_ONE", 2)
    paths = [tmp_path / "set" / f"p00000{n}.psv" for n in range(3)]
    (tmp_path / "set").mkdir()
    for path in paths:
        path.write_text("a")
    (before,) = shortened(describe_files(paths, tmp_path))
    assert (before["file"], before["size"]) == ("./ (3 files)", 3)
    paths[1].write_text("b")
    assert shortened(describe_files(paths, tmp_path))[0]["checksum"] != before["checksum"]


# Folders and archives


def test_a_listing_of_a_folder_leaves_out_those_below_and_refuses_a_circle(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("1.PNG", "deep/2.png"):
        (tmp_path / name).touch()
    assert matching(tmp_path, ["*.png"]) == [tmp_path / "1.PNG"]
    (tmp_path / "2.png").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"2\.png: found a link to nothing, or a pipe, expected a file"):
        matching(tmp_path, ["*.png"])
    (tmp_path / "2.png").unlink()
    (tmp_path / "deep" / "round").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"deep/round: found a link to a folder that holds it"):
        matching(tmp_path, ["**/*.png"])
    (tmp_path / "deep" / "round").unlink()
    for link, to in (("deep/there", "other"), ("other/back", "deep")):  # a circle of two links
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(tmp_path / to)
    with pytest.raises(InputError, match=r"(there/back|back/there): found a link to a folder that holds it"):
        matching(tmp_path, ["**/*.png"])


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of members, as a zip or a tar by its suffix."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("suffix", [".zip", ".tgz"])
def test_an_archive_gives_wanted_members_alone(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    archive = packed(tmp_path / f"a{suffix}", {"top/a": b"1", "../b": b"2", "other": b"3"})
    paths = unpack_archive(archive, tmp_path / "out", {"top/a": "a", "../b": "b"}.get)
    assert paths == [tmp_path / "out" / "a", tmp_path / "out" / "b"]
    assert contents(tmp_path).keys() == {"out/a", "out/b", archive.name}
    with suppress(InputError):
        unpack_archive(packed(archive, {"../escaped": b"2"}), tmp_path / "deep" / "out", str)
    assert {p.parent.name for p in tmp_path.rglob("escaped")} <= {"out"}
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(InputError, match=rf"a{suffix}: cannot be read .*expected a zip or a tar"):
        unpack_archive(archive, tmp_path / "out", str)
    with tarfile.open(archive, "w") as links:
        info = tarfile.TarInfo("a")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        links.addfile(info)
    assert unpack_archive(archive, tmp_path / "out", str) == []
    assert "left out a, a link" in caplog.text


@pytest.mark.parametrize("suffix", [".zip", ".tgz"])
def test_an_archive_has_a_limit_for_a_member_and_in_total(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / f"a{suffix}", {f"{number}.png": bytes(500) for number in range(9)})
    monkeypatch.setattr("clailearn.limits.LARGEST_RATIO", 0)
    assert len(unpack_archive(archive, tmp_path / "out", str)) == 9  # small ones may be packed tightly
    monkeypatch.setattr("clailearn.limits.LARGEST_UNPACKED", 4000)
    with pytest.raises(InputError, match=rf"a{suffix}: .*unpacks to 4,\d+ bytes or more, expected at most 4,000"):
        unpack_archive(archive, tmp_path / "in total", str)
    monkeypatch.setattr("replication.datasets.files.LARGEST_FILE", 400)
    monkeypatch.setattr("clailearn.limits.LARGEST_RATIO", 1000)
    with pytest.raises(InputError, match=rf"a{suffix}: member '0.png' has 500 bytes, expected at most 400"):
        unpack_archive(archive, tmp_path / "a member", str)


# The table of sources


def test_the_sources_agree_with_the_catalogues_of_their_libraries() -> None:
    with (Path(sleep_physionet.__file__).parent / "age_records.csv").open() as stream:
        catalogue = {entry["fname"]: f"sha1:{entry['sha']}" for entry in csv.DictReader(stream)}
    assert {r.file: r.checksum for r in read_sources(SOURCES, "sleepedf")} == catalogue
    (pathmnist,) = read_sources(SOURCES, "pathmnist")
    assert (pathmnist.url, pathmnist.checksum) == (INFO["pathmnist"]["url"], f"md5:{INFO['pathmnist']['MD5']}")
    members = [*CIFAR10.train_list, *CIFAR10.test_list, [CIFAR10.meta["filename"], CIFAR10.meta["md5"]]]
    stated = {r.file: r.checksum for r in read_sources(SOURCES, "cifar10") if not r.url}
    assert stated == {f"{CIFAR10.base_folder}/{name}": f"md5:{md5}" for name, md5 in members}


# Each source from a server


def files_of(dataset: str, folder: Path) -> dict[str, bytes]:
    """The miniature's files under the names that the source gives them."""
    make(dataset, folder)
    paths = [path for path in sorted(folder.iterdir()) if path.name != "sources.csv"]
    if dataset != "challenge2019":
        return {path.name: path.read_bytes() for path in paths}
    whole = folder / "challenge-2019-1.0.0.zip"  # packed by the source, with a folder above and further files
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr("challenge-2019-1.0.0/LICENSE.txt", "CC BY 4.0")
        for path in paths:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    packed.writestr(f"challenge-2019-1.0.0/training/{name}", archive.read(name))
    return {whole.name: whole.read_bytes()}


@pytest.mark.parametrize("dataset", ["cifar10", "sleepedf", "challenge2019"])
def test_a_source_is_downloaded_and_prepared(tmp_path: Path, server: Server, dataset: str) -> None:
    settings: dict[str, Any] = REAL["datasets"][dataset] | MINI["datasets"][dataset]
    server.files = files_of(dataset, tmp_path / "files")
    server.failing = 1
    rows = [
        f"{dataset},1,{name},{server.url(name)},{sha256(server.files[name])},not stated,open\n" for name in server.files
    ]
    table = tmp_path / "data_sources.csv"
    table.write_text(f"{','.join(Row._fields)}\n{''.join(rows)}")
    raw = obtain(dataset, settings, table, tmp_path / "raw", False)
    asked = len(server.requests)
    assert asked == 1 + len(server.files)
    assert obtain(dataset, settings, table, tmp_path / "raw", False) == raw
    assert len(server.requests) == asked, "what is there is not downloaded again"
    assert not list((tmp_path / "raw").rglob(".*"))
    prepare(raw, tmp_path / "prepared", settings, 0)
    data = load(tmp_path / "prepared")
    assert sum(split["n"] for name, split in data.info["splits"].items() if "fold" not in name) > 0
    assert data.info["version"] == "1"
