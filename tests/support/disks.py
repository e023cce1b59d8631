"""Disks that fail at a moment that a test chooses."""

import errno
import os
from pathlib import Path

import pytest


def fail_to_replace(monkeypatch: pytest.MonkeyPatch, place: Path, at: int) -> None:
    """Let the `at`-th move to `place` fail as on a full disk; moves before and after it succeed."""
    replace = os.replace
    moves: list[Path] = []

    def fail_once(here: Path, there: Path) -> None:
        if Path(there) == place:
            moves.append(Path(here))
            if len(moves) == at:
                raise OSError(errno.ENOSPC, "No space left on device", str(there))
        replace(here, there)

    monkeypatch.setattr(os, "replace", fail_once)
