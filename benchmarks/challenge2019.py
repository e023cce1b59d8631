"""Preparing Challenge 2019 against a naive loop over its files: `python benchmarks/challenge2019.py FOLDER [REPEATS]`.

FOLDER holds training_setA.zip and training_setB.zip as downloaded (or any other path that `datasets.challenge2019.path`
may name). The whole preparation (parse, ranges, folds, arrays, description) runs in turn with a loop that does the first
two steps alone, with one `pandas.read_csv` a file; each in a process of its own, so that the peak of memory is its own.
Prints the seconds and the peak of each repeat, and the ratio as median and range.
"""

import io
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from clai.datasets import prepare
from clai.datasets.fetch import DownloadLimits, obtain
from clai.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[1]
SETTINGS = load_settings(REPOSITORY)["datasets"]["challenge2019"]


def ours(folder: str) -> int:
    """The preparation; returns the number of records."""
    table = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    with tempfile.TemporaryDirectory() as scratch:
        settings = SETTINGS | {"path": folder}
        raw = obtain("challenge2019", settings, table, Path(scratch), None, DownloadLimits(0, 0, 60, 1), False)
        prepare(raw, Path(scratch) / "prepared", settings, 0)
        return int(json.loads((Path(scratch) / "prepared" / "dataset.json").read_text())["splits"]["all"]["recordings"])


def naive(folder: str) -> int:
    """One file at a time: read, keep the variables, blank what is out of range, collect."""
    tables = []
    for path in sorted(Path(folder).glob("*training_set*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".psv"):
                    table = pd.read_csv(io.BytesIO(archive.read(name)), sep="|")
                    for variable, (low, high) in SETTINGS["variables"].items():
                        table.loc[~table[variable].between(low, high), variable] = np.nan
                    tables.append(table[[*SETTINGS["variables"], "ICULOS", "SepsisLabel"]].assign(recording=name))
    whole = pd.concat(tables)
    return int(whole["recording"].nunique())


def measured(function: Callable[[str], int], folder: str) -> tuple[float, float, int]:
    """Seconds, the peak of this process in GiB, and the number of records."""
    start = time.perf_counter()
    records = function(folder)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, records


def main(folder: str, repeats: int) -> None:
    """Run both in turn and print."""
    context = multiprocessing.get_context("spawn")
    ratios = []
    for repeat in range(repeats):
        seconds = []
        for function in (ours, naive):
            with ProcessPoolExecutor(1, context) as alone:
                took, peak, records = alone.submit(measured, function, folder).result()
            seconds.append(took)
            print(
                f"repeat {repeat}: {function.__name__:5} {took:7.1f} s, {peak:.2f} GiB, {records:,} records", flush=True
            )
        ratios.append(seconds[1] / seconds[0])
    print(f"naive / ours: {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}, n = {repeats})")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
