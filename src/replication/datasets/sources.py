"""The raw files of a dataset: which it needs, where they come from, and a manifest of the verified ones.

An entry of `datasets` in the configuration names its source, one of `SOURCES`. The table of sources
(`workflow/config/data_sources.csv`) lists the files of each dataset, with address, checksum (`algorithm:hex`) and licence.
"""

import csv
import hashlib
import json
import logging
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from clailearn.errors import InputError
from replication.datasets.files import checksum_of, describe_files, matching, shortened
from replication.runs.config_check import SOURCES
from replication.runs.registry import read_json

if TYPE_CHECKING:
    from replication.datasets.prepared import Writer

logger = logging.getLogger(__name__)

RETRIES = 3  # further attempts at an address
TIMEOUT = 60.0  # seconds without a byte after which an attempt has failed


class Row(NamedTuple):
    """A file in the table of sources, by its columns; an address or a checksum that is not stated is empty."""

    dataset: str
    version: str
    file: str
    url: str
    checksum: str
    licence: str
    access: str


@dataclass(frozen=True)
class Raw:
    """The verified raw files of a dataset, in a folder or a single file, as `raw.json` holds them."""

    dataset: str
    source: str
    version: str
    path: Path
    files: Sequence[dict[str, Any]]
    licence: str
    access: str
    miniature: bool

    def find(self) -> list[Path]:
        """Return the files of the manifest."""
        return [self.folder / listed["file"] for listed in self.files]

    @cached_property
    def folder(self) -> Path:
        """Return the folder that names in the manifest are relative to."""
        one_file = self.path.is_file() or any(listed["file"] == self.path.name for listed in self.files)
        return self.path.parent if one_file else self.path

    def find_one(self) -> Path:
        """Return the file of a source that reads one; raise InputError for several."""
        path, *others = self.find()
        if others:
            found = f"found {len(others) + 1} files in {self.path}"
            raise InputError(f"datasets.{self.dataset}.path: {found}, expected one. Set it to one file.")
        return path

    def check_sizes(self, manifest: Path) -> None:
        """Raise InputError for a file that is missing or has another size than in `manifest`."""
        for listed in self.files:
            path, size = self.folder / listed["file"], listed["size"]
            state = f"has {path.stat().st_size} bytes" if path.is_file() else "is not there"
            if state != f"has {size} bytes":
                raise InputError(
                    f"{self.dataset}: {path} {state}, expected {size} bytes as {manifest} has it: it has changed since it was "
                    f"verified. Put it back; or add `--forcerun {manifest}` to your snakemake command to verify it anew."
                )

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False, default=str)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Raw":
        values = read_json(path)
        return cls(**values | {"path": Path(values["path"])})


@dataclass(frozen=True)
class Source:
    """A format that raw files have.

    files: glob patterns of the files that it reads in a folder.
    expects: what `path` should point to, in words.
    prepare: writes the prepared form of raw files, by the settings of the entry and a seed.
    named: returns the files that it reads by those found: also the ones that a table among them names.
    choose: returns the rows of the table of sources that the settings need.
    catalogued: returns rows that the source itself knows, beside those of the table.
    unpack: returns the files that it reads, all in one folder, where needed taken out of an archive into a folder.
    official: the algorithm of the table's checksums, if what `path` names, too, must have them.
    """

    files: Sequence[str]
    expects: str
    prepare: "Callable[[Raw, Writer, Mapping[str, Any], int], None]"
    named: Callable[[list[Path]], list[Path]] = lambda paths: paths
    choose: Callable[[Sequence[Row], Mapping[str, Any]], Sequence[Row]] = lambda rows, settings: rows
    catalogued: Callable[[Mapping[str, Any]], Sequence[Row]] = lambda settings: ()
    unpack: Callable[[Sequence[Path], Path], list[Path]] | None = None
    official: str | None = None

    def own_files(self, path: Path, key: str) -> list[Path]:
        """Return the files that it reads at the user's `path`; raise InputError, naming the key, where there are none."""
        if not path.exists():
            raise InputError(f"{key}: {path} does not exist; expected {self.expects}. Correct {key}.")
        paths = [path] if path.is_file() else matching(path, self.files)
        if not paths:
            found = ", ".join(sorted(inner.name for inner in path.iterdir())[:5]) or "nothing"
            raise InputError(f"{key}: found {found} in {path}, no {' or '.join(self.files)}; expected {self.expects}")
        return self.named(paths)


