"""Turn the raw files of a source into the prepared form that all datasets share (`replication.datasets.prepared`).

A source is a module of this package; `fetch.source_module` says what it has. An entry of `datasets` in config.yaml
names it. To add one, add the module and the entry (docs/extending.md).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.datasets.fetch import Raw
from replication.datasets.interrupted import remove_leftovers
from replication.datasets.sources import source_module


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Prepare the raw files of one dataset into the folder `out_dir`.

    Removes what killed attempts at the same folder left beside it.

    raw: the verified files (`fetch.obtain`). settings: the dataset's entry in config.yaml. seed: of the random splits. Raises
    InputError, naming the dataset's key, for files or settings that the source refuses.
    """
    remove_leftovers(out_dir)
    try:
        source_module(raw.source).prepare(raw, out_dir, settings, seed)
    except InputError as error:
        if (key := f"datasets.{raw.dataset}") in str(error):
            raise
        raise InputError(f"{key}: {error}") from error
