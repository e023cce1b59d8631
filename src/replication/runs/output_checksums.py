"""Checksums of what finished jobs wrote, so that the workflow notices a file that has changed since.

Snakemake compares an output with the inputs that it was made from. An output that was truncated or altered afterwards looks as
good as new to it, and everything downstream would be computed from it.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DESCRIPTION = "dataset.json"
"""An output that describes the arrays (.npy) beside it. They belong to it, although rules do not name them."""


class OutputChecksums:
    """The checksums, in a file with a line of JSON for each time that an output was noted; the last line of an output counts.

    Lines are only ever appended. One that was cut short, by a full disk for instance, is ignored, and so is a missing file.

    Args:
        path: the file; its folder need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._noted: dict[str, dict[str, Any]] | None = None

    def note(self, output: str) -> None:
        """Note an output, and what belongs to it, as they are now. Raises OSError where there is no room."""
        files = {str(path): [_state(path), _checksum(path)] for path in _with_arrays(Path(output))}
        self._append(output, files)

    def altered(self, output: str) -> str | None:
        """Return what changed since an output was noted, in words; None where nothing did, or where it was never noted.

        A file whose size and times are as noted is not read. Where only times differ, its content decides, and the new times are
        noted. An output that is missing is no business of this: Snakemake sees that.
        """
        known = self._read().get(output)
        if known is None or not Path(output).exists():
            return None
        files = {}
        for name, (state, checksum) in known.items():
            path = Path(name)
            if not path.exists():
                return f"{name} is missing"
            if (now := _state(path)) != state:
                if now[0] != state[0]:
                    return f"{name} has {now[0]:,} bytes, its job wrote {state[0]:,}"
                if _checksum(path) != checksum:
                    return f"{name} has other content than its job wrote"
            files[name] = [now, checksum]
        if files != known:
            with contextlib.suppress(OSError):  # Without the new times the files are read again next time.
                self._append(output, files)
        return None

    def _append(self, output: str, files: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:  # A line before may have no end.
            file.write("\n" + json.dumps({"output": output, "files": files}) + "\n")
        self._read()[output] = files

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._noted is None:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines() if self.path.exists() else []
            self._noted = dict(_entries(lines))
        return self._noted


def bring_to_present(output: str, now: float) -> None:
    """Give a file from the future, as a clock that ran ahead leaves it, the time `now` (s since the epoch).

    Snakemake otherwise fails every job that reads the file, because what the job writes is older.
    """
    with contextlib.suppress(OSError):  # It is missing, or read-only: Snakemake says so.
        if Path(output).stat().st_mtime > now:
            os.utime(output, (now, now))


def _entries(lines: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in lines:
        try:
            entry = json.loads(line)
            yield entry["output"], {name: [state, checksum] for name, (state, checksum) in entry["files"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            continue


def _with_arrays(output: Path) -> list[Path]:
    return [output, *(sorted(output.parent.glob("*.npy")) if output.name == DESCRIPTION else [])]


def _state(path: Path) -> list[int]:
    """Return size, time of the content and time of any change of a file."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
