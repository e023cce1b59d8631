"""Promotion of a full run's evidence to the tracked folder."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clai.errors import InputError

PATIENT_LEVEL = ("signals.csv",)
"""Evidence that shows single patients."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences under which such rows may be passed on, by their SPDX names; what is not named here is withheld."""
LARGEST_FILE = 2 * 2**20
"""Bytes; the tracked evidence is text and small."""


def shows_patients(file: str, description: Mapping[str, Any]) -> bool:
    """Whether an evidence file shows single patients of a dataset (its `dataset.json`) whose licence forbids that."""
    return file in PATIENT_LEVEL and str(description["licence"]).replace(" ", "-") not in OPEN_LICENCES


def withheld(file: Path) -> bool:
    """Whether an evidence file, beside the `dataset.json` of its dataset, must not be passed on."""
    if file.name not in PATIENT_LEVEL:
        return False
    return shows_patients(file.name, json.loads((file.parent / "dataset.json").read_text()))


def publish(files: Iterable[Path], source: Path, target: Path) -> list[str]:
    """Copy evidence files from below `source` to the same places below `target`.

    A dataset's folder there is replaced whole, once all new content is written. Files that show
    single patients are left out unless the dataset's licence allows passing them on.

    Returns:
        The copied files, relative to `target`.

    Raises:
        InputError: a run was made with uncommitted changes, or a file is too large; nothing has been copied then.
    """
    chosen = []
    for file in files:
        if withheld(file):
            continue
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(
                f"{file} has {file.stat().st_size} bytes, more than the {LARGEST_FILE} of tracked evidence: show fewer samples"
            )
        if file.name == "runs.json":
            for record in json.loads(file.read_text()):
                for part in (record, record.get("evaluation", record)):
                    if part["dirty"]:
                        raise InputError(
                            f"{file}: run {record['run']} was made with uncommitted changes on {part['commit']}: commit, "
                            f"delete that run's folder below {source} and compute it again"
                        )
        chosen.append(file)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        new, old = Path(temporary, "new"), Path(temporary, "old")
        for file in chosen:
            place = new / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        for folder in {file.parent.relative_to(source) for file in chosen}:
            (target / folder).parent.mkdir(parents=True, exist_ok=True)
            if (target / folder).exists():
                (old / folder).parent.mkdir(parents=True, exist_ok=True)
                os.replace(target / folder, old / folder)
            os.replace(new / folder, target / folder)
    return [str(file.relative_to(source)) for file in chosen]
