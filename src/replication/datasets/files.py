"""Files from outside: their checksums, archives of them, and the one message for a file that cannot be read."""

import glob
import hashlib
import logging
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from clailearn.errors import InputError, kind_of
from clailearn.limits import LARGEST_FILE, check_unpacked
from clailearn.pictures import files_below

logger = logging.getLogger(__name__)

LISTED_ONE_BY_ONE = 1000  # More files than this are recorded as one tree, to keep dataset.json short.


@contextmanager
def reading(path: Path | str, expected: str) -> Iterator[None]:
    """Turn whatever a library raises about a file, or a part of it, within the block into one InputError.

    A zip, which an .npz is, too, must not unpack to more than `clailearn.limits` has.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                check_unpacked(path, sum(member.file_size for member in packed.infolist()))
        yield
    except InputError:
        raise
    except Exception as error:  # A damaged file can make a parser raise almost any error.
        said = " ".join(f"{type(error).__name__}: {error}".split())
        found = ""
        if Path(path).is_file():
            with Path(path).open("rb") as file:
                found = f"found {kind_of(file.read(64))}, "
        text = isinstance(error, UnicodeDecodeError) and "begins with" in found
        advice = "Save it as UTF-8" if text else "Replace the file"
        raise InputError(f"{path}: cannot be read ({said}); {found}expected {expected}. {advice}.") from error


def read_parquet(path: Path, most: int | None = None) -> Any:
    """Return the rows of a Parquet file, or at most so many, as a data frame."""
    import duckdb

    with duckdb.connect(config={"temp_directory": "", "threads": 1}) as database:
        table = database.read_parquet(glob.escape(str(path)))
        check_unpacked(path, 8 * len(table) * len(table.columns))  # of one value, a column takes a few bytes
        return (table if most is None else table.limit(most)).df()


def checksum_of(path: Path, algorithm: str = "sha256") -> str:
    """Return `algorithm:hex` of the bytes of a file."""
    with path.open("rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def describe_files(paths: Iterable[Path], base: Path, algorithm: str = "sha256") -> list[dict[str, Any]]:
    """Return file (relative to `base`), size and checksum of each path, sorted."""
    return [
        {"file": p.relative_to(base).as_posix(), "size": p.stat().st_size, "checksum": checksum_of(p, algorithm)}
        for p in sorted(paths)
    ]


def shortened(entries: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the entries of files; of more than LISTED_ONE_BY_ONE a single one, with the sha256 of the lines "name checksum"."""
    if len(entries) <= LISTED_ONE_BY_ONE:
        return entries
    checksum = hashlib.sha256("".join(f"{e['file']} {e['checksum']}\n" for e in entries).encode()).hexdigest()
    size = sum(e["size"] for e in entries)
    return [{"file": f"./ ({len(entries)} files)", "size": size, "checksum": f"sha256-tree:{checksum}"}]


def matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files below `folder` that match one of the patterns in upper or lower case, sorted.

    patterns: of a name in `folder` itself, or after "**/" of a name at any depth. `files_below` says what is left out. Raises
    InputError, naming the path, for links in a circle or to nothing, pipes, and a name of other bytes than UTF-8.
    """

    def wanted(name: str, pattern: str) -> bool:
        deep = pattern.startswith("**/")
        return (deep or "/" not in name) and fnmatchcase(f"/{name}", f"*{pattern[2:]}" if deep else f"/{pattern}")

    named = [(path, path.relative_to(folder).as_posix().lower()) for path in files_below(folder)]
    paths = [path for path, name in named if any(wanted(name, pattern.lower()) for pattern in patterns)]
    if odd := [path for path in paths if (name := str(path)) != name.encode(errors="replace").decode()]:
        raise InputError(f"{odd[0]}: found a name of other bytes than UTF-8, expected a text. Rename it.")
    if broken := [path for path in paths if not path.is_file()]:
        raise InputError(f"{broken[0]}: found a link to nothing, or a pipe, expected a file. Correct or remove it.")
    return paths


def unpack_archive(archive: Path, folder: Path, target: Callable[[str], str | None]) -> list[Path]:
    """Extract members of a zip or tar into `folder`, and return their paths, sorted.

    target: from the name of a member to its name in `folder`; None leaves it out. Links and other special members stay out.
    Neither library writes outside `folder`. Raises InputError for a damaged archive, and one that is larger, in a member or in
    total, than `clailearn.limits` has.
    """
    extracted, total = set(), 0

    def name_of(member: str, size: int) -> str | None:
        nonlocal total
        if (name := target(member)) is None:
            return None
        if size > LARGEST_FILE:
            found = f"member '{member}' has {size} bytes"
            raise InputError(f"{archive}: {found}, expected at most {LARGEST_FILE}. Replace the archive.")
        total += size
        check_unpacked(archive, total)
        extracted.add(folder / name)
        return name

    with reading(archive, "a zip or a tar"):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                for info in packed.infolist():
                    info.filename = info.filename.replace("\\", "/")  # as some programs of Windows write it
                    if not info.is_dir() and (name := name_of(info.filename, info.file_size)) is not None:
                        info.filename = name
                        packed.extract(info, folder)
        else:
            with tarfile.open(archive) as tar:
                for member in tar:
                    if member.isreg() and (name := name_of(member.name, member.size)) is not None:
                        tar.extract(member.replace(name=name), folder, filter="data")
                    elif member.issym() or member.islnk():
                        logger.warning("%s: left out %s, a link; pack what it points to", archive, member.name)
    return sorted(extracted)
