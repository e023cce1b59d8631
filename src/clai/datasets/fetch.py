"""Raw files of a dataset: found where they are, or downloaded, and verified either way.

What a dataset consists of is a table of sources (`workflow/config/data_sources.csv`): dataset, version, file, url, mirrors
(space separated, tried in order), size (bytes), checksum (`algorithm:hex`), licence, access.
"""

import csv
import hashlib
import importlib.util
import json
import logging
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

from clai.errors import InputError

logger = logging.getLogger(__name__)

COLUMNS = ("dataset", "version", "file", "url", "mirrors", "size", "checksum", "licence", "access")
TREE = "sha256-tree:"
LISTED_ONE_BY_ONE = 1000  # a folder of more files is recorded as one tree, or dataset.json would hold nothing else
PROGRESS_SECONDS = 10.0
_BLOCK = 2**20
_TEMPORARY = {408, 425, 429}  # further answers beside 5xx after which the same address may yet deliver
# How files begin, for those whose source states no checksum: enough to tell an error page from the file.
_BEGINNINGS = {".zip": b"PK", ".npz": b"PK", ".gz": b"\x1f\x8b", ".edf": b"0"}


def source_module(source: str) -> Any:
    """The module of `clai.datasets` that reads a source.

    It has `FILES`, glob patterns of what it reads in a folder of raw files; `EXPECTS`, what to give as `path`, in
    words; `prepare(raw, out_dir, settings, seed)`; and, where the settings decide which files are needed,
    `choose(rows, settings)` from the rows of the table of sources to those needed. With `OFFICIAL_ONLY = True` the
    user's own file, too, must have the stated checksum. Raises InputError if there is no such module.
    """
    name = f"clai.datasets.{source}"
    module = import_module(name) if importlib.util.find_spec(name) else None
    if missing := [part for part in ("FILES", "EXPECTS", "prepare") if not hasattr(module, part)]:
        raise InputError(
            f"source '{source}': found no module {name} with {', '.join(missing)}. Correct `source` in config.yaml, or "
            "write the module (docs/extending.md)."
        )
    return module


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
class DownloadLimits:
    """How hard to try: config.yaml's `download`.

    retries: further attempts at each address. pause: seconds before the first of them, doubled before each next one.
    timeout: seconds without a byte after which an attempt has failed. parallel: files at a time.
    """

    retries: int
    pause: float
    timeout: float
    parallel: int


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
            return matching(self.path, source_module(self.source).FILES)
        return [self.path / f["file"] for f in self.files]

    def check_sizes(self, manifest: Path) -> None:
        """Raise InputError, naming file and sizes, where a file has gone or changed since `manifest` was written.

        Sizes only, so that it takes no time; files that the manifest records as trees are not looked at.
        """
        alone = not self.path.is_dir() and [f["file"] for f in self.files] == [self.path.name]
        for listed in self.files:
            path = self.path if alone else self.path / listed["file"]
            if listed["checksum"].startswith(TREE):
                continue
            found = f"has {path.stat().st_size} bytes" if path.is_file() else "is not there"
            if found != f"has {listed['size']} bytes":
                raise InputError(
                    f"{self.dataset}: {path} {found}, expected {listed['size']} bytes as {manifest} has it: the raw files have "
                    "changed since they were verified. Put the file back; or have them verified and recorded anew, with "
                    f"`--forcerun {manifest}` added to your snakemake command."
                )

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


def read_sources(table: Path, dataset: str) -> list[Row]:
    """Rows of `dataset` in a table of sources; none where the table does not know it.

    Raises InputError for a missing column or a malformed value.
    """
    with table.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{table}: found columns {reader.fieldnames}, expected {', '.join(COLUMNS)}")
        return [
            _row(values, f"{table}, line {n}") for n, values in enumerate(reader, 2) if values["dataset"] == dataset
        ]


