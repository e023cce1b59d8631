"""Measure time and memory of preparing Sleep-EDF and MIMIC-IV on synthetic data of growing size, and extrapolate.

`python benchmarks/scaling.py sleepedf [SIZES ...]`: sizes are numbers of whole nights (22 h, seven channels, like the real
ones), two for each subject.
`python benchmarks/scaling.py mimic-iv [SIZES ...]`: sizes are multiples of the 80 stays of the miniature. A stay has as many
charted and laboratory values as in MIMIC-IV, most of them of items that are not used.

A process of its own prepares each size; its peak resident memory is reported. The projection to the real size is a straight
line through the sizes. Settings are those of config.yaml. Measurements and projection also replace the dataset's rows in
benchmarks/results/preparation.csv, which docs/data.md quotes.
"""

import argparse
import csv
import datetime
import gzip
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.datasets.fetch import Raw
from replication.datasets.miniature.make import make
from replication.datasets.miniature.mimic_iv import COLUMNS
from replication.datasets.prepare import prepare
from replication.runs.memory import peak_memory
from replication.runs.settings import load_settings

SETTINGS = load_settings(Path(__file__).parents[1])["datasets"]
NIGHTS = 153  # recordings of Sleep-EDF expanded
STAYS, CHARTED, LABS = 94_458, 432_997_491, 158_374_764  # rows of icustays, chartevents, labevents in MIMIC-IV 3.1
HOURS = 22
FOUND = Path(__file__).parent / "results" / "preparation.csv"
MEASURES = {"seconds": ("time", "s"), "peak_memory_mb": ("peak memory", "MiB"), "arrays_mb": ("arrays", "MiB")}


def whole_night(folder: Path) -> tuple[Path, Path]:
    """Write a night of HOURS hours with eight hours of sleep in the middle; return signal file and hypnogram."""
    from edfio import Edf, EdfAnnotation, EdfSignal, Patient, Recording

    rng = np.random.default_rng(0)
    seconds = HOURS * 3600
    fast = ("EEG Fpz-Cz", "EEG Pz-Oz", "EOG horizontal")
    slow = ("Resp oro-nasal", "EMG submental", "Temp rectal", "Event marker")
    signals = [
        EdfSignal(rng.normal(0, 20, seconds * rate).clip(-190, 190), rate, label=label, physical_dimension="uV",
                  physical_range=(-192, 192))
        for rate, labels in ((100, fast), (1, slow)) for label in labels
    ]  # fmt: skip
    who = {
        "patient": Patient(code="X", name="Synthetic"),
        "recording": Recording(startdate=datetime.date(1989, 4, 24)),
        "starttime": datetime.time(16, 13),
    }
    psg, hypnogram = folder / "night-PSG.edf", folder / "night-Hypnogram.edf"
    Edf(signals, data_record_duration=30, **who).write(psg)
    names = ["W", "1", "2", "3", "4", "R"]
    marks = [EdfAnnotation(0, 7 * 3600, "Sleep stage W")]
    marks += [EdfAnnotation(7 * 3600 + 300 * i, 300, f"Sleep stage {names[i % 6]}") for i in range(96)]
    marks.append(EdfAnnotation(15 * 3600, 9 * 3600, "Sleep stage W"))
    Edf([], annotations=marks, **who).write(hypnogram)
    return psg, hypnogram


def sleepedf(folder: Path, size: int) -> tuple[Raw, dict[str, Any], dict[str, float]]:
    """Link `size` recordings of the same night; return the raw files, the settings and the numbers to report."""
    psg, hypnogram = folder.parent / "night-PSG.edf", folder.parent / "night-Hypnogram.edf"
    if not psg.exists():
        whole_night(folder.parent)
    files = []
    for n in range(size):
        for path, ending in ((psg, "E0-PSG.edf"), (hypnogram, "EC-Hypnogram.edf")):
            os.link(path, folder / f"SC4{n // 2:02d}{n % 2 + 1}{ending}")
            files.append({"file": f"SC4{n // 2:02d}{n % 2 + 1}{ending}", "size": 0, "checksum": ""})
    raw = Raw("sleepedf", "sleep_edf", "synthetic", folder, tuple(files), "", "", True)
    return raw, SETTINGS["sleepedf"], {"recordings": size}


