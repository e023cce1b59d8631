"""Promotion of trained models to the tracked folder."""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from clai.errors import InputError
from clai.published_model import RECORD, load
from replication.report.publication import OPEN_LICENCES, exchange

LARGEST_MODEL = 4 * 2**20
"""Largest size of a published model's weights with its references, in bytes."""


def publish_models(files: Iterable[Path], source: Path, target: Path) -> list[str]:
    """Copy packed models from below `source` to the same places below `target`; a model's folder there is replaced whole.

    A model of patients stays out unless the licence of its data allows passing them on.

    Returns:
        The copied files, relative to `target`.

    Raises:
        InputError: a model is damaged, too large, or of a run with uncommitted changes. Nothing has been copied then.
    """
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    chosen = {folder: members for folder, members in folders.items() if _may_be_published(folder, members)}
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        places = {folder: folder.relative_to(source) for folder in chosen}
        for folder, place in places.items():
            new = Path(temporary, "new", place)
            new.mkdir(parents=True)
            for file in chosen[folder]:
                shutil.copyfile(file, new / file.name)
        exchange(places.values(), Path(temporary), target)
    return [str(file.relative_to(source)) for members in chosen.values() for file in members]


def _may_be_published(folder: Path, files: Iterable[Path]) -> bool:
    """Return whether a model may be passed on; raise InputError for one that must not be published as it is."""
    record = load(folder).record
    for file in files:
        if file.is_symlink() or file.stat().st_size > LARGEST_MODEL:
            raise InputError(
                f"{file}: found a link or more than {LARGEST_MODEL} bytes, expected a small file. Publish "
                "a smaller encoder"
            )
    for part in (record["record"], record["record"].get("evaluation", record["record"])):
        if part.get("dirty", True) is not False or not isinstance(part.get("commit"), str):
            raise InputError(
                f"{folder / RECORD}: run {record['run']} was made with uncommitted changes on {part.get('commit')}; a published "
                "model must be of a run of a commit. Commit, delete the run and compute it again"
            )
    data = record["data"]
    return data["kind"] != "recordings" or str(data["licence"]).replace(" ", "-") in OPEN_LICENCES
