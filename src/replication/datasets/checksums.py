"""Checksums of files, and of folders and archives that hold many."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TREE = "sha256-tree:"
LISTED_ONE_BY_ONE = 1000  # More files than this are recorded as one tree a folder, to keep dataset.json short.
_BLOCK = 2**20


def checksum_of(path: Path, algorithm: str = "sha256") -> str:
    """Return `algorithm:hex` of the bytes of a file."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def tree_checksum(checksums: Iterable[tuple[str, str]]) -> str:
    """Return TREE and the sha256 of the lines "name sha256:hex" of files, given as (name, checksum), in their order."""
    return TREE + hashlib.sha256("".join(f"{name} {value}\n" for name, value in checksums).encode()).hexdigest()


def describe_files(paths: Iterable[Path], base: Path) -> list[dict[str, Any]]:
    """Return file (relative to `base`), size and sha256 of each path, sorted.

    More than LISTED_ONE_BY_ONE files become one entry for each folder, with the checksum of its tree.
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
            "checksum": tree_checksum((m["file"], m["checksum"]) for m in members),
        }
        for name, members in sorted(trees.items())
    ]
