"""Datasets: one module a source, each turning raw files into the same prepared form (see `prepared`).

A source is a module with `prepare(raw, out_dir, settings, seed)`. Adding one is adding the module, and its name with
what it reads to `fetch.SOURCES`.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from clai.datasets.fetch import Raw


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Prepare the raw files of one dataset into the folder `out_dir`.

    raw: the verified files (`fetch.obtain`). settings: the dataset's entry in config.yaml. seed: of the draws that
    split the data.
    """
    import_module(f"clai.datasets.{raw.source}").prepare(raw, out_dir, settings, seed)
