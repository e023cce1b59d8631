"""Find or download the raw files of a dataset, and verify them.

The table of sources (`workflow/config/data_sources.csv`) lists the files: dataset, version, file, url, mirrors (separated by
spaces, tried in order), size (bytes), checksum (`algorithm:hex`), licence, access.
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
LISTED_ONE_BY_ONE = 1000  # More files than this are recorded as one tree a folder, to keep dataset.json short.
PROGRESS_SECONDS = 10.0
_BLOCK = 2**20
_TEMPORARY = {408, 425, 429}  # Answers, beside 5xx, after which a further attempt at the same address may succeed.
# First bytes of a file, to tell an error page from it where the source states no checksum.
_BEGINNINGS = {".zip": b"PK", ".npz": b"PK", ".gz": b"\x1f\x8b", ".edf": b"0"}


def source_module(source: str) -> Any:
    """Return the module of `clai.datasets` that reads a source.

    The module has

    - `FILES`: glob patterns of the files that it reads in a folder;
    - `EXPECTS`: what `path` should point to, in words;
    - `prepare(raw, out_dir, settings, seed)`;
    - optionally `choose(rows, settings)`: the rows of the table of sources that the settings need;
    - optionally `OFFICIAL_ONLY = True`: a file at `path`, too, must have the checksum of the table.

    Raises InputError if there is no such module.
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
    """A file in the table of sources; the size None and the checksum "" mean not stated."""

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
    """Limits of downloads: `download` in config.yaml.

    retries: further attempts at each address. pause: seconds before the first retry, doubled before each next one.
    timeout: seconds without a byte after which an attempt fails. parallel: files at a time.
    """

    retries: int
    pause: float
    timeout: float
    parallel: int


