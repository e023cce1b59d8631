"""Turn the raw files of a source into the prepared form that all datasets share (`replication.datasets.prepared`)."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.datasets.sources import Raw, source_module


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Prepare the raw files of one dataset into the folder `out_dir`.

    Removes the temporary folders, `.{out_dir.name}-*`, that killed attempts left beside it.

    raw: the verified files (`sources.obtain`). settings: the dataset's entry. seed: of the random splits. Raises
    InputError, naming the dataset's key, for files or settings that the source refuses.
    """
    for left in out_dir.parent.glob(f".{out_dir.name}-*"):
        shutil.rmtree(left)
    try:
        source_module(raw.source).prepare(raw, out_dir, settings, seed)
    except InputError as error:
        if (key := f"datasets.{raw.dataset}") in str(error):
            raise
        raise InputError(f"{key}: {error}") from error
