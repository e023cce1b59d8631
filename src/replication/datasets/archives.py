"""Read zips in memory without extracting them, and refuse members that could do harm."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from clai.errors import InputError

_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, IndexError,
)  # fmt: skip
"""What `zipfile` raises for a damaged archive."""


@contextmanager
def opened_zip(path: Path, largest: int | None) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose members may be read one at a time, with `reading`.

    largest: bytes that a member may have unpacked; None where the caller checks the sizes. Raises InputError, naming
    archive and member, for a member that is absolute, leads outside by `..`, is a link, is encrypted, occurs twice or is
    larger. So it does for a member without a name, and for one that is packed by another method than the usual one, since
    others take as much memory as the archive demands.
    """
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise InputError(f"{path}: {error}; expected a zip. Delete it and run again.") from error
    size = path.stat().st_size
    with archive:
        seen: set[str] = set()
        for info in archive.infolist():
            name = PurePosixPath(info.filename.replace("\\", "/"))
            where = f"{path}: member '{info.filename}'"
            if not info.filename:
                raise InputError(f"{path}: found a member without a name, expected names. Replace the archive.")
            if info.compress_size > size:  # zipfile takes as much memory as is stated here, before it reads.
                raise InputError(
                    f"{where} takes {info.compress_size} bytes in an archive of {size}, which cannot be. Replace the archive."
                )
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(
                    f"{where} is packed by method {info.compress_type}, expected deflate or none. Replace the archive."
                )
            if name.is_absolute() or ".." in name.parts or stat.S_ISLNK(info.external_attr >> 16):
                raise InputError(f"{where} is a link or points outside the archive. Replace the archive.")
            if info.flag_bits & 1:
                raise InputError(f"{where} is encrypted; expected a plain archive")
            if info.filename in seen:
                raise InputError(f"{where} is there twice. Replace the archive.")
            seen.add(info.filename)
            if largest is not None and info.file_size > largest:
                raise InputError(
                    f"{where} unpacks to {info.file_size} bytes, expected at most {largest}. Replace the archive."
                )
        yield archive


@contextmanager
def reading(path: Path, name: str) -> Iterator[None]:
    """Turn errors of a damaged member `name` of `path` within the block into an InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGED as error:
        raise InputError(f"{path}: {name} cannot be read ({error}). Delete the archive and run again.") from error


def reader(archive: zipfile.ZipFile, path: Path) -> Callable[[str], bytes]:
    """Return a function from the name of a member to its bytes."""

    def read(name: str) -> bytes:
        with reading(path, name):
            return archive.read(name)

    return read