def mimic_iv(folder: Path, size: int) -> tuple[Raw, dict[str, Any], dict[str, float]]:
    """Write the tables of the miniature `size` times, with new identifiers, padded to the rows for a stay in MIMIC-IV.

    Returns the raw files, the settings and the numbers to report.
    """
    source = folder.parent / "miniature"
    if not source.exists():
        make("mimic-iv", source, 0)
    counts = {}
    for table in COLUMNS:
        with gzip.open(source / f"{table}.csv.gz", "rt", newline="") as stream:
            rows = list(csv.reader(stream))
        head, body = rows[0], rows[1:]
        target = folder / f"{table}.csv.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        padding = {"icu/chartevents": CHARTED, "hosp/labevents": LABS}.get(table, 0) * 80 // STAYS - len(body)
        item = head.index("itemid") if "itemid" in head else 0
        shifted = [head.index(name) for name in ("subject_id", "hadm_id", "stay_id") if name in head]
        with gzip.open(target, "wt", compresslevel=1, newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(head)
            for k in range(size):
                whole = [list(row) for row in body]
                for row in whole:
                    for column in shifted:
                        row[column] = str(int(row[column]) + 5000 * k) if row[column] else ""
                writer.writerows(whole)
                for n in range(max(padding, 0)):
                    row = whole[n % len(whole)]
                    writer.writerow([*row[:item], "229999", *row[item + 1 :]])
        counts[table] = size * (len(body) + max(padding, 0))
    raw = Raw("mimic-iv", "mimic_iv", "synthetic", folder, (), "", "", True)
    numbers = {"stays": 80 * size, "chartevents": counts["icu/chartevents"], "labevents": counts["hosp/labevents"]}
    return raw, SETTINGS["mimic-iv"] | {"cohort": "all", "folds": 2}, numbers


CASES: dict[str, tuple[Callable[..., Any], list[int], str, int]] = {
    "sleepedf": (sleepedf, [6, 12, 24, 48], "recordings", NIGHTS),
    "mimic-iv": (mimic_iv, [1, 2, 4, 8], "stays", STAYS),
}


def measured(raw: Raw, out: Path, settings: dict[str, Any]) -> tuple[float, float]:
    """Prepare the dataset and return the seconds and the peak memory of this process in MiB."""
    start = time.perf_counter()
    prepare(raw, out, settings, 0)
    return time.perf_counter() - start, peak_memory()


def main(name: str, sizes: list[int]) -> None:
    """Prepare each size, and print time, memory and the projection."""
    write, usual, unit, whole = CASES[name]
    context = multiprocessing.get_context("spawn")
    points = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        for size in sizes or usual:
            folder = Path(scratch) / f"{size}"
            folder.mkdir()
            raw, settings, numbers = write(folder, size)
            with ProcessPoolExecutor(1, context) as alone:
                seconds, peak = alone.submit(measured, raw, folder / "out" / "prepared", settings).result()
            arrays = json.loads((folder / "out" / "prepared" / "dataset.json").read_text())["arrays"]
            written = sum((folder / "out" / "prepared" / f"{a}.npy").stat().st_size for a in arrays) / 2**20
            points.append((numbers[unit], seconds, peak, written))
            shown = ", ".join(f"{n:,} {what}" for what, n in numbers.items())
            print(f"{shown}: {seconds:.1f} s, peak {peak:.0f} MiB, arrays {written:.0f} MiB", flush=True)
            for path in (folder / "out" / "prepared").iterdir():
                path.unlink()
    measurements = pd.DataFrame(points, columns=["items", *MEASURES])
    projection: dict[str, float] = {"items": whole}
    for measure, (what, of) in MEASURES.items():
        slope, start = np.polyfit(measurements["items"], measurements[measure], 1)
        projection[measure] = start + slope * whole
        print(f"{what}: {start:.1f} + {slope:.4f} x {unit} {of}; for {whole:,}: {projection[measure]:,.0f} {of}")
    rows = pd.concat([measurements.assign(kind="measured"), pd.DataFrame([projection]).assign(kind="projected")])
    rows = rows.assign(dataset=name, unit=unit)[["dataset", "kind", "items", "unit", *MEASURES]]
    others = pd.read_csv(FOUND).query("dataset != @name")
    pd.concat([others, rows]).astype({"items": int}).to_csv(FOUND, index=False, float_format="%.1f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("sleepedf", "mimic-iv"))
    parser.add_argument("sizes", type=int, nargs="*", metavar="SIZE", help="see above")
    given = parser.parse_args()
    main(given.dataset, given.sizes)
