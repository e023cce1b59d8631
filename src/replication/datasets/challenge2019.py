"""PhysioNet/CinC Challenge 2019: hourly ICU records as pipe-separated files, one for each patient, in zips or folders.

The source labels the hours from six before the onset of sepsis to the end of the record with 1. The hour is ICULOS, the hours
since admission to the ICU, which does not always begin at 1.
"""

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clailearn.errors import InputError
from clailearn.pictures import is_own
from replication.datasets.files import reading
from replication.datasets.recordings import Rows, outside_to_missing, positive_recordings, write
from replication.datasets.sources import Raw, Source

NAME = re.compile(r"p(\d{6})\.psv")
LABEL, HOUR = "SepsisLabel", "ICULOS"
LABEL_HOURS_BEFORE = 6
LARGEST_RECORD = 2**22  # bytes; 336 hours take about 90,000


def records(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each record in zips and .psv files."""
    for path in paths:
        if path.suffix.lower() != ".zip":
            yield str(path), path.read_bytes()
            continue
        with reading(path, "a zip of records"), zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not (info.filename.lower().endswith(".psv") and all(map(is_own, Path(info.filename).parts))):
                    continue
                if info.file_size > LARGEST_RECORD:
                    raise InputError(f"{path}: {info.filename} unpacks to {info.file_size} bytes. Replace the archive.")
                yield f"{path}: {info.filename}", archive.read(info)


def parse(name: str, data: bytes, variables: Sequence[str]) -> Rows:
    """Return the rows of a record; raise InputError, naming it, for one that is none, or lacks a number, a label or an hour."""
    match = NAME.fullmatch(re.split("[/ ]", name)[-1])  # behind "archive.zip: ", in a folder or not
    if match is None:
        raise InputError(f"{name}: found another name than pNNNNNN.psv, expected that of a record. Rename it.")
    with (
        reading(name, f"a record with {', '.join([*variables, LABEL, HOUR])} (`variables` of the entry among them)"),
        warnings.catch_warnings(action="error"),
    ):
        header, *lines = data.decode("utf-8-sig").splitlines()
        columns = header.split("|")
        if odd := [column for column in (*variables, LABEL, HOUR) if columns.count(column) != 1]:
            raise ValueError(f"not one column each of {', '.join(odd)} among {', '.join(columns)}")
        table = np.loadtxt(lines, np.float32, comments=None, delimiter="|", ndmin=2)
        if table.shape[1] != len(columns):
            raise ValueError(f"{len(columns)} names of {table.shape[1]} columns")
        label, hours = (table[:, columns.index(column)] for column in (LABEL, HOUR))
        x = table[:, [columns.index(variable) for variable in variables]]
    if not np.isin(label, (0, 1)).all() or not ((hours >= 1) & (hours < 2**24) & (hours % 1 == 0)).all():
        raise InputError(f"{name}: found a row without {HOUR} from 1, or without {LABEL} 0 or 1. Replace the record.")
    recordings = np.full(len(table), int(match[1]), dtype=np.int64)
    return Rows(x, label.astype(np.int64), recordings, recordings, hours)


def read(paths: Sequence[Path], variables: Sequence[str]) -> Rows:
    """Return the rows of all records, sorted by recording and hour; raise InputError for a record or an hour that repeats."""
    parts = [parse(name, data, variables) for name, data in records(paths)]
    if not parts:
        raise InputError(f"found no pNNNNNN.psv record in {', '.join(map(str, paths))}")
    whole = Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    numbers, times = np.unique([part.recordings[0] for part in parts], return_counts=True)
    if (times > 1).any():
        raise InputError(f"record p{numbers[times > 1][0]:06d}.psv appears twice; give zips or folders, not both")
    rows = whole.take(np.lexsort((whole.hours, whole.recordings)))
    if (twice := np.flatnonzero((np.diff(rows.recordings) == 0) & (np.diff(rows.hours) == 0))).size:
        name, hour = f"p{rows.recordings[twice[0]]:06d}.psv", rows.hours[twice[0]]
        raise InputError(f"record {name}: found {HOUR} {hour:g} more than once, expected each hour once. Correct it.")
    return rows


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Read both sets, select the cohort, drop impossible values and write the folds."""
    rows = read(raw.find(), list(settings["variables"]))
    exclusions: list[dict[str, Any]] = []
    total = len(np.unique(rows.recordings))
    flow = [{"step": "records found", "n": total, "unit": "recordings"}]
    if settings["cohort"] == "sepsis_only":
        positive = positive_recordings(rows)
        without = len(np.unique(rows.recordings[~positive]))
        exclusions.append({"reason": "recordings without a positive hour", "count": without})
        rows = rows.take(positive)
        flow.append({"step": "with a positive hour", "n": total - without, "unit": "recordings"})
    exclusions += outside_to_missing(rows.x, settings["variables"])
    rule = f"1 from {LABEL_HOURS_BEFORE} hours before the onset of sepsis (Sepsis-3) to the end of the record, as the source "
    rule += "gives it"
    extra = {"flow": flow, "label_hours_before": LABEL_HOURS_BEFORE}
    write(raw, out_dir, settings, seed, rows, exclusions, rule, extra)


SOURCE = Source(
    files=("**/*.psv", "*training_set*.zip", "*challenge-2019*.zip"),
    expects="a zip of .psv records, or a folder with such zips or with training_setA/ and training_setB/",
    prepare=prepare,
)
