"""Miniature synthetic data in the file formats of the sources, so that the real code runs on it from the download on.

A generator for each dataset writes the raw files into a folder, with the blemishes of the real ones. `make` adds the
table `sources.csv`, by which the files are fetched and verified. The classes differ, but a good model stays well below
perfect accuracy. The bytes depend on the seed alone.
"""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from clailearn.errors import InputError
from replication.datasets.files import checksum_of
from replication.datasets.miniature.icu import challenge2019, mimic_iv
from replication.datasets.miniature.images import breastmnist, cifar10
from replication.datasets.miniature.sleep import sleepedf, sleepedf_bands
from replication.datasets.sources import COLUMNS

TABLE = "sources.csv"
VERSION = "miniature"

# A dataset's place in this order decides its random numbers, so new ones go to the end.
GENERATORS: dict[str, Callable[[Path, np.random.Generator], list[Path]]] = {
    "breastmnist": breastmnist,
    "cifar10": cifar10,
    "sleepedf": sleepedf,
    "mimic-iv": mimic_iv,
    "challenge2019": challenge2019,
    "sleepedf-bands": sleepedf_bands,
}


def make(dataset: str, folder: Path, seed: int) -> Path:
    """Write the raw files of a dataset into `folder` and return its table of sources."""
    if dataset not in GENERATORS:
        raise InputError(f"dataset '{dataset}' has no miniature; expected one of {', '.join(GENERATORS)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = GENERATORS[dataset](folder, np.random.default_rng([seed, list(GENERATORS).index(dataset)]))
    table = folder / TABLE
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path in files:
            name = path.relative_to(folder).as_posix()
            writer.writerow([dataset, VERSION, name, "", checksum_of(path), "generated", "generated"])
    return table