def source_of(name: str) -> Source:
    """Return the source that an entry names: one of `SOURCES`, as the check of the configuration sees to."""
    return resolve_name(SOURCES[name])


def read_sources(table: Path, dataset: str) -> list[Row]:
    """Return the rows of `dataset` in a table of sources, which may be none."""
    with table.open(newline="", encoding="utf-8") as stream:
        return [Row(**line) for line in csv.DictReader(stream) if line["dataset"] == dataset]


def verify(path: Path, checksum: str, dataset: str) -> None:
    """Raise InputError, naming dataset, file, expected and found, unless a file has the checksum `algorithm:hex`.

    The one file without a checksum, which its server packs on demand, must be a complete zip.
    """
    found = checksum_of(path, checksum.partition(":")[0]) if checksum else "another file"
    if found != checksum and not (checksum == "" and zipfile.is_zipfile(path)):
        raise InputError(
            f"{dataset}: {path}: found {found}, expected {checksum or 'a complete zip'}. The file is cut short, damaged or of "
            "another version. Replace it, or remove it to have it downloaded, and run again."
        )


def download(dataset: str, rows: Sequence[Row], folder: Path) -> None:
    """Verify the files of `rows` in `folder`, and download the others; raise InputError, with the place to put a file by hand."""
    import pooch

    store = pooch.create(
        path=folder,
        base_url="",
        registry={row.file: row.checksum or None for row in rows},
        urls={row.file: row.url for row in rows},
        retry_if_failed=RETRIES,
    )
    # Without "identity" a server may declare a .gz as compressed text, which would arrive unpacked.
    downloader = pooch.HTTPDownloader(
        progressbar=True, chunk_size=2**16, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}
    )
    for number, row in enumerate(rows, 1):
        path = folder / row.file
        if not path.is_file():
            try:
                store.fetch(row.file, downloader=downloader)
            except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's ValueErrors
                found = f"{row.file} could not be obtained ({error}). Access: {row.access}"
                remedy = f"Put the file at {path.resolve()} by hand and run again."
                raise InputError(f"{dataset}: {found}. {remedy}") from error
        verify(path, row.checksum, dataset)
        logger.info("%s: file %d of %d, %s, is verified", dataset, number, len(rows), row.file)


