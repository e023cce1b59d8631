"""This repository: its folders, its settings, read once for all tests, and the values that the paper prints."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "workflow" / "config"
REAL: dict[str, Any] = load_settings(REPOSITORY)
MINI: dict[str, Any] = load_settings(REPOSITORY, use="mini")
PUBLISHED = REPOSITORY / "results" / "published"
SOURCES = CONFIG / "data_sources.csv"


def run_script(script: str, *arguments: str, **environment: str) -> str:
    """Run a script in a process of its own, with these variables; it must end well. Return what it prints."""
    command, variables = [sys.executable, "-c", script, *arguments], os.environ | environment
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def lay(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder by name."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flat(settings: dict, above: str = "") -> dict:
    """Return settings by dotted key."""
    result = {}
    for key, value in settings.items():
        result |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return result