def _row(values: dict[str, str], where: str) -> Row:
    checksum = values["checksum"]
    if checksum and checksum.partition(":")[0] not in hashlib.algorithms_guaranteed:
        raise InputError(f"{where}: checksum '{checksum}' is not algorithm:hex with a known algorithm")
    if values["size"] and not values["size"].isdigit():
        raise InputError(f"{where}: size '{values['size']}' is not a number of bytes")
    if Path(values["file"]).is_absolute() or ".." in Path(values["file"]).parts:
        raise InputError(f"{where}: file '{values['file']}' leaves the folder of its dataset")
    return Row(
        dataset=values["dataset"],
        version=values["version"],
        file=values["file"],
        urls=tuple(u for u in (values["url"], *values["mirrors"].split()) if u),
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
    """Raise InputError, naming source, file, expected and found, unless `path` is what the row states.

    That is its size and checksum; for a file without a checksum, that it begins (a zip: and ends) as such files do.
    """
    size = path.stat().st_size
    if row.size is not None and size != row.size:
        raise InputError(
            f"{row.dataset}: {path} has {size} bytes, expected {row.size}. The file is incomplete or of another "
            "version: delete it and run again."
        )
    if row.checksum:
        found = checksum_of(path, row.checksum.partition(":")[0])
        if found != row.checksum:
            raise InputError(
                f"{row.dataset}: {path} has checksum {found}, expected {row.checksum}. The file is damaged or of "
                "another version: delete it and run again."
            )
        return
    suffix = Path(row.file).suffix
    expected = _BEGINNINGS.get(suffix, b"")
    with path.open("rb") as stream:
        begins = stream.read(len(expected))
    if begins != expected or (expected == b"PK" and not zipfile.is_zipfile(path)):
        raise InputError(
            f"{row.dataset}: {path} begins with {begins!r} or is cut short, expected a complete {suffix} file. It may be "
            "an error page: delete it and run again."
        )


class _Partial:
    """The file of an unfinished download: what arrives is appended to it, and the next attempt goes on where it ends.

    Only a file with a stated checksum is continued: nothing else would tell two versions sewn together.
    """

    def __init__(self, path: Path, row: Row) -> None:
        self.path, self.row = path, row
        self.total = row.size
        self.told = time.monotonic()
        self.stream = path.open("ab")
        if not row.checksum:
            self.stream.truncate(0)
        self.start = self.stream.tell()

    def headers(self) -> dict[str, str]:
        # Without "identity" a server may announce a .gz as compressed text, which requests would then unpack.
        return {"Accept-Encoding": "identity"} | ({"Range": f"bytes={self.start}-"} if self.start else {})

    def begin(self, response: Any, **_: Any) -> None:
        """Hook of requests, called before any content is read: keep what is there only if the server goes on from it."""
        from requests.exceptions import RequestException

        if response.status_code not in (200, 206):
            return
        given = response.headers.get("Content-Range", "")
        if response.status_code == 200 or not given.startswith(f"bytes {self.start}-"):
            self.stream.truncate(0)
            self.start = 0
            if response.status_code == 206:
                raise RequestException(f"answered with the range '{given}', which was not asked for")
        length = response.headers.get("Content-Length", "")
        if self.total is None and length.isdigit():
            self.total = self.start + int(length)
        if self.total is not None:
            _require_space(self.path.parent, self.total - self.start, self.row)

    def write(self, chunk: bytes) -> None:
        self.stream.write(chunk)
        size = self.stream.tell()
        if self.row.size is not None and size > self.row.size:
            raise InputError(f"{self.row.dataset}: {self.path} has more than the {self.row.size} bytes expected")
        if time.monotonic() - self.told > PROGRESS_SECONDS:
            self.told = time.monotonic()
            of = "" if self.total is None else f" of {self.total / 1e6:.1f}"
            logger.info("%s: %s, %.1f%s MB", self.row.dataset, self.row.file, size / 1e6, of)

    def flush(self) -> None:
        self.stream.flush()

    def __enter__(self) -> "_Partial":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


def _require_space(folder: Path, needed: int, row: Row) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"{needed} bytes of {row.file} are still to come, and {free} are free")


def _attempt(url: str, part: Path, row: Row, timeout: float) -> bool:
    """One request, appended to `part` and verified; returns whether it went on from an earlier attempt."""
    import pooch

    with _Partial(part, row) as partial:
        if not (partial.start and partial.start == row.size):
            downloader = pooch.HTTPDownloader(
                timeout=timeout, chunk_size=2**16, headers=partial.headers(), hooks={"response": partial.begin}
            )
            downloader(url, partial, None)
        resumed = partial.start > 0
    try:
        verify(part, row)
    except InputError:
        part.unlink()
        if resumed:
            return False
        raise
    return True


