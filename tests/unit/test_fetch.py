"""Raw files: what is there is verified, what is missing is fetched, and every failure names the file and the remedy."""

import csv
import errno
import hashlib
import io
import logging
import os
import re
import resource
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from medmnist import INFO

from clai.errors import InputError
from replication.datasets import checksums, download
from replication.datasets.checksums import describe_files
from replication.datasets.download import DownloadLimits
from replication.datasets.fetch import Raw, obtain
from replication.datasets.miniature.make import make
from replication.datasets.sources import COLUMNS, Row, read_sources
from support.loopback import ONCE, Server, entry, serving

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "workflow" / "config" / "data_sources.csv"
CONTENT = bytes(range(256)) * 1200  # several blocks of the connection
AGAIN = replace(ONCE, retries=2)


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def row(*urls: str, checksum: str = sha256(CONTENT), size: int | None = None, file: str = "toy.npz") -> Row:
    return Row("toy", "1", file, urls, size, checksum, "CC0-1.0", "open")


def write_table(path: Path, **values: str) -> Path:
    entries = {"dataset": "toy", "version": "1", "file": "toy.npz", "licence": "CC0-1.0", "access": "open"} | values
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="")
        writer.writeheader()
        writer.writerow(entries)
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        state.files["toy.npz"] = CONTENT
        yield state


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def starts(server: Server) -> list[int]:
    """From which byte each request for the file asked."""
    return [int(asked.strip("bytes=-")) if asked else 0 for asked in server.ranges("toy.npz")]


# Faults that pass


def test_a_missing_file_is_downloaded_and_verified(tmp_path: Path, server: Server) -> None:
    download.fetch([row(server.url("toy.npz"), size=len(CONTENT))], tmp_path / "raw", ONCE)
    assert (tmp_path / "raw" / "toy.npz").read_bytes() == CONTENT
    assert left_in(tmp_path / "raw") == ["toy.npz"], "no partial file is left"


def test_a_connection_cut_midway_goes_on_where_it_stopped(tmp_path: Path, server: Server) -> None:
    server.faults["toy.npz"] = ["cut", "cut"]
    download.fetch([row(server.url("toy.npz"))], tmp_path, AGAIN)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT
    first, second, third = starts(server)
    assert first == 0
    assert second > len(CONTENT) / 4, "most of what had arrived is not asked for again"
    assert third > second


def test_the_next_run_goes_on_where_a_failed_one_stopped(tmp_path: Path, server: Server) -> None:
    server.faults["toy.npz"] = ["cut"]
    with pytest.raises(InputError, match=r"toy\.npz could not be obtained"):
        download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    assert left_in(tmp_path) == [".toy.npz.part"], "nothing has the final name"
    download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    assert starts(server)[-1] > len(CONTENT) / 4
    assert left_in(tmp_path) == ["toy.npz"]


def test_a_connection_that_stalls_is_given_up_after_the_time_out(tmp_path: Path, server: Server) -> None:
    server.faults["toy.npz"] = ["stall"]
    download.fetch([row(server.url("toy.npz"))], tmp_path, replace(AGAIN, timeout=1))
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT
    server.faults["toy.npz"] = ["stall"]
    with pytest.raises(InputError, match=r"toy: toy\.npz could not be obtained .*timed out"):
        download.fetch([row(server.url("toy.npz"))], tmp_path / "once", replace(ONCE, timeout=1))
    assert left_in(tmp_path / "once") == [".toy.npz.part"]


@pytest.mark.parametrize("fault", ["ignore range", "wrong range", "416"])
def test_a_server_that_does_not_go_on_from_the_range_is_read_from_the_start(
    tmp_path: Path, server: Server, fault: str
) -> None:
    server.faults["toy.npz"] = ["cut", fault]
    download.fetch([row(server.url("toy.npz"))], tmp_path, AGAIN)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT


def test_a_partial_file_of_another_version_is_not_sewn_to_this_one(tmp_path: Path, server: Server) -> None:
    (tmp_path / ".toy.npz.part").write_bytes(b"other" * 1000)
    download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT
    assert server.ranges("toy.npz") == ["bytes=5000-", None]


def test_a_file_without_a_checksum_is_never_continued(tmp_path: Path, server: Server) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", os.urandom(100_000))
    server.files["toy.npz"] = packed.getvalue()
    server.faults["toy.npz"] = ["cut"]
    download.fetch([row(server.url("toy.npz"), checksum="")], tmp_path, AGAIN)
    assert (tmp_path / "toy.npz").read_bytes() == packed.getvalue()
    assert server.ranges("toy.npz") == [None, None]


