"""Raw files of a dataset: found where they are, or downloaded, and verified either way.

What a dataset consists of is a table of sources (`workflow/data_sources.csv`): dataset, version, file, url, mirrors
(space separated, tried in order), size (bytes), checksum (`algorithm:hex`), licence, access.
"""

import csv
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from clai.errors import InputError
from clai.logs import logger

COLUMNS = ("dataset", "version", "file", "url", "mirrors", "size", "checksum", "licence", "access")
# The sources, each a module of this package, and what each reads in a folder of raw files.
SOURCES: dict[str, tuple[str, ...]] = {
    "cifar10": ("cifar-10-python.tar.gz",),
    "image_folder": ("**/*.jpg", "**/*.jpeg", "**/*.png"),
    "medmnist": ("*.npz",),
    "sleep_edf": ("**/*-PSG.edf", "**/*-Hypnogram.edf"),
    "mimic_iv": ("hosp/*.csv.gz", "icu/*.csv.gz"),
    "challenge2019": ("**/p*.psv", "*training_set*.zip", "*challenge-2019*.zip"),
}
WHAT = {
    "cifar10": "cifar-10-python.tar.gz, or a folder that holds it",
    "image_folder": "a folder or a zip of images in <split>/<class>/<file> with the splits train and test",
    "medmnist": "a MedMNIST .npz, or a folder that holds one",
    "sleep_edf": "a folder with pairs of SC4ssNxx-PSG.edf and SC4ssNxx-Hypnogram.edf",
    "mimic_iv": "the folder of MIMIC-IV with hosp/ and icu/",
    "challenge2019": "a zip of .psv records, or a folder with such zips or with training_setA/ and training_setB/",
}
TREE = "sha256-tree:"
LISTED_ONE_BY_ONE = 1000  # a folder of more files is recorded as one tree, or dataset.json would hold nothing else
_BLOCK = 2**20


@dataclass(frozen=True)
class Row:
    """One file of a source as the table of sources states it; size None and checksum "" mean not stated."""

    dataset: str
    version: str
    file: str
    urls: tuple[str, ...]
    size: int | None
    checksum: str
    licence: str
    access: str


