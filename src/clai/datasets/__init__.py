"""Datasets: one module a source, each turning raw files into the same prepared form (see `prepared`).

A source is a module of this package (`fetch.source_module` says what it has); an entry of `datasets` in config.yaml
names it. Adding one is adding the module and the entry (docs/extending.md).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clai.datasets.fetch import Raw, source_module
from clai.datasets.interrupted import remove_leftovers


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Prepare the raw files of one dataset into the folder `out_dir`.

    raw: the verified files (`fetch.obtain`). settings: the dataset's entry in config.yaml. seed: of the draws that
    split the data. What killed attempts at the same folder left beside it is removed.
    """
    remove_leftovers(out_dir)
    source_module(raw.source).prepare(raw, out_dir, settings, seed)
