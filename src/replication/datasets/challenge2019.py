"""PhysioNet/CinC Challenge 2019: hourly ICU records as pipe-separated files, one for each patient, in zips or folders.

The source labels the hours from six before the onset of sepsis to the end of the record with 1. The hour is ICULOS, the hours
since admission to the ICU, which does not always begin at 1.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clai.errors import InputError, kind_of
from replication.datasets.files import opened_zip, reading
from replication.datasets.recordings import Rows, outside_to_missing, positive_recordings, write
from replication.datasets.sources import Raw
from replication.metrics.segments import segments

FILES = ("**/p*.psv", "*training_set*.zip", "*challenge-2019*.zip")
EXPECTS = "a zip of .psv records, or a folder with such zips or with training_setA/ and training_setB/"
NAME = re.compile(r"p(\d{6})\.psv")
LABEL, HOUR = "SepsisLabel", "ICULOS"
LABEL_HOURS_BEFORE = 6
FIRST_OF_SET_B = 100_000  # lowest number in the names of its records
LARGEST_RECORD = 2**22  # bytes; 336 hours take about 90,000
_RECORDS_AT_ONCE = 4000


def records(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each record in zips and .psv files, sorted within each path."""
    for path in paths:
        if path.suffix != ".zip":
            if (size := path.stat().st_size) > LARGEST_RECORD:
                raise InputError(
                    f"{path}: found {size} bytes, expected at most {LARGEST_RECORD} of a record. Replace the file."
                )
            yield str(path), path.read_bytes()
            continue
        with opened_zip(path, LARGEST_RECORD) as archive:
            for name in sorted(archive.namelist()):
                if (last := Path(name).name).endswith(".psv") and not last.startswith("."):
                    with reading(f"{path}: {name}", "a record"):
                        content = archive.read(name)
                    yield f"{path}: {name}", content


def parse(batch: Sequence[tuple[str, bytes]], variables: Sequence[str]) -> Rows:
    """Return the rows of many records (name, bytes) at once.

    Raises InputError, naming the record, for one that is none, for other columns than those of the first, a column that is
    missing, or a value that is no number, no label or no hour.
    """
    import pandas as pd

    header = batch[0][1].partition(b"\n")[0]
    columns = header.decode("ascii", "replace").strip().split("|")
    bodies, lengths, ids = [], [], []
    for name, data in batch:
        if not data.strip() or data.lstrip()[:1] == b"<":
            raise InputError(f"{name}: found {kind_of(data.strip())}, expected a record. Replace it.")
        if b"\r" in data:
            raise InputError(f"{name}: found line ends with a carriage return, expected \\n alone. Convert the file.")
        if missing := [c for c in (*variables, LABEL, HOUR) if c not in columns]:
            raise InputError(f"{name}: found no column {', '.join(missing)} in '{'|'.join(columns)}'")
        match = NAME.fullmatch(re.split("[/ ]", name)[-1])  # behind "archive.zip: ", in a folder or not
        if match is None:
            raise InputError(f"{name}: found another name than pNNNNNN.psv, expected that of a record. Rename it.")
        first, _, body = data.partition(b"\n")
        body = body.strip(b"\n")
        if first != header:
            raise InputError(f"{name}: found other columns than in {batch[0][0]}: '{first.decode(errors='replace')}'")
        if {line.count(b"|") for line in body.split(b"\n")} != {len(columns) - 1}:
            raise InputError(f"{name}: found rows of other than {len(columns)} fields, or none. Replace it.")
        bodies.append(body)
        lengths.append(body.count(b"\n") + 1)
        ids.append(int(match[1]))
    try:
        table = pd.read_csv(
            io.BytesIO(b"\n".join(bodies)),
            sep="|",
            header=None,
            names=columns,
            usecols=[*variables, LABEL, HOUR],
            dtype=np.float32,
            index_col=False,
            quoting=csv.QUOTE_NONE,
        )
    except ValueError as error:
        if len(batch) > 1:
            for record in batch:
                parse([record], variables)
        raise InputError(f"{batch[0][0]}: has a field that is not a number ({error})") from error
    recordings = np.repeat(np.array(ids, dtype=np.int64), lengths)
    label = table[LABEL].to_numpy()
    if bad := sorted(set(recordings[~np.isin(label, (0, 1))])):
        raise InputError(f"record p{bad[0]:06d}.psv: {LABEL} is not 0 or 1")
    if bad := sorted(set(recordings[~np.isfinite(table[HOUR].to_numpy())])):
        raise InputError(f"record p{bad[0]:06d}.psv: {HOUR} is missing in some row")
    return Rows(
        x=table[list(variables)].to_numpy(dtype=np.float32),
        y=label.astype(np.int64),
        recordings=recordings,
        patients=recordings,
        hours=table[HOUR].to_numpy(dtype=np.float32),
    )