@dataclass(frozen=True)
class Raw:
    """The verified raw files of a dataset, as `raw.json` holds them.

    path: the folder, or the single file, that the module of the source reads. files: file, size and checksum of each.
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
        """Return the entries of `dataset.json` that say where the data come from."""
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
        """Return the files of the manifest, or, where it records trees, all files in `path` that the source reads."""
        if self.path.is_file():
            return [self.path]
        if any(f["checksum"].startswith(TREE) for f in self.files):
            return matching(self.path, source_module(self.source).FILES)
        return [self.path / f["file"] for f in self.files]

    def check_sizes(self, manifest: Path) -> None:
        """Raise InputError, naming file and sizes, for a file that is missing or has another size than in `manifest`.

        Compares sizes only, which is fast, and leaves out files that the manifest records as trees.
        """
        single = not self.path.is_dir() and [f["file"] for f in self.files] == [self.path.name]
        for listed in self.files:
            path = self.path if single else self.path / listed["file"]
            if listed["checksum"].startswith(TREE):
                continue
            state = f"has {path.stat().st_size} bytes" if path.is_file() else "is not there"
            if state != f"has {listed['size']} bytes":
                raise InputError(
                    f"{self.dataset}: {path} {state}, expected {listed['size']} bytes as {manifest} has it: the raw files have "
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
    """Return the files below `folder` that match one of the glob patterns, sorted, without hidden ones."""
    paths = {p for pattern in patterns for p in folder.glob(pattern) if p.is_file() and not p.name.startswith(".")}
    return sorted(paths)


def read_sources(table: Path, dataset: str) -> list[Row]:
    """Return the rows of `dataset` in a table of sources, which may be none.

    Raises InputError for other columns than COLUMNS or a malformed value.
    """
    with table.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{table}: found columns {reader.fieldnames}, expected {', '.join(COLUMNS)}")
        return [
            _row(values, f"{table}, line {n}") for n, values in enumerate(reader, 2) if values["dataset"] == dataset
        ]


def _row(values: dict[str, str], where: str) -> Row:
    """Return a line of the table of sources as a Row; raises InputError, naming the line, for a malformed value."""
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
    """Return `algorithm:hex` of the bytes of a file."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def verify(path: Path, row: Row) -> None:
    """Raise InputError, naming source, file, expected and found, unless `path` has the size and checksum of the row.

    Without a checksum, the file must begin as files of its suffix do, and a zip must also end as one.
    """
    size = path.stat().st_size
    if row.size is not None and size != row.size:
        raise InputError(
            f"{row.dataset}: {path} has {size} bytes, expected {row.size}. The file is incomplete or of another "
            "version: delete it and run again."
        )
    if row.checksum:
        checksum = checksum_of(path, row.checksum.partition(":")[0])
        if checksum != row.checksum:
            raise InputError(
                f"{row.dataset}: {path} has checksum {checksum}, expected {row.checksum}. The file is damaged or of "
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
    """The file of an unfinished download, to which each attempt appends.

    Only a file with a stated checksum is continued, because only the checksum reveals parts of two versions.
    """

    def __init__(self, path: Path, row: Row) -> None:
        self.path, self.row = path, row
        self.total = row.size
        self.last_report = time.monotonic()
        self.stream = path.open("ab")
        if not row.checksum:
            self.stream.truncate(0)
        self.start = self.stream.tell()

    def headers(self) -> dict[str, str]:
        """Return the headers of a request for the missing bytes."""
        # Without "identity" a server may declare a .gz as compressed text, which requests would unpack.
        return {"Accept-Encoding": "identity"} | ({"Range": f"bytes={self.start}-"} if self.start else {})

    def begin(self, response: Any, **_: Any) -> None:
        """Keep the bytes of earlier attempts only if the response continues them (a hook that requests calls before the content).

        Raises RequestException for another range than requested, and OSError without space for the rest.
        """
        from requests.exceptions import RequestException

        if response.status_code not in (200, 206):
            return
        content_range = response.headers.get("Content-Range", "")
        if response.status_code == 200 or not content_range.startswith(f"bytes {self.start}-"):
            self.stream.truncate(0)
            self.start = 0
            if response.status_code == 206:
                raise RequestException(f"answered with the range '{content_range}', which was not asked for")
        length = response.headers.get("Content-Length", "")
        if self.total is None and length.isdigit():
            self.total = self.start + int(length)
        if self.total is not None:
            _require_space(self.path.parent, self.total - self.start, self.row)

    def write(self, chunk: bytes) -> None:
        """Append a chunk; raises InputError for more bytes than the row states."""
        self.stream.write(chunk)
        size = self.stream.tell()
        if self.row.size is not None and size > self.row.size:
            raise InputError(f"{self.row.dataset}: {self.path} has more than the {self.row.size} bytes expected")
        if time.monotonic() - self.last_report > PROGRESS_SECONDS:
            self.last_report = time.monotonic()
            of = "" if self.total is None else f" of {self.total / 1e6:.1f}"
            logger.info("%s: %s, %.1f%s MB", self.row.dataset, self.row.file, size / 1e6, of)

    def flush(self) -> None:
        self.stream.flush()

    def __enter__(self) -> "_Partial":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


def _require_space(folder: Path, needed: int, row: Row) -> None:
    """Raise OSError unless `needed` bytes are free in the folder."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"{needed} bytes of {row.file} are still to come, and {free} are free")


def _attempt(url: str, part: Path, row: Row, timeout: float) -> bool:
    """Request the missing bytes, append them to `part` and verify the file.

    Returns False, with `part` deleted, where the bytes of an earlier attempt do not fit. Raises InputError where a file from
    a single attempt is wrong.
    """
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


def download(row: Row, folder: Path, limits: DownloadLimits) -> Path:
    """Download one file into `folder`, and verify it before it gets its name.

    Tries the addresses in order. After a failure that may pass (no connection, no byte for `timeout` seconds, a connection
    cut off, 5xx) the same address is tried again after a pause, from the byte where it stopped.

    Raises InputError when no address delivers, saying where to put the file by hand, and when the file cannot be written.
    The bytes that arrived stay under a hidden name for the next run.
    """
    from requests.exceptions import HTTPError, RequestException

    target = folder / row.file
    part = target.with_name(f".{target.name}.part")
    failures: list[str] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for url in row.urls:
            attempt = 0
            while attempt <= limits.retries:
                if attempt:
                    time.sleep(limits.pause * 2 ** (attempt - 1))
                try:
                    if not _attempt(url, part, row, limits.timeout):
                        logger.warning("%s: what an earlier attempt left does not fit: from the start again", url)
                        continue
                    os.replace(part, target)
                    return target
                except HTTPError as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s", failures[-1])
                    status = 0 if error.response is None else error.response.status_code
                    if status == 416:  # The part is longer than the file: start again.
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
    reason = "; ".join(failures[-3:]) if failures else "the table of sources gives no address"
    raise InputError(
        f"{row.dataset}: {row.file} could not be obtained ({reason}). Access: {row.access}. "
        f"Put the file at {target.resolve()} by hand and run again."
    )


def fetch(rows: Sequence[Row], folder: Path, limits: DownloadLimits) -> None:
    """Verify the files of `rows` that are in `folder`, and download the others, several at a time.

    After the first failure no further file is begun; downloads on the way finish. Raises the InputError of that failure.
    """
    done, lock = 0, threading.Lock()

    def obtain_file(row: Row) -> None:
        nonlocal done
        path = folder / row.file
        present = path.is_file()
        if present:
            verify(path, row)
        else:
            download(row, folder, limits)
        with lock:
            done += 1
            how = "verified" if present else "downloaded"
            logger.info("%s: file %d of %d, %s %s", row.dataset, done, len(rows), row.file, how)

    with ThreadPoolExecutor(limits.parallel) as executor:
        waiting = [executor.submit(obtain_file, row) for row in rows]
        try:
            for future in waiting:
                future.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def describe_files(paths: Iterable[Path], base: Path) -> list[dict[str, Any]]:
    """Return file (relative to `base`), size and sha256 of each path, sorted.

    More than LISTED_ONE_BY_ONE files become one entry for each folder. Its checksum is TREE and the sha256 of the lines
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
    limits: DownloadLimits,
    miniature: bool,
) -> Raw:
    """Return the verified raw files of a dataset.

    With `path` in the settings (a file or folder of the user) nothing is downloaded, and the files are recorded with their
    checksums. Otherwise `folder` must have, or gets, the files that `table` lists.

    Args:
        settings: the dataset's entry in config.yaml: `source`, `path` and the keys that `choose` of the source reads.
        folder: where downloads go.
        mirror: an address that is tried, with the file name appended, before those of the table.

    Raises:
        InputError: naming `datasets.<dataset>.path` when `path` does not exist, holds nothing that the source reads, or is
            needed and not set; also for any file that `fetch` refuses.
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
        fetch(rows, folder, limits)
        files = describe_files([folder / row.file for row in rows], folder)
        version, path = rows[0].version, folder
    else:
        if not path.exists():
            raise InputError(
                f"{key}: {path} does not exist; expected {module.EXPECTS}. Correct {key}, or set it to null to use the "
                "files of data_dir."
            )
        paths = [path] if path.is_file() else matching(path, module.FILES)
        if not paths:
            raise InputError(f"{key}: found no {' or '.join(module.FILES)} in {path}; expected {module.EXPECTS}")
        if getattr(module, "OFFICIAL_ONLY", False):
            for row in rows[:1]:
                verify(paths[0], row)
        files = describe_files(paths, path.parent if path.is_file() else path)
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
