"""Find or download the raw files of a dataset, verify them, and keep a manifest of them."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.datasets.checksums import TREE, checksum_of, describe_files
from replication.datasets.download import DownloadLimits, fetch, verify
from replication.datasets.sources import Row, read_sources, source_module

logger = logging.getLogger(__name__)


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
    checksums. They are of the published version where they have the published checksums. Otherwise `folder` must have, or
    gets, the files that `table` lists.

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
    stated = read_sources(table, dataset)
    last = [pattern.rpartition("/")[2] for pattern in module.FILES]
    rows = [row for row in stated if any(fnmatch(Path(row.file).name, pattern) for pattern in last)]
    rows += module.catalogued(settings) if hasattr(module, "catalogued") else []
    if settings["path"] is None:
        if hasattr(module, "choose"):
            rows = module.choose(rows, settings)
        if not rows:
            access = f"access: {stated[0].access}" if stated else f"{table} has no row of it"
            raise InputError(
                f"{key} is not set, and source '{settings['source']}' has nothing to download ({access}). Set {key} to "
                f"your copy: {module.EXPECTS}."
            )
        if mirror:
            rows = [replace(row, urls=(f"{mirror.rstrip('/')}/{row.file}", *row.urls)) for row in rows]
        fetch(rows, folder, limits)
        path, base, paths = folder, folder, [folder / row.file for row in rows]
        if rows[0].content:
            _verify_content(module, paths[0], rows[0])
        official: Row | None = rows[0]
    else:
        path = Path(settings["path"])
        paths = _own_files(path, module, key)
        base = path.parent if path.is_file() else path
        if getattr(module, "OFFICIAL_ONLY", False):
            official = rows[0] if rows else None
            if official and official.content:
                _verify_content(module, path, official)
            elif official:
                verify(paths[0], official)
        else:
            official = _published(dataset, paths, rows)
    described = official or (stated[0] if stated else None)
    return Raw(
        dataset=dataset,
        source=settings["source"],
        version=official.version if official else "as provided",
        path=path,
        files=tuple(describe_files(paths, base)),
        licence=described.licence if described else "not stated",
        access=described.access if described else "as provided",
        miniature=miniature,
    )


def _own_files(path: Path, module: Any, key: str) -> list[Path]:
    """Return the files that a source reads at the user's `path`; raises InputError, naming the key, where there are none."""
    if not path.exists():
        raise InputError(
            f"{key}: {path} does not exist; expected {module.EXPECTS}. Correct {key}, or set it to null to use the "
            "files of data_dir."
        )
    paths = [path] if path.is_file() else matching(path, module.FILES)
    if not paths:
        raise InputError(f"{key}: found no {' or '.join(module.FILES)} in {path}; expected {module.EXPECTS}")
    return paths


def _verify_content(module: Any, path: Path, row: Row) -> None:
    """Raise InputError, naming expected and found, unless what the source reads at `path` has the checksum of the row."""
    found = module.content(path)
    if found != row.content:
        raise InputError(
            f"{row.dataset}: {path} holds other files than {row.version}: their checksum is {found}, expected {row.content}. "
            f"Delete it and run again; or name another source for it in datasets.{row.dataset}.source."
        )


def _published(dataset: str, paths: Sequence[Path], rows: Sequence[Row]) -> Row | None:
    """Return the first of the rows whose checksums the files have, whatever their names; None unless each file has one."""
    by_checksum = {row.checksum: row for row in reversed(rows) if row.checksum}
    algorithms = sorted({checksum.partition(":")[0] for checksum in by_checksum})
    found = []
    for path in paths:
        checksums = (checksum_of(path, algorithm) for algorithm in algorithms)
        row = next((by_checksum[checksum] for checksum in checksums if checksum in by_checksum), None)
        if row is None:
            if by_checksum:
                logger.info("%s: %s has none of the published checksums: recorded as provided", dataset, path)
            return None
        found.append(row)
    logger.info("%s: every file (%d) has its published checksum: %s", dataset, len(found), found[0].version)
    return found[0]