def read(paths: Sequence[Path], variables: Sequence[str]) -> Rows:
    """Return the rows of all records, sorted by recording and hour; raises InputError for two records of the same name
    and for an hour that repeats.

    Reads a few thousand records at a time.
    """
    found = records(paths)
    batches = iter(lambda: list(islice(found, _RECORDS_AT_ONCE)), [])
    parts = [parse(batch, variables) for batch in batches]
    if not parts:
        raise InputError(f"found no pNNNNNN.psv record in {', '.join(map(str, paths))}")
    whole = Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if len(segments(whole.recordings)[0]) != len(np.unique(whole.recordings)):
        raise InputError(f"records appear twice in {', '.join(map(str, paths))}; give zips or folders, not both")
    rows = whole.take(np.lexsort((whole.hours, whole.recordings)))
    if (twice := np.flatnonzero((np.diff(rows.recordings) == 0) & (np.diff(rows.hours) == 0))).size:
        name, hour = f"p{rows.recordings[twice[0]]:06d}.psv", rows.hours[twice[0]]
        raise InputError(f"record {name}: found {HOUR} {hour:g} more than once, expected each hour once. Correct it.")
    return rows


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read both sets, select the cohort, drop impossible values and write the folds."""
    variables: Mapping[str, Sequence[float]] = settings["variables"]
    rows = read(raw.find(), list(variables))
    exclusions: list[dict[str, Any]] = []
    total = len(np.unique(rows.recordings))
    flow = [{"step": "records found", "n": total, "unit": "recordings"}]
    if settings["cohort"] == "sepsis_only":
        positive = positive_recordings(rows)
        without = len(np.unique(rows.recordings[~positive]))
        exclusions.append({"reason": "recordings without a positive hour", "count": without})
        rows = rows.take(positive)
        flow.append({"step": "with a positive hour", "n": total - without, "unit": "recordings"})
    outside = outside_to_missing(rows.x, variables)
    exclusions += [
        {"reason": f"values of {name} outside {variables[name][0]:g} to {variables[name][1]:g}", "count": count}
        for name, count in outside.items()
    ]
    rule = f"1 from {LABEL_HOURS_BEFORE} hours before the onset of sepsis (Sepsis-3) to the end of the record, as the source "
    rule += "gives it"
    extra = {"flow": flow, "label_hours_before": LABEL_HOURS_BEFORE}
    folds = hospital_folds(rows) if settings["folds"] == "hospitals" else None
    write(raw, out_dir, settings, seed, rows, exclusions, rule, extra, folds)


def hospital_folds(rows: Rows) -> NDArray[np.int64]:
    """Return the test fold (rows,) of each row: 0 for set A, 1 for set B, which come from two hospital systems.

    Raises InputError when a set is missing or without a positive hour.
    """
    folds = (rows.recordings >= FIRST_OF_SET_B).astype(np.int64)
    for fold, name in enumerate("AB"):
        if not rows.y[folds == fold].any():
            raise InputError(
                f"folds is 'hospitals', but there is no record of set {name} with a positive hour; provide training_setA "
                "and training_setB, or give `folds` a number"
            )
    return folds