def test_the_pause_before_each_further_attempt_doubles(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(download.time, "sleep", waited.append)
    server.faults["toy.npz"] = ["500", "503", "429"]
    download.fetch([row(server.url("toy.npz"))], tmp_path, DownloadLimits(retries=3, pause=5, timeout=5, parallel=1))
    assert waited == [5, 10, 20]


def test_a_redirect_is_followed(tmp_path: Path, server: Server) -> None:
    server.files["old"] = b""
    server.faults["old"] = ["redirect toy.npz"]
    download.fetch([row(server.url("old"))], tmp_path, ONCE)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT


def test_redirects_in_a_circle_end(tmp_path: Path, server: Server) -> None:
    server.files["a"] = b""
    server.faults["a"] = ["redirect a"] * 100
    with pytest.raises(InputError, match="redirects"):
        download.fetch([row(server.url("a"))], tmp_path, ONCE)


def test_a_file_that_the_server_announces_as_compressed_text_is_kept_as_it_is(tmp_path: Path, server: Server) -> None:
    """Servers that say `Content-Encoding: gzip` of a .gz do so only for clients that accept it."""
    download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    with download._Partial(tmp_path / "x", row()) as partial:
        assert partial.headers()["Accept-Encoding"] == "identity"


# Mirrors


def test_an_address_that_is_gone_is_not_asked_again_and_the_mirrors_follow_in_order(
    tmp_path: Path, server: Server
) -> None:
    server.files["bad/toy.npz"] = b"damaged"
    names = ["absent/toy.npz", "bad/toy.npz", "toy.npz", "never"]
    download.fetch([row(*map(server.url, names))], tmp_path, AGAIN)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["absent/toy.npz", "bad/toy.npz", "toy.npz"]


def test_a_server_out_of_order_is_left_for_the_mirror_after_the_retries(tmp_path: Path, server: Server) -> None:
    server.files["a"] = CONTENT
    server.faults["a"] = ["500"] * 9
    download.fetch([row(server.url("a"), server.url("toy.npz"))], tmp_path, AGAIN)
    assert [path for path, _ in server.requests] == ["a", "a", "a", "toy.npz"]


def test_a_mirror_of_the_user_comes_first_and_in_all_sources(tmp_path: Path, server: Server) -> None:
    make("sleepedf", tmp_path / "source", 5)
    server.folder(tmp_path / "source", below="copy/")
    table, raw = tmp_path / "source" / "sources.csv", tmp_path / "raw"
    found = obtain("sleepedf", entry("sleep_edf"), table, raw, server.url("copy/"), replace(ONCE, parallel=3), True)
    assert len(found.files) == 12
    assert {path for path, _ in server.requests} == {f"copy/{f['file']}" for f in found.files}
    assert left_in(raw) == sorted(f["file"] for f in found.files)


# Faults that do not pass


def test_a_damaged_download_never_gets_its_name_and_is_reported(tmp_path: Path, server: Server) -> None:
    server.files["toy.npz"] = b"damaged"
    with pytest.raises(InputError, match=r"toy: toy\.npz could not be obtained .*checksum sha256:.*expected sha256:"):
        download.fetch([row(server.url("toy.npz"))], tmp_path / "raw", AGAIN)
    assert left_in(tmp_path / "raw") == []


def test_a_file_of_the_right_size_and_wrong_content_is_refused(tmp_path: Path, server: Server) -> None:
    wrong = bytearray(CONTENT)
    wrong[len(wrong) // 3] ^= 1
    server.files["toy.npz"] = bytes(wrong)
    with pytest.raises(InputError, match=rf"checksum {sha256(bytes(wrong))}, expected {sha256(CONTENT)}"):
        download.fetch([row(server.url("toy.npz"), size=len(CONTENT))], tmp_path / "raw", AGAIN)
    assert left_in(tmp_path / "raw") == []


def test_more_than_the_stated_size_is_not_stored(tmp_path: Path, server: Server) -> None:
    with pytest.raises(InputError, match=r"more than the 70000 bytes expected"):
        download.fetch([row(server.url("toy.npz"), size=70_000)], tmp_path / "raw", AGAIN)
    assert left_in(tmp_path / "raw") == []


@pytest.mark.parametrize("content", [b"<html>Please log in</html>", b"", b"PK\x03\x04 cut off"])
def test_without_a_checksum_an_error_page_or_half_a_zip_is_still_refused(
    tmp_path: Path, server: Server, content: bytes
) -> None:
    server.files["toy.zip"] = content
    with pytest.raises(InputError, match=r"expected a complete \.zip file"):
        download.fetch([row(server.url("toy.zip"), checksum="", file="toy.zip")], tmp_path / "raw", AGAIN)
    assert left_in(tmp_path / "raw") == []


@pytest.mark.parametrize(("fault", "said"), [("404", "404 Client Error"), ("500", "500 Server Error")])
def test_an_error_of_the_server_is_reported_with_its_address(
    tmp_path: Path, server: Server, fault: str, said: str
) -> None:
    server.faults["toy.npz"] = [fault] * 9
    with pytest.raises(InputError, match=rf"toy: toy\.npz could not be obtained \(http://127.*{said}"):
        download.fetch([row(server.url("toy.npz"))], tmp_path / "raw", AGAIN)
    assert len(server.requests) == (1 if fault == "404" else 3)


def test_without_a_network_the_message_says_where_to_put_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Put the file at .*raw/toy\.npz by hand"):
        download.fetch([row("http://127.0.0.1:9/toy.npz")], tmp_path / "raw", AGAIN)


# Disks


def test_a_disk_that_fills_up_stops_the_download_which_later_goes_on(tmp_path: Path, server: Server) -> None:
    """The limit on the size of a file makes the operating system refuse to write, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"toy: .*toy\.npz cannot be written .*Make room or set data_dir"):
            download.fetch([row(server.url("toy.npz"), "http://127.0.0.1:9/never")], tmp_path, AGAIN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert left_in(tmp_path) == [".toy.npz.part"]
    assert len(server.requests) == 1, "no further attempt, no mirror: they would fill the disk as well"
    download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT
    assert starts(server)[-1] > 100_000


def test_a_disk_that_is_too_small_is_told_before_it_is_full(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = download.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(InputError, match=rf"{len(CONTENT)} bytes of toy\.npz are still to come, and 1000 are free"):
        download.fetch([row(server.url("toy.npz"))], tmp_path, AGAIN)
    assert not (tmp_path / "toy.npz").exists()


def test_a_real_full_file_system_leaves_no_final_name(tmp_path: Path, server: Server) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        server.faults["toy.npz"] = ["no length"]  # so that the lack of room is not foreseen
        with pytest.raises(InputError, match=os.strerror(errno.ENOSPC)):
            download.fetch([row(server.url("toy.npz"))], disk, AGAIN)
        assert left_in(disk) == [".toy.npz.part"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Several files, progress


def test_several_files_are_fetched_at_a_time_and_counted(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    rows = []
    for n in range(6):
        name, content = f"{n}.edf", CONTENT[n:]
        server.files[name], server.faults[name] = content, ["slow"]
        rows.append(row(server.url(name), checksum=sha256(content), file=name))
    with caplog.at_level(logging.INFO, logger="replication"):
        download.fetch(rows, tmp_path, replace(ONCE, parallel=3))
    assert 1 < server.most_together <= 3
    assert left_in(tmp_path) == [r.file for r in rows]
    assert "toy: file 6 of 6" in caplog.text


def test_one_bad_file_of_several_stops_the_rest_and_is_named(tmp_path: Path, server: Server) -> None:
    rows = [row(server.url("toy.npz"), file=f"{n}.npz") for n in range(20)]
    rows[0] = row(server.url("absent"), file="0.npz")
    with pytest.raises(InputError, match=r"toy: 0\.npz could not be obtained"):
        download.fetch(rows, tmp_path, ONCE)
    assert len(left_in(tmp_path)) < 19


def test_progress_is_shown_while_a_file_arrives(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(download, "PROGRESS_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, logger="replication"):
        download.fetch([row(server.url("toy.npz"))], tmp_path, ONCE)
    assert "toy: toy.npz, 0.1 of 0.3 MB" in caplog.text


# Files that are there


def test_a_file_already_there_is_used_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "toy.npz").write_bytes(CONTENT)
    download.fetch([row("http://127.0.0.1:9/unreachable", size=len(CONTENT))], tmp_path, ONCE)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (row(checksum="md5:" + "0" * 32), "toy: .*toy.npz has checksum md5:.*, expected md5:0000"),
        (row(size=3), f"toy: .*toy.npz has {len(CONTENT)} bytes, expected 3"),
        (row(checksum=""), r"toy: .*toy.npz begins with .* expected a complete \.npz file"),
    ],
)
def test_a_file_there_that_differs_is_named_with_expected_and_found(tmp_path: Path, stated: Row, message: str) -> None:
    (tmp_path / "toy.npz").write_bytes(CONTENT)
    with pytest.raises(InputError, match=message):
        download.fetch([stated], tmp_path, ONCE)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT, "what the user put there is not deleted"


def test_a_path_that_does_not_exist_names_its_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets\.cifar10\.path: .*nowhere does not exist"):
        obtain("cifar10", entry("image_folder", path=str(tmp_path / "nowhere")), TABLE, tmp_path, None, ONCE, False)


@pytest.mark.parametrize(("dataset", "source"), [("mimic-iv", "mimic_iv"), ("cifar10", "image_folder")])
def test_a_source_with_nothing_to_download_asks_for_its_path(tmp_path: Path, dataset: str, source: str) -> None:
    with pytest.raises(InputError, match=rf"datasets\.{dataset}\.path is not set"):
        obtain(dataset, entry(source), TABLE, tmp_path, None, ONCE, False)


def test_an_own_folder_without_what_the_source_reads_is_refused(tmp_path: Path) -> None:
    settings = entry("challenge2019", path=str(tmp_path))
    with pytest.raises(InputError, match=r"datasets\.challenge2019\.path: found no .*psv"):
        obtain("challenge2019", settings, TABLE, tmp_path, None, ONCE, False)


def test_an_own_archive_of_pickles_must_be_the_official_one(tmp_path: Path) -> None:
    make("cifar10", tmp_path, 5)
    archive = tmp_path / "cifar-10-python.tar.gz"
    with pytest.raises(InputError, match=r"cifar-10-python\.tar\.gz has \d+ bytes, expected 170498071"):
        obtain("cifar10", entry("cifar10", path=str(archive)), TABLE, tmp_path, None, ONCE, False)


def test_an_own_file_is_recorded_with_its_checksum_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "own.npz").write_bytes(CONTENT)
    raw = obtain("pathmnist", entry("medmnist", path=str(tmp_path / "own.npz")), TABLE, tmp_path, None, ONCE, False)
    assert raw.files[0]["checksum"] == sha256(CONTENT)
    assert raw.version == "as provided"
    raw.write(tmp_path / "raw.json")
    assert Raw.read(tmp_path / "raw.json") == raw
    assert raw.find() == [tmp_path / "own.npz"]


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_an_own_file_with_the_published_checksum_is_the_published_one(tmp_path: Path, algorithm: str) -> None:
    (tmp_path / "own.npz").write_bytes(CONTENT)
    checksum = f"{algorithm}:{hashlib.new(algorithm, CONTENT).hexdigest()}"
    table = write_table(tmp_path / "sources.csv", version="2.1", checksum=checksum)
    settings = entry("medmnist", path=str(tmp_path / "own.npz"))
    raw = obtain("toy", settings, table, tmp_path, None, ONCE, False)
    assert (raw.version, raw.licence, raw.access) == ("2.1", "CC0-1.0", "open")
    (tmp_path / "own.npz").write_bytes(CONTENT[1:])
    assert obtain("toy", settings, table, tmp_path, None, ONCE, False).version == "as provided"


def test_own_files_are_the_published_ones_only_if_all_of_them_are(tmp_path: Path) -> None:
    table = make("sleepedf", tmp_path / "own", 5)
    settings = entry("sleep_edf", path=str(tmp_path / "own"))
    assert obtain("sleepedf", settings, table, tmp_path, None, ONCE, False).version == "miniature"
    for path in sorted((tmp_path / "own").glob("*.edf"))[4:]:
        path.unlink()
    assert obtain("sleepedf", settings, table, tmp_path, None, ONCE, False).version == "miniature", "a part of them"
    with path_of_last(tmp_path / "own").open("ab") as stream:
        stream.write(b" ")
    assert obtain("sleepedf", settings, table, tmp_path, None, ONCE, False).version == "as provided"


def path_of_last(folder: Path) -> Path:
    return sorted(folder.glob("*.edf"))[-1]


def test_a_set_of_the_catalogue_is_recognised_without_a_row_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.npz").write_bytes(CONTENT)
    monkeypatch.setitem(INFO["bloodmnist"], "MD5", hashlib.md5(CONTENT).hexdigest())
    settings = entry("medmnist", path=str(tmp_path / "own.npz"), medmnist_flag="bloodmnist")
    raw = obtain("blood", settings, TABLE, tmp_path, None, ONCE, False)
    assert raw.version.startswith("MedMNIST (Zenodo ")
    assert raw.licence == "CC-BY-4.0"


@pytest.mark.parametrize("own", ["own.npz", "."], ids=["file", "folder"])
def test_files_that_changed_since_they_were_verified_are_refused(tmp_path: Path, own: str) -> None:
    file = tmp_path / "own.npz"
    file.write_bytes(CONTENT)
    raw = obtain("pathmnist", entry("medmnist", path=str(tmp_path / own)), TABLE, tmp_path, None, ONCE, False)
    manifest = tmp_path / "results" / "raw.json"
    raw.check_sizes(manifest)
    file.write_bytes(CONTENT[:-1])
    remedy = f"--forcerun {manifest}` added to your snakemake command"
    sizes = f"{file} has {len(CONTENT) - 1} bytes, expected {len(CONTENT)} bytes as {manifest} has it"
    with pytest.raises(InputError, match=f"pathmnist: {re.escape(sizes)}.*{re.escape(remedy)}"):
        raw.check_sizes(manifest)
    file.unlink()
    with pytest.raises(InputError, match=f"pathmnist: {re.escape(str(file))} is not there"):
        raw.check_sizes(manifest)


def test_own_data_that_the_table_does_not_know_have_no_stated_licence(tmp_path: Path) -> None:
    (tmp_path / "own.npz").write_bytes(CONTENT)
    raw = obtain("mine", entry("medmnist", path=str(tmp_path)), TABLE, tmp_path, None, ONCE, False)
    assert (raw.licence, raw.access) == ("not stated", "as provided")


def test_a_source_without_a_module_is_refused(tmp_path: Path) -> None:
    for name in ("nothing", "splits"):
        with pytest.raises(InputError, match=rf"source '{name}': found no module replication\.datasets\.{name}"):
            obtain("mine", entry(name, path=str(tmp_path)), TABLE, tmp_path, None, ONCE, False)


def test_many_files_are_recorded_as_a_tree_that_changes_with_any_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "LISTED_ONE_BY_ONE", 2)
    paths = [tmp_path / "set" / f"p00000{n}.psv" for n in range(3)]
    (tmp_path / "set").mkdir()
    for path in paths:
        path.write_text("a")
    (before,) = describe_files(paths, tmp_path)
    assert before["file"] == "set/ (3 files)"
    assert before["size"] == 3
    paths[1].write_text("b")
    assert describe_files(paths, tmp_path)[0]["checksum"] != before["checksum"]
    Raw("challenge2019", "challenge2019", "", tmp_path, (before,), "", "", False).check_sizes(tmp_path / "raw.json")


# The table of sources, and what settings make of it


@pytest.mark.parametrize("values", [{"checksum": "crc:1"}, {"size": "big"}, {"file": "../toy.npz"}])
def test_a_malformed_row_is_named_by_its_line(tmp_path: Path, values: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"t\.csv, line 2: "):
        read_sources(write_table(tmp_path / "t.csv", **values), "toy")


def test_mirrors_of_the_table_follow_its_address(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", url="https://a.example.org/t", mirrors="https://b.example.org https://c")
    assert read_sources(table, "toy")[0].urls == ("https://a.example.org/t", "https://b.example.org", "https://c")


def test_the_sources_agree_with_the_catalogues_of_their_libraries() -> None:
    mne = pytest.importorskip("mne.datasets.sleep_physionet")
    with (Path(mne.__file__).parent / "age_records.csv").open() as stream:
        catalogue = {entry["fname"]: f"sha1:{entry['sha']}" for entry in csv.DictReader(stream)}
    assert {r.file: r.checksum for r in read_sources(TABLE, "sleepedf")} == catalogue
    medmnist = pytest.importorskip("medmnist")
    (pathmnist,) = read_sources(TABLE, "pathmnist")
    assert pathmnist.urls == (medmnist.INFO["pathmnist"]["url"],)
    assert pathmnist.checksum == "md5:" + medmnist.INFO["pathmnist"]["MD5"]


@pytest.mark.parametrize("dataset", ["pathmnist", "cifar10", "sleepedf", "challenge2019"])
def test_every_downloadable_row_has_an_https_address_and_a_licence(dataset: str) -> None:
    for stated in read_sources(TABLE, dataset):
        assert stated.urls
        assert all(url.startswith("https://") for url in stated.urls)
        assert stated.licence
        assert stated.checksum or stated.content or "no checksum" in stated.access
