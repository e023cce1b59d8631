"""This repository: its folders, its settings, read once for all tests, and the values that the paper prints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from replication.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "workflow" / "config"
REAL: dict[str, Any] = load_settings(REPOSITORY)
MINI: dict[str, Any] = load_settings(REPOSITORY, use="mini")
PUBLISHED = REPOSITORY / "results" / "published"
SOURCES = CONFIG / "data_sources.csv"
PRINTED = pd.read_csv(CONFIG / "printed_values.csv")


def lay(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder by name."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
