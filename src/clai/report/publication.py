"""Promotion of the evidence of a full run to the tracked folder."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clai.errors import InputError
from clai.runs.record import RUNS, read_records

PATIENT_LEVEL = ("signals.csv",)
"""Evidence files that show single patients."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences that allow passing on such rows, by their SPDX names. Under any other licence they are withheld."""
LARGEST_FILE = 2 * 2**20
"""Largest size of a tracked evidence file, in bytes."""


def shows_patients(file: str, description: Mapping[str, Any]) -> bool:
    """Return whether an evidence file shows single patients although the licence in `dataset.json` forbids it."""
    return file in PATIENT_LEVEL and str(description["licence"]).replace(" ", "-") not in OPEN_LICENCES


def withheld(file: Path) -> bool:
    """Return whether an evidence file must not be passed on, by the `dataset.json` beside it."""
    if file.name not in PATIENT_LEVEL:
        return False
    return shows_patients(file.name, json.loads((file.parent / "dataset.json").read_text()))


def publish(files: Iterable[Path], source: Path, target: Path) -> list[str]:
    """Copy evidence files from below `source` to the same places below `target`.

    A dataset's folder there is replaced whole, once all new content is written. Files that show single patients stay out unless
    the dataset's licence allows passing them on.

    Returns:
        The copied files, relative to `target`.

    Raises:
        InputError: a run was made with uncommitted changes, or a file is too large. Nothing has been copied then.
    """
    published = [file for file in files if not withheld(file)]
    for file in published:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(
                f"{file} has {size} bytes, more than the {LARGEST_FILE} of tracked evidence: show fewer samples"
            )
        if file.name == RUNS:
            _refuse_uncommitted(file, source)
    _replace_folders(published, source, target)
    return [str(file.relative_to(source)) for file in published]


def _refuse_uncommitted(file: Path, source: Path) -> None:
    """Raise InputError if the code of a run, or of its evaluation, was not that of a commit."""
    for record in read_records(file.parent):
        for part in (record, record.get("evaluation", record)):
            if part["dirty"]:
                raise InputError(
                    f"{file}: run {record['run']} was made with uncommitted changes on {part['commit']}; published runs must "
                    f"be those of a commit. Commit, delete {source / record['run']} and compute the run again"
                )


def _replace_folders(files: Iterable[Path], source: Path, target: Path) -> None:
    """Copy files from below `source` to below `target`, whose folders change only after all content is written."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        new, old = Path(temporary, "new"), Path(temporary, "old")
        places = [file.relative_to(source) for file in files]
        for place in places:
            (new / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / place, new / place)
        for folder in {place.parent for place in places}:
            (target / folder).parent.mkdir(parents=True, exist_ok=True)
            if (target / folder).exists():
                (old / folder).parent.mkdir(parents=True, exist_ok=True)
                os.replace(target / folder, old / folder)
            os.replace(new / folder, target / folder)
