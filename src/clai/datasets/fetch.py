"""Find or download the raw files of a dataset, verify them, and keep a manifest of them."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from clai.datasets.checksums import TREE, describe_files
from clai.datasets.download import DownloadLimits, fetch, verify
from clai.datasets.sources import read_sources, source_module
from clai.errors import InputError

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
