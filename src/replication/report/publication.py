"""Promotion of the evidence of a full run to the tracked folder."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.runs.outputs import SAMPLES, predictions_of
from replication.runs.record import RUNS, read_records

PATIENT_LEVEL = ("signals.csv", SAMPLES, predictions_of("*"))
"""Evidence files that show single patients. Labels and scores of images do not."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences that allow passing on such rows, by their SPDX names. Under any other licence they are withheld."""
LARGEST_FILE, LARGEST_PREDICTIONS = 2 * 2**20, 3 * 2**20
"""Largest size of a tracked evidence file, in bytes: of a table or records, and of a model's predictions.

A model of a million hours needs 1.5 MB. Git keeps every version of a file that it cannot compare, so that one file a model
repeats those alone that change.
"""


def shows_patients(file: str, description: Mapping[str, Any]) -> bool:
    """Return whether an evidence file shows single patients although the licence in `dataset.json` forbids it."""
    of_patients = file in PATIENT_LEVEL[:1] or (_may_show_patients(file) and description.get("kind") != "images")
    return of_patients and str(description["licence"]).replace(" ", "-") not in OPEN_LICENCES


def _may_show_patients(file: str) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in PATIENT_LEVEL)


def read_description(path: Path) -> dict[str, Any]:
    """Return a `dataset.json`; raises InputError where it is missing, is no JSON, or states no title or licence."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected a description as JSON. Compute this evidence again"
        ) from error
    if not isinstance(description, dict) or not all(
        isinstance(description.get(key), str) for key in ("title", "licence")
    ):
        raise InputError(f"{path}: found no title or no licence, expected both as texts. Compute this evidence again")
    return description


def withheld(file: Path) -> bool:
    """Return whether an evidence file must not be passed on, by the `dataset.json` beside it."""
    if not _may_show_patients(file.name):
        return False
    return shows_patients(file.name, read_description(file.parent / "dataset.json"))


def publish(files: Iterable[Path], source: Path, target: Path) -> list[str]:
    """Copy evidence files from below `source` to the same places below `target`.

    A dataset's folder there is replaced whole, once all new content is written. Files that show single patients stay out unless
    the dataset's licence allows passing them on.

    Returns:
        The copied files, relative to `target`.

    Raises:
        InputError: a run was made with uncommitted changes; or a file is too large, a link, or not below `source`. Nothing has
            been copied then.
    """
    files = list(files)
    for file in files:
        _refuse_elsewhere(file, source)
    published = [file for file in files if not withheld(file)]
    for file in published:
        size = file.stat().st_size
        largest = LARGEST_PREDICTIONS if fnmatchcase(file.name, predictions_of("*")) else LARGEST_FILE
        if size > largest:
            raise InputError(
                f"{file} has {size} bytes, more than the {largest} of tracked evidence: show fewer samples"
            )
    for folder in sorted({file.parent for file in published}):
        _refuse_uncommitted(folder / RUNS, source)
    _replace_folders(published, source, target)
    return [str(file.relative_to(source)) for file in published]


def _refuse_elsewhere(file: Path, source: Path) -> None:
    """Raise InputError unless a file is a plain one below `source`: a link could publish anything."""
    if ".." in file.parts or not file.is_relative_to(source):
        raise InputError(f"{file} lies outside {source}, expected evidence below it. Name files there")
    if file.is_symlink() or not file.is_file():
        state = "a link" if file.is_symlink() else "no file"
        raise InputError(f"{file}: found {state}, expected a file of evidence. Compute this evidence again")


def _refuse_uncommitted(file: Path, source: Path) -> None:
    """Raise InputError if the code of a run, or of its evaluation, was not that of a commit."""
    for record in read_records(file.parent):
        for part in (record, record.get("evaluation", record)):
            # Who does not say that nothing was changed may have changed something.
            if part.get("dirty", True) is not False or not isinstance(part.get("commit"), str):
                raise InputError(
                    f"{file}: run {record['run']} was made with uncommitted changes on {part.get('commit')}; published runs must "
                    f"be those of a commit. Commit, delete {source / record['run']} and compute the run again"
                )


def _replace_folders(files: Iterable[Path], source: Path, target: Path) -> None:
    """Copy files from below `source` to below `target`, whose folders change only after all content is written."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        places = [file.relative_to(source) for file in files]
        for place in places:
            new = Path(temporary, "new", place)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / place, new)
        exchange(sorted({place.parent for place in places}), Path(temporary), target)


def exchange(places: Iterable[Path], temporary: Path, target: Path) -> None:
    """Move folders from `temporary`/new to `target`, and those that lie there to `temporary`/old: all of them, or none.

    Args:
        places: of the folders, relative to both.
        temporary: on the same file system as `target`; what is left in it may be deleted afterwards.

    Raises:
        OSError: a folder cannot be moved, as on a full disk. All are then where they were.
    """
    new, old = temporary / "new", temporary / "old"
    with contextlib.ExitStack() as undo:
        for place in places:
            for path in (old / place, target / place):
                path.parent.mkdir(parents=True, exist_ok=True)
            for here, there in ((target / place, old / place), (new / place, target / place)):
                # Noted before the move, which may be interrupted at any moment.
                undo.callback(_move, there, here)
                _move(here, there)
        undo.pop_all()  # without calling them


def _move(here: Path, there: Path) -> None:
    if here.exists():
        os.replace(here, there)