def download(row: Row, folder: Path, effort: DownloadLimits) -> Path:
    """Download one file into `folder`, verified before it gets its name.

    Every address is tried in order; one that fails in a way that may pass (no connection, no byte for `timeout`
    seconds, cut off, 5xx) again after a pause, going on where it stopped. Raises InputError when none delivers, saying
    where to put the file by hand, and when it cannot be written; what has arrived by then is kept for the next run
    under a hidden name.
    """
    from requests.exceptions import HTTPError, RequestException

    target = folder / row.file
    part = target.with_name(f".{target.name}.part")
    failures: list[str] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for url in row.urls:
            attempt = 0
            while attempt <= effort.retries:
                if attempt:
                    time.sleep(effort.pause * 2 ** (attempt - 1))
                try:
                    if not _attempt(url, part, row, effort.timeout):
                        logger.warning("%s: what an earlier attempt left does not fit: from the start again", url)
                        continue
                    os.replace(part, target)
                    return target
                except HTTPError as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s", failures[-1])
                    status = 0 if error.response is None else error.response.status_code
                    if status == 416:  # nothing to go on from: what is there is longer than the file
                        part.unlink()
                    elif status < 500 and status not in _TEMPORARY:
                        break
                except RequestException as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s: attempt %d failed: %s", url, attempt + 1, error)
                except InputError as error:
                    part.unlink(missing_ok=True)
                    failures.append(str(error).replace(str(part), url))
                    logger.warning("%s", failures[-1])
                    break
                attempt += 1
    except OSError as error:
        raise InputError(
            f"{row.dataset}: {target} cannot be written ({error}). Make room or set data_dir to another folder, and run "
            "again: the download goes on from there."
        ) from error
    tried = "; ".join(failures[-3:]) if failures else "the table of sources gives no address"
    raise InputError(
        f"{row.dataset}: {row.file} could not be obtained ({tried}). Access: {row.access}. "
        f"Put the file at {target.resolve()} by hand and run again."
    )


def fetch(rows: Sequence[Row], folder: Path, effort: DownloadLimits) -> None:
    """Have every file of `rows` in `folder`: those already there are verified, the others downloaded, some at a time.

    The first failure stops the rest: files not yet begun are left, those on the way are finished.
    """
    done, lock = 0, threading.Lock()

    def have(row: Row) -> None:
        nonlocal done
        path = folder / row.file
        there = path.is_file()
        if there:
            verify(path, row)
        else:
            download(row, folder, effort)
        with lock:
            done += 1
            how = "verified" if there else "downloaded"
            logger.info("%s: file %d of %d, %s %s", row.dataset, done, len(rows), row.file, how)

    with ThreadPoolExecutor(effort.parallel) as executor:
        waiting = [executor.submit(have, row) for row in rows]
        try:
            for future in waiting:
                future.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


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
    settings: Mapping[str, Any],
    table: Path,
    folder: Path,
    mirror: str | None,
    effort: DownloadLimits,
    miniature: bool,
) -> Raw:
    """The raw files of a dataset, verified.

    settings: the dataset's entry in config.yaml, of which `source`, `path` and what the source's `choose` looks at are
    read. With `path` (the user's own file or folder) nothing is downloaded and the checksums found are recorded as they
    are; otherwise the rows of `table` say what `folder` must hold. `mirror`, with a file's name appended, is tried
    before the addresses of the table. Raises InputError naming `datasets.<dataset>.path` when `path` does not exist,
    holds nothing that the source reads, or is needed and not set.
    """
    key = f"datasets.{dataset}.path"
    module = source_module(settings["source"])
    path = None if settings["path"] is None else Path(settings["path"])
    rows = read_sources(table, dataset)
    if path is None:
        if hasattr(module, "choose"):
            rows = module.choose(rows, settings)
        last = [pattern.rpartition("/")[2] for pattern in module.FILES]
        if not rows or not all(any(fnmatch(Path(row.file).name, pattern) for pattern in last) for row in rows):
            access = f"access: {rows[0].access}" if rows else f"{table} has no row of it"
            raise InputError(
                f"{key} is not set, and source '{settings['source']}' has nothing to download ({access}). Set {key} to "
                f"your copy: {module.EXPECTS}."
            )
        if mirror:
            rows = [replace(row, urls=(f"{mirror.rstrip('/')}/{row.file}", *row.urls)) for row in rows]
        fetch(rows, folder, effort)
        files = describe_files([folder / row.file for row in rows], folder)
        version, path = rows[0].version, folder
    else:
        if not path.exists():
            raise InputError(
                f"{key}: {path} does not exist; expected {module.EXPECTS}. Correct {key}, or set it to null to use the "
                "files of data_dir."
            )
        found = [path] if path.is_file() else matching(path, module.FILES)
        if not found:
            raise InputError(f"{key}: found no {' or '.join(module.FILES)} in {path}; expected {module.EXPECTS}")
        if getattr(module, "OFFICIAL_ONLY", False):
            for row in rows[:1]:
                verify(found[0], row)
        files = describe_files(found, path.parent if path.is_file() else path)
        version = "as provided"
    return Raw(
        dataset=dataset,
        source=settings["source"],
        version=version,
        path=path,
        files=tuple(files),
        licence=rows[0].licence if rows else "not stated",
        access=rows[0].access if rows else "as provided",
        miniature=miniature,
    )
