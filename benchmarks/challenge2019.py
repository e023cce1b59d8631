"""Time the preparation of Challenge 2019 and a naive loop: `python benchmarks/challenge2019.py FOLDER [REPETITIONS]`.

FOLDER holds training_setA.zip and training_setB.zip as downloaded, or is another path that `datasets.challenge2019.path`
may name. The preparation does all steps (parse, ranges, folds, arrays, description). The loop does only the first two, with
one `pandas.read_csv` for each file. Both run in turn, each in a process of its own, whose peak memory is measured. The script
prints seconds and peak memory of each repetition, and median and range of the ratio.
"""

import argparse
import io
import json
import multiprocessing
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from replication.datasets.download import DownloadLimits
from replication.datasets.fetch import obtain
from replication.datasets.prepare import prepare
from replication.runs.memory import peak_memory
from replication.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[1]
SETTINGS = load_settings(REPOSITORY)["datasets"]["challenge2019"]


def ours(folder: str) -> int:
    """Prepare the dataset and return the number of records."""
    table = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    with tempfile.TemporaryDirectory() as scratch:
        settings = SETTINGS | {"path": folder}
        raw = obtain("challenge2019", settings, table, Path(scratch), None, DownloadLimits(0, 0, 60, 1), False)
        prepare(raw, Path(scratch) / "prepared", settings, 0)
        return int(json.loads((Path(scratch) / "prepared" / "dataset.json").read_text())["splits"]["all"]["recordings"])


def naive(folder: str) -> int:
    """Read one file at a time, set values out of range to NaN, keep the variables; return the number of records."""
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
    """Return the seconds, the peak memory of this process in GiB, and the number of records."""
    start = time.perf_counter()
    records = function(folder)
    return time.perf_counter() - start, peak_memory() / 1024, records


def main(folder: str, repetitions: int) -> None:
    """Run both in turn and print the results."""
    context = multiprocessing.get_context("spawn")
    ratios = []
    for repetition in range(repetitions):
        seconds = []
        for function in (ours, naive):
            with ProcessPoolExecutor(1, context) as alone:
                took, peak, records = alone.submit(measured, function, folder).result()
            seconds.append(took)
            print(
                f"repetition {repetition}: {function.__name__:5} {took:7.1f} s, {peak:.2f} GiB, {records:,} records",
                flush=True,
            )
        ratios.append(seconds[1] / seconds[0])
    print(f"naive / ours: {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}, n = {repetitions})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="holds the zips of both sets")
    parser.add_argument("repetitions", type=int, nargs="?", default=3, metavar="N", help="runs of each (3)")
    given = parser.parse_args()
    main(given.folder, given.repetitions)