@dataclass(frozen=True)
class Raw:
    """The verified raw files of a dataset, as `raw.json` holds them.

    path: the folder (or the single file) that the source's module reads. files: file, size, checksum of each.
    """

    dataset: str
    source: str
    version: str
    path: Path
    files: tuple[dict[str, Any], ...]
    licence: str
    access: str
    miniature: bool

    def description(self, title: str) -> dict[str, Any]:
        """The entries of `dataset.json` that say where the data come from."""
        return {
            "dataset": self.dataset,
            "title": f"{title} (miniature synthetic)" if self.miniature else title,
            "source": self.source,
            "version": self.version,
            "miniature": self.miniature,
            "files": list(self.files),
            "licence": self.licence,
            "access": self.access,
        }

    def find(self) -> list[Path]:
        """The raw files: those of the manifest, or, where it records trees, all that the source reads in `path`."""
        if self.path.is_file():
            return [self.path]
        if any(f["checksum"].startswith(TREE) for f in self.files):
            return matching(self.path, SOURCES[self.source])
        return [self.path / f["file"] for f in self.files]

    def write(self, path: Path) -> None:
        """Write the manifest `raw.json`."""
        values = asdict(self) | {"path": str(self.path), "files": list(self.files)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Raw":
        """Read a manifest that `write` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        return cls(**values | {"path": Path(values["path"]), "files": tuple(values["files"])})


def matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Files below `folder` that match one of the glob patterns, sorted, hidden ones left out."""
    found = {p for pattern in patterns for p in folder.glob(pattern) if p.is_file() and not p.name.startswith(".")}
    return sorted(found)


def read_sources(table: Path, dataset: str, mirror: str | None) -> list[Row]:
    """Rows of `dataset` in a table of sources; `mirror` with a file's name appended is its first address.

    Raises InputError for a missing column, dataset or malformed value.
    """
    with table.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{table}: found columns {reader.fieldnames}, expected {', '.join(COLUMNS)}")
        rows = [
            _row(values, mirror, f"{table}, line {n}")
            for n, values in enumerate(reader, 2)
            if values["dataset"] == dataset
        ]
    if not rows:
        raise InputError(f"{table}: found no row of dataset '{dataset}'; add one for each of its files")
    return rows


def _row(values: dict[str, str], mirror: str | None, where: str) -> Row:
    checksum = values["checksum"]
    if checksum and checksum.partition(":")[0] not in hashlib.algorithms_guaranteed:
        raise InputError(f"{where}: checksum '{checksum}' is not algorithm:hex with a known algorithm")
    if values["size"] and not values["size"].isdigit():
        raise InputError(f"{where}: size '{values['size']}' is not a number of bytes")
    if Path(values["file"]).is_absolute() or ".." in Path(values["file"]).parts:
        raise InputError(f"{where}: file '{values['file']}' leaves the folder of its dataset")
    first = f"{mirror.rstrip('/')}/{values['file']}" if mirror else ""
    return Row(
        dataset=values["dataset"],
        version=values["version"],
        file=values["file"],
        urls=tuple(u for u in (first, values["url"], *values["mirrors"].split()) if u),
        size=int(values["size"]) if values["size"] else None,
        checksum=checksum,
        licence=values["licence"],
        access=values["access"],
    )


def checksum_of(path: Path, algorithm: str = "sha256") -> str:
    """`algorithm:hex` of a file's bytes."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def verify(path: Path, row: Row) -> None:
    """Raise InputError, naming source, file, expected and found, unless `path` has the stated size and checksum."""
    if row.size is not None and path.stat().st_size != row.size:
        raise InputError(
            f"{row.dataset}: {path} has {path.stat().st_size} bytes, expected {row.size}. The file is incomplete or of "
            "another version: delete it and run again."
        )
    if row.checksum:
        found = checksum_of(path, row.checksum.partition(":")[0])
        if found != row.checksum:
            raise InputError(
                f"{row.dataset}: {path} has checksum {found}, expected {row.checksum}. The file is damaged or of "
                "another version: delete it and run again."
            )


def download(row: Row, folder: Path, retries: int, pause: float) -> Path:
    """Download one file into `folder`, verified before it gets its name.

    Every address is tried in order, `retries` more times each, with `pause` seconds before the first repeat and twice
    as long before each further one. Raises InputError when none delivers, saying where to put the file by hand, and
    when what arrives does not have the stated checksum.
    """
    import pooch
    from requests.exceptions import RequestException

    target = folder / row.file
    target.parent.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    for url in row.urls:
        for attempt in range(retries + 1):
            if attempt:
                time.sleep(pause * 2 ** (attempt - 1))
            with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as temporary:
                partial = Path(temporary) / target.name
                try:
                    pooch.HTTPDownloader(progressbar=False, timeout=60)(url, str(partial), None)
                    verify(partial, row)
                except (OSError, RequestException) as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s: attempt %d failed: %s", url, attempt + 1, error)
                    continue
                except InputError as error:
                    failures.append(str(error).replace(str(partial), url))
                    logger.warning("%s", failures[-1])
                    break
                os.replace(partial, target)
                return target
    tried = "; ".join(failures[-3:]) if failures else "the table of sources gives no address"
    raise InputError(
        f"{row.dataset}: {row.file} could not be obtained ({tried}). Access: {row.access}. "
        f"Put the file at {target.resolve()} by hand and run again."
    )


def fetch(rows: Sequence[Row], folder: Path, retries: int, pause: float) -> None:
    """Have every file of `rows` in `folder`: those already there are verified, the others downloaded."""
    for number, row in enumerate(rows, 1):
        path = folder / row.file
        if path.is_file():
            verify(path, row)
        else:
            logger.info("%s: file %d of %d, %s", row.dataset, number, len(rows), row.file)
            download(row, folder, retries, pause)


def describe_files(paths: Iterable[Path], base: Path) -> list[dict[str, Any]]:
    """File, size and sha256 of each path, named relative to `base` and sorted.

    More than LISTED_ONE_BY_ONE files become one entry a folder, whose checksum TREE is the sha256 of the lines
    "name sha256:hex" of its files in order.
    """
    entries = [
        {"file": p.relative_to(base).as_posix(), "size": p.stat().st_size, "checksum": checksum_of(p)}
        for p in sorted(paths)
    ]
    if len(entries) <= LISTED_ONE_BY_ONE:
        return entries
    trees: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        trees.setdefault(str(Path(str(entry["file"])).parent), []).append(entry)
    return [
        {
            "file": f"{name}/ ({len(members)} files)",
            "size": sum(m["size"] for m in members),
            "checksum": TREE
            + hashlib.sha256("".join(f"{m['file']} {m['checksum']}\n" for m in members).encode()).hexdigest(),
        }
        for name, members in sorted(trees.items())
    ]


def obtain(
    dataset: str,
    source: str,
    path: Path | None,
    table: Path,
    folder: Path,
    mirror: str | None,
    retries: int,
    pause: float,
    miniature: bool,
) -> Raw:
    """The raw files of a dataset, verified.

    With `path` (the user's own file or folder) nothing is downloaded and the checksums found are recorded as they are;
    otherwise the rows of `table` say what `folder` must hold. Raises InputError naming `datasets.<dataset>.path` when
    `path` does not exist, holds nothing that the source reads, or is needed and not set.
    """
    key = f"datasets.{dataset}.path"
    if source not in SOURCES:
        raise InputError(f"datasets.{dataset}.source: found '{source}', expected one of {', '.join(SOURCES)}")
    rows = read_sources(table, dataset, mirror)
    if path is None:
        last = [pattern.rpartition("/")[2] for pattern in SOURCES[source]]
        if not all(any(fnmatch(Path(row.file).name, pattern) for pattern in last) for row in rows):
            raise InputError(
                f"{key} is not set, and source '{source}' has nothing to download (access: {rows[0].access}). Set "
                f"{key} to your copy: {WHAT[source]}."
            )
        fetch(rows, folder, retries, pause)
        files = describe_files([folder / row.file for row in rows], folder)
        version, path = rows[0].version, folder
    else:
        if not path.exists():
            raise InputError(
                f"{key}: {path} does not exist; expected {WHAT[source]}. Correct {key}, or set it to null to use the "
                "files of data_dir."
            )
        found = [path] if path.is_file() else matching(path, SOURCES[source])
        if not found:
            raise InputError(f"{key}: found no {' or '.join(SOURCES[source])} in {path}; expected {WHAT[source]}")
        files = describe_files(found, path.parent if path.is_file() else path)
        version = "as provided"
    return Raw(
        dataset=dataset,
        source=source,
        version=version,
        path=path,
        files=tuple(files),
        licence=rows[0].licence,
        access=rows[0].access,
        miniature=miniature,
    )
