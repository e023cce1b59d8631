"""Each source from a server laid out like its own: what is downloaded there is prepared."""

import csv
import hashlib
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from replication.datasets.miniature.make import make
from replication.datasets.prepared import load
from replication.datasets.sources import COLUMNS, obtain, prepare
from support.loopback import Server, serving
from support.repository import CONFIG, REAL, SOURCES

MINI = yaml.safe_load((CONFIG / "mini.yaml").read_text())


def official(dataset: str) -> list[dict[str, str]]:
    with (SOURCES).open(newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["dataset"] == dataset]


def files_of(dataset: str, folder: Path) -> dict[str, bytes]:
    """The miniature's files under the names that the source gives them."""
    make(dataset, folder, 5)
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


def serve(dataset: str, server: Server, folder: Path) -> Path:
    """Serve a miniature at the paths of the official addresses; returns a table like the official one."""
    stated = official(dataset)
    table = folder / "data_sources.csv"
    with table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        for name, content in files_of(dataset, folder / "files").items():
            row = next((r for r in stated if r["file"] == name), stated[0])
            address = urlsplit(row["url"])
            path = address.path.replace(row["file"], name)
            server.files[path.lstrip("/")] = content
            checksum = ""
            if row["checksum"]:
                algorithm = row["checksum"].partition(":")[0]
                checksum = f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"
            url = f"{server.address}{path}" + (f"?{address.query}" if address.query else "")
            writer.writerow(row | {"file": name, "url": url, "checksum": checksum})
    return table


@pytest.mark.parametrize("dataset", ["pathmnist", "cifar10", "sleepedf", "challenge2019"])
def test_a_source_is_downloaded_and_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str) -> None:
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    settings: dict[str, Any] = REAL["datasets"][dataset] | MINI["datasets"][dataset]
    with serving() as server:
        table = serve(dataset, server, tmp_path)
        server.failing = 1
        raw = obtain(dataset, settings, table, tmp_path / "raw", False)
        asked = len(server.requests)
        assert asked == 1 + len(server.files)
        assert obtain(dataset, settings, table, tmp_path / "raw", False) == raw
        assert len(server.requests) == asked, "what is there is not downloaded again"
    assert not list((tmp_path / "raw").rglob(".*"))
    prepare(raw, tmp_path / "prepared", settings, 0)
    data = load(tmp_path / "prepared")
    assert sum(split["n"] for name, split in data.info["splits"].items() if "fold" not in name) > 0
    assert data.info["version"] == official(dataset)[0]["version"]
