"""Raw files: what is there is verified, what is missing is fetched, and every failure names the file and the remedy."""

import csv
import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clai.datasets import fetch
from clai.datasets.fetch import COLUMNS, Raw, Row, describe_files, obtain, read_sources
from clai.errors import InputError

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "workflow" / "data_sources.csv"
CONTENT = b"official bytes"


def row(url: str = "", checksum: str | None = None, size: int | None = None, mirrors: tuple[str, ...] = ()) -> Row:
    digest = "sha256:" + hashlib.sha256(CONTENT).hexdigest() if checksum is None else checksum
    return Row("toy", "1", "toy.npz", tuple(u for u in (url, *mirrors) if u), size, digest, "CC0", "open")


def write_table(path: Path, **values: str) -> Path:
    entry = {"dataset": "toy", "version": "1", "file": "toy.npz", "licence": "CC0", "access": "open"} | values
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="")
        writer.writeheader()
        writer.writerow(entry)
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Address of a loopback server with the official file under good/ and a damaged one under bad/."""
    for name, content in (("good", CONTENT), ("bad", b"damaged")):
        (tmp_path / "www" / name).mkdir(parents=True)
        (tmp_path / "www" / name / "toy.npz").write_bytes(content)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def test_a_missing_file_is_downloaded_and_verified(tmp_path: Path, server: str) -> None:
    fetch.fetch([row(f"{server}/good/toy.npz")], tmp_path / "raw", retries=0, pause=0)
    assert (tmp_path / "raw" / "toy.npz").read_bytes() == CONTENT
    assert [p.name for p in (tmp_path / "raw").iterdir()] == ["toy.npz"], "no partial file is left"


def test_mirrors_are_tried_in_order_after_a_damaged_or_absent_file(tmp_path: Path, server: str) -> None:
    addresses = (f"{server}/absent/toy.npz", f"{server}/good/toy.npz")
    fetch.fetch([row(f"{server}/bad/toy.npz", mirrors=addresses)], tmp_path, retries=0, pause=0)
    assert (tmp_path / "toy.npz").read_bytes() == CONTENT


def test_a_mirror_of_the_user_comes_first(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", url="https://example.org/toy.npz", mirrors="https://b.example.org/toy.npz")
    (found,) = read_sources(table, "toy", "http://127.0.0.1/m/")
    assert found.urls == ("http://127.0.0.1/m/toy.npz", "https://example.org/toy.npz", "https://b.example.org/toy.npz")


def test_a_damaged_download_never_gets_its_name_and_is_reported(tmp_path: Path, server: str) -> None:
    with pytest.raises(InputError, match=r"toy: toy\.npz could not be obtained .*checksum sha256:.*expected sha256:"):
        fetch.fetch([row(f"{server}/bad/toy.npz")], tmp_path / "raw", retries=0, pause=0)
    assert not list((tmp_path / "raw").iterdir())


def test_a_file_already_there_is_used_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "toy.npz").write_bytes(CONTENT)
    fetch.fetch([row("http://127.0.0.1:9/unreachable", size=len(CONTENT))], tmp_path, retries=0, pause=0)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (row(checksum="md5:" + "0" * 32), "toy: .*toy.npz has checksum md5:.*, expected md5:0000"),
        (row(size=3), "toy: .*toy.npz has 14 bytes, expected 3"),
    ],
)
def test_a_file_there_that_differs_is_named_with_expected_and_found(tmp_path: Path, stated: Row, message: str) -> None:
    (tmp_path / "toy.npz").write_bytes(CONTENT)
    with pytest.raises(InputError, match=message):
        fetch.fetch([stated], tmp_path, retries=0, pause=0)


def test_without_a_network_the_message_says_where_to_put_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Put the file at .*raw/toy\.npz by hand"):
        fetch.fetch([row("http://127.0.0.1:9/toy.npz")], tmp_path / "raw", retries=1, pause=0)


def test_a_path_that_does_not_exist_names_its_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets\.cifar10\.path: .*nowhere does not exist"):
        obtain("cifar10", "image_folder", tmp_path / "nowhere", TABLE, tmp_path, None, 0, 0, False)


@pytest.mark.parametrize(("dataset", "source"), [("mimic-iv", "mimic_iv"), ("cifar10", "image_folder")])
def test_a_source_with_nothing_to_download_asks_for_its_path(tmp_path: Path, dataset: str, source: str) -> None:
    with pytest.raises(InputError, match=rf"datasets\.{dataset}\.path is not set"):
        obtain(dataset, source, None, TABLE, tmp_path, None, 0, 0, False)


def test_an_own_folder_without_what_the_source_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets\.challenge2019\.path: found no .*psv"):
        obtain("challenge2019", "challenge2019", tmp_path, TABLE, tmp_path, None, 0, 0, False)


def test_an_own_file_is_recorded_with_its_checksum_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "own.npz").write_bytes(CONTENT)
    raw = obtain("pathmnist", "medmnist", tmp_path / "own.npz", TABLE, tmp_path, None, 0, 0, False)
    assert raw.files[0]["checksum"] == "sha256:" + hashlib.sha256(CONTENT).hexdigest()
    assert raw.version == "as provided"
    raw.write(tmp_path / "raw.json")
    assert Raw.read(tmp_path / "raw.json") == raw
    assert raw.find() == [tmp_path / "own.npz"]


def test_many_files_are_recorded_as_a_tree_that_changes_with_any_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LISTED_ONE_BY_ONE", 2)
    paths = [tmp_path / "set" / f"p00000{n}.psv" for n in range(3)]
    (tmp_path / "set").mkdir()
    for path in paths:
        path.write_text("a")
    (before,) = describe_files(paths, tmp_path)
    assert before["file"] == "set/ (3 files)"
    assert before["size"] == 3
    paths[1].write_text("b")
    assert describe_files(paths, tmp_path)[0]["checksum"] != before["checksum"]


@pytest.mark.parametrize("values", [{"checksum": "crc:1"}, {"size": "big"}, {"file": "../toy.npz"}])
def test_a_malformed_row_is_named_by_its_line(tmp_path: Path, values: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"t\.csv, line 2: "):
        read_sources(write_table(tmp_path / "t.csv", **values), "toy", None)


def test_the_sources_agree_with_the_catalogues_of_their_libraries() -> None:
    mne = pytest.importorskip("mne.datasets.sleep_physionet")
    with (Path(mne.__file__).parent / "age_records.csv").open() as stream:
        catalogue = {entry["fname"]: f"sha1:{entry['sha']}" for entry in csv.DictReader(stream)}
    assert {r.file: r.checksum for r in read_sources(TABLE, "sleepedf", None)} == catalogue


def test_every_downloadable_row_has_an_https_address_and_a_licence() -> None:
    for dataset in ("pathmnist", "cifar10", "sleepedf", "challenge2019"):
        for entry in read_sources(TABLE, dataset, None):
            assert entry.urls
            assert all(url.startswith("https://") for url in entry.urls)
            assert entry.licence
            assert entry.checksum or "no checksum" in entry.access
