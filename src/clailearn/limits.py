"""What a file from outside may be, and how large: every limit on one.

The functions raise ValueError, which the reader of the file turns into its message.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

LARGEST_FILE = 2**28
"""Bytes of a picture, or of a member of an archive."""
LARGEST_TEXT = 2**24
"""Bytes of a record, or characters of a line of a table."""
LARGEST_UNPACKED, LARGEST_RATIO = 2**27, 100
"""Bytes that any packed file may unpack to; a larger one to so many times its own size."""


def check_file(path: str | Path, largest: int | None = None) -> None:
    """Refuse what is no file, or has more bytes than `largest`. Nothing is opened, because a pipe would wait."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("found a folder, a pipe or a device, expected a file")
    if largest is not None and found.st_size > largest:
        raise ValueError(f"found {found.st_size:,} bytes, expected at most {largest:,}")


def check_unpacked(path: str | Path, size: int) -> None:
    """Refuse a packed file that unpacks to this many bytes, if it is so small that it may be made to fill memory or disk."""
    if size > (most := max(LARGEST_UNPACKED, LARGEST_RATIO * os.stat(path).st_size)):
        raise ValueError(f"unpacks to {size:,} bytes or more, expected at most {most:,}")


def lines_of(file: TextIO, path: str | Path) -> Iterator[str]:
    """Yield the lines of a table, which may be packed; refuse one that is too long, and more than the file may unpack to."""
    read = 0
    while line := file.readline(LARGEST_TEXT + 1):
        read += len(line)
        if len(line) > LARGEST_TEXT:
            raise ValueError(f"found a line of more than {LARGEST_TEXT:,} characters, expected a table")
        if read > LARGEST_UNPACKED:
            check_unpacked(path, read)
        yield line
