"""The table of sources, which says where the raw files of each dataset come from, and the modules that read them.

The table (`workflow/config/data_sources.csv`) lists the files: dataset, version, file, url, mirrors (separated by spaces, tried
in order), size (bytes), checksum (`algorithm:hex`, or TREE and hex), licence, access.
"""

import csv
import hashlib
import importlib.util
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.datasets.checksums import TREE

COLUMNS = ("dataset", "version", "file", "url", "mirrors", "size", "checksum", "licence", "access")


def source_module(source: str) -> Any:
    """Return the module of `replication.datasets` that reads a source.

    The module has

    - `FILES`: glob patterns of the files that it reads in a folder;
    - `EXPECTS`: what `path` should point to, in words;
    - `prepare(raw, out_dir, settings, seed)`;
    - optionally `choose(rows, settings)`: the rows of the table of sources that the settings need;
    - optionally `catalogued(settings)`: rows that the source itself knows, beside those of the table;
    - optionally `content(path)`: the checksum of what it reads there, for an archive that its server packs on demand;
    - optionally `OFFICIAL_ONLY = True`: what `path` names, too, must have the checksum of the table.

    Raises InputError if there is no such module.
    """
    name = f"replication.datasets.{source}"
    module = import_module(name) if importlib.util.find_spec(name) else None
    if missing := [part for part in ("FILES", "EXPECTS", "prepare") if not hasattr(module, part)]:
        raise InputError(
            f"source '{source}': found no module {name} with {', '.join(missing)}. Correct `source` in config.yaml, or "
            "write the module (docs/extending.md)."
        )
    return module


@dataclass(frozen=True)
class Row:
    """A file in the table of sources; the size None and the checksums "" mean not stated.

    checksum: of the file. content: of what the source reads in it (`content` of its module), where the file itself is packed
    anew for each download.
    """

    dataset: str
    version: str
    file: str
    urls: tuple[str, ...]
    size: int | None
    checksum: str
    licence: str
    access: str
    content: str = ""


def read_sources(table: Path, dataset: str) -> list[Row]:
    """Return the rows of `dataset` in a table of sources, which may be none.

    Raises InputError for a file that is no table, other columns than COLUMNS, or a malformed row or value.
    """
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            header, *lines = csv.reader(stream)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(
            f"{table}: cannot be read as a table ({error}), expected CSV in UTF-8. Correct the file."
        ) from error
    if tuple(header) != COLUMNS:
        raise InputError(
            f"{table}: found columns {', '.join(header)}, expected {', '.join(COLUMNS)}. Correct the file."
        )
    rows = []
    for number, line in enumerate(lines, 2):
        if line[:1] != [dataset]:
            continue
        if len(line) != len(COLUMNS):
            raise InputError(
                f"{table}, line {number}: found {len(line)} fields, expected {len(COLUMNS)}. Correct the line."
            )
        rows.append(_row(dict(zip(COLUMNS, line, strict=True)), f"{table}, line {number}"))
    return rows


def _row(values: dict[str, str], where: str) -> Row:
    """Return a line of the table of sources as a Row; raises InputError, naming the line, for a malformed value."""
    stated = values["checksum"]
    checksum, content = ("", stated) if stated.startswith(TREE) else (stated, "")
    if checksum and checksum.partition(":")[0] not in hashlib.algorithms_guaranteed:
        raise InputError(f"{where}: checksum '{checksum}' is not algorithm:hex with a known algorithm")
    if values["size"] and not (values["size"].isascii() and values["size"].isdigit() and len(values["size"]) < 20):
        raise InputError(f"{where}: size '{values['size']}' is not a number of bytes")
    if not values["file"].isprintable():
        raise InputError(f"{where}: file '{values['file']}' is no name of a file")
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
        content=content,
    )
