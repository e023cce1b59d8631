"""Zips whose bytes depend on their members alone."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

_DATE = (2020, 1, 1, 0, 0, 0)


def write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a zip of members (bytes by name)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=_DATE), data, compress_type=zipfile.ZIP_DEFLATED)