def obtain(dataset: str, settings: Mapping[str, Any], table: Path, folder: Path, miniature: bool) -> Raw:
    """Return the verified raw files of a dataset.

    With `path` in the settings (a file or folder of the user) nothing is downloaded, and the files are recorded with their
    checksums. They are of the published version where they have the published checksums. Otherwise `folder` must have, or
    gets, the files that `table` lists. Raises InputError, naming `datasets.<dataset>.path` where that is at fault.
    """
    key = f"datasets.{dataset}.path"
    source = source_of(settings["source"])
    stated = read_sources(table, dataset)
    last = [pattern.rpartition("/")[2] for pattern in source.files]
    rows = [row for row in stated if any(fnmatch(Path(row.file).name, pattern) for pattern in last)]
    rows += source.catalogued(settings)
    official: Row | None = None
    if settings["path"] is None:
        needed = source.choose(rows, settings)
        if not needed:
            access = f"access: {stated[0].access}" if stated else f"{table} has no row of it"
            found = f"{key} is not set, and source '{settings['source']}' has nothing to download ({access})"
            raise InputError(f"{found}. Set {key} to your copy: {source.expects}.")
        download(dataset, needed, folder)
        path, given, official = folder, [folder / row.file for row in needed], needed[0]
    else:
        path = Path(os.path.expanduser(settings["path"]))
        given = source.own_files(path, key)
    paths = given
    if source.unpack is not None:
        paths = source.unpack(given, folder)
        path = paths[0].parent
    try:
        official = official or _published(dataset, paths, rows, source.official is not None)
    except InputError:
        for unpacked in set(paths) - set(given):
            unpacked.unlink()
        raise
    described = official or (stated[0] if stated else None)
    return Raw(
        dataset=dataset,
        source=settings["source"],
        version=official.version if official else "as provided",
        path=path,
        files=describe_files(paths, path.parent if path.is_file() else path, source.official or "sha256"),
        licence=described.licence if described else "not stated",
        access=described.access if described else "as provided",
        miniature=miniature,
    )


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Turn the verified files of a dataset into its prepared form, `out_dir`; raise InputError, with the dataset's key."""
    from replication.datasets.prepared import writing  # imports numpy, which the Snakefile needs not

    # Killed attempts leave their temporary folders.
    for left in out_dir.parent.glob(f".{out_dir.name}-*"):
        shutil.rmtree(left)
    title = settings["title"] + (" (miniature synthetic)" if raw.miniature else "")
    origin = {**asdict(raw), "title": title, "files": shortened(raw.files)}
    del origin["path"]
    try:
        with writing(out_dir, origin) as writer:
            source_of(raw.source).prepare(raw, writer, settings, seed)
    except InputError as error:
        if (key := f"datasets.{raw.dataset}") in str(error):
            raise
        raise InputError(f"{key}: {error}") from error
    info = json.loads((out_dir / "dataset.json").read_text(encoding="utf-8"))
    classes = info["classes"] if info["kind"] != "recordings" else []
    if len(classes) == 2 and "positive" not in settings and not all(name.isdecimal() for name in classes):
        logger.warning(
            "datasets.%s: found the classes %s and %s, and no `positive`: the last one is. Set `positive` to one of them",
            raw.dataset, *classes,
        )  # fmt: skip


def state_of_raw(settings: Mapping[str, Any]) -> str:
    """Return a digest of names, sizes and times of the raw files at the user's `path`, which changes when one of them does."""
    states = []
    if settings["path"] is not None:
        with suppress(InputError):  # which `obtain` raises, too
            for path in source_of(settings["source"]).own_files(Path(os.path.expanduser(settings["path"])), ""):
                states.append((str(path), (found := path.stat()).st_size, found.st_mtime_ns))
    return hashlib.sha256(repr(states).encode()).hexdigest()


def _published(dataset: str, paths: Sequence[Path], rows: Sequence[Row], required: bool) -> Row | None:
    """Return the first of the rows whose checksums the files have; None, or where `required` an error, unless each has one."""
    by_checksum = {row.checksum: row for row in reversed(rows) if row.checksum}
    algorithms = sorted({checksum.partition(":")[0] for checksum in by_checksum})
    found = []
    for path in paths:
        checksums = [checksum_of(path, algorithm) for algorithm in algorithms]
        row = next((by_checksum[checksum] for checksum in checksums if checksum in by_checksum), None)
        if required and (row is None or Path(row.file).name != path.name):
            state = f"{path} has checksum {', '.join(checksums)}, not the official one of its name"
            remedy = "Replace the file by the official one, or name another source in the entry."
            raise InputError(f"datasets.{dataset}.path: {state}. {remedy}")
        if row is None:
            if by_checksum:
                logger.info("%s: %s has none of the published checksums: recorded as provided", dataset, path)
            return None
        found.append(row)
    logger.info("%s: every file (%d) has its published checksum: %s", dataset, len(found), found[0].version)
    return found[0]
