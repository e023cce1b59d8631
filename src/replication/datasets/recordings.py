"""Recordings: what encoders and other classifiers see of each hour, the common part of the sepsis sources, and Challenge 2019.

PhysioNet/CinC Challenge 2019 has hourly ICU records as pipe-separated files, one for each patient, in zips or folders. The hour
is ICULOS, the hours since admission to the ICU, which does not always begin at 1.
"""

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError
from clailearn.limits import LARGEST_TEXT, check_file
from clailearn.pictures import is_own
from replication.datasets.files import reading
from replication.datasets.prepared import DEVELOPMENT, Writer, require_classes
from replication.datasets.sources import Raw, Source

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

CLASSES = ["no sepsis", "sepsis"]
UNITS = {
    "HR": "beats/min", "O2Sat": "%", "Temp": "degrees Celsius", "SBP": "mmHg", "MAP": "mmHg", "DBP": "mmHg",
    "Resp": "breaths/min",
}  # fmt: skip
ADMITTING = ("cohort", "minimum_age", "minimum_hours", "minimum_onset_hours", "first_stay_only", "onset")
"""Settings that decide which recordings are admitted, where a source has them."""
LAGS = (1, 4, 8)
"""Hours; each adds the change of the last value over the lag, or since the first hour."""
TIME_SCALES = (2, 8, 32)
"""Hours; each adds the mean and the deviation of the last value and the share of hours with a measurement, with weights that fall
by the factor e in that time."""
_FURTHEST = 6.0  # Larger distances from the training mean, in standard deviations, are cut to this one.
_LONGEST = 336  # Later hours of the stay count as this one (two weeks).


class Rows(NamedTuple):
    """Hourly rows, (rows,) and (rows, variables), NaN where not measured; those of a recording are contiguous, in order."""

    x: Floats
    y: Indices
    recordings: Indices
    patients: Indices
    hours: Floats

    def take(self, rows: npt.NDArray[Any]) -> "Rows":
        """Return the rows of these numbers (n,), or those where a mask (rows,) holds."""
        return Rows(*(part[rows] for part in self))


def outside_to_missing(x: Floats, ranges: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Set values of x (rows, variables) outside [low, high] to NaN in place; return an exclusion for each variable."""
    exclusions = []
    for column, (name, (low, high)) in enumerate(ranges.items()):
        outside = (x[:, column] < low) | (x[:, column] > high)
        x[outside, column] = np.nan
        exclusions.append({"reason": f"values of {name} outside {low:g} to {high:g}", "count": int(outside.sum())})
    return exclusions


def positive_recordings(rows: Rows) -> Mask:
    """Return (rows,) whether the recording of each row has a positive hour."""
    return np.isin(rows.recordings, np.unique(rows.recordings[rows.y == 1]))


def cohort_text(flow: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
    """Return in words how the cohort came about, step by step, and the settings that decide it."""
    steps = "; ".join(f"{step['n']} {step['unit']}: {step['step']}" for step in flow)
    decided = ", ".join(f"{name} {settings[name]}" for name in ADMITTING if name in settings)
    return f"The cohort: {steps}. Its settings: {decided}."


def draw_folds(rows: Rows, settings: Mapping[str, Any], seed: int) -> tuple[Indices, str]:
    """Return the fold of each row, and in words how recordings are divided.

    The development patients are drawn first, at `development_share` of the patients; the others are in the folds. Raises
    InputError, with the setting to change, when a part has no hour of a class.
    """
    advice = "Correct the settings that admit recordings, or provide others."
    require_classes(rows.y, {"cohort": slice(None)}, CLASSES, advice)
    share, development = settings["development_share"], np.zeros(len(rows.y), dtype=bool)
    if share is not None:
        development = draw_patients(rows.patients, rows.y, ~development, share, seed)
    others, folds = rows.take(~development), np.full(len(rows.y), DEVELOPMENT)
    _, first, recording = np.unique(others.recordings, return_index=True, return_inverse=True)
    positive = positive_recordings(others)[first]
    folds[~development] = patient_folds(others.patients[first], positive, settings["folds"], seed)[recording]
    parts = {f"folds: the rows of fold {fold}": folds == fold for fold in range(settings["folds"])}
    require_classes(rows.y, parts, CLASSES, "Lower `folds` or admit more recordings.")
    rule = f"{settings['folds']} folds by patient, stratified by whether a recording has a positive hour (seed {seed})"
    if share is not None:
        rule += f"; development patients in no fold: a share of {share} with and without a positive hour"
        remedy = "Raise `development_share`, or set it to null for none."
        require_classes(rows.y, {"development_share: the rows of development patients": development}, CLASSES, remedy)
    return folds, rule


def write(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int, rows: Rows, **entries: Any) -> None:
    """Write the prepared form, with these entries of `dataset.json`, `label_rule` and `flow` among them.

    Raises InputError, with the flow and the settings behind it, when a part has no hour of a class.
    """
    variables = list(settings["variables"])
    try:
        folds, split_rule = draw_folds(rows, settings, seed)
    except InputError as error:
        raise InputError(f"datasets.{raw.dataset}.{error} {cohort_text(entries['flow'], settings)}") from None
    writer.array("x_all", rows.x)
    writer.array("observed_all", ~np.isnan(rows.x))
    writer.array("y_all", rows.y)
    writer.array("groups_all", rows.recordings)
    writer.array("patients_all", rows.patients)
    writer.array("hours_all", rows.hours)
    writer.array("folds_all", folds)
    writer.describe(
        kind="recordings",
        classes=CLASSES,
        variables=variables,
        units=[UNITS.get(name, "as in the records") for name in variables],
        sampling_rate=1 / 3600,
        cohort=settings["cohort"],
        split_rule=split_rule,
        **entries,
    )


def draw_patients(patients: Indices, y: Indices, candidates: Mask, share: float, seed: int) -> Mask:
    """Draw this share of the candidate patients, at least one with and one without a positive row, and return their rows.

    Patients are drawn and not recordings, because the stays of one patient resemble each other. Patients with a positive row
    and patients without one are drawn at the same share. The draw of the positive ones does not depend on the others. patients,
    y, candidates: (rows,).
    """
    generator = np.random.default_rng(seed)
    positive = np.unique(patients[candidates & (y == 1)])
    strata = (positive, np.setdiff1d(np.unique(patients[candidates]), positive))
    drawn = [generator.permutation(stratum)[: max(1, round(share * len(stratum)))] for stratum in strata]
    return np.isin(patients, np.concatenate(drawn)) & candidates


def patient_folds(patients: Indices, positive: Mask, folds: int, seed: int) -> Indices:
    """Return the test fold (recordings,) of each recording, in 0 .. folds - 1.

    All recordings of a patient are in one fold, and folds share the positive recordings evenly. Raises InputError for fewer
    patients than folds with a positive recording, or without one.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    found = [len(np.unique(patients[positive == value])) for value in (True, False)]
    if 0 < min(found) < folds or max(found) < folds:
        counts = f"found {found[0]} patients with a positive hour and {found[1]} without one"
        expected = f"expected at least {folds} of each, or none of one kind"
        raise InputError(f"folds: {counts}, {expected}. Lower `folds` or admit more recordings.")
    alone = len(np.unique(patients)) == len(patients)
    splitter = (StratifiedKFold if alone else StratifiedGroupKFold)(folds, shuffle=True, random_state=seed)
    fold = np.full(len(patients), -1, dtype=np.int64)
    for k, (_, test) in enumerate(splitter.split(patients, positive, groups=None if alone else patients)):
        fold[test] = k
    return fold


def segments(values: npt.NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the first row and the length of each run of equal values (rows,), in order."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return starts, np.diff(starts, append=len(values))


def hourly_names(variables: Sequence[str]) -> list[str]:
    """Return the names of the columns of `hourly_inputs`."""
    kinds = ["last value", "measured", "log hours since measured"]
    kinds += [f"change over {lag} h" for lag in LAGS]
    kinds += [f"{what} over {scale} h" for scale in TIME_SCALES for what in ("mean", "deviation", "share measured")]
    return [f"{kind}: {name}" for kind in kinds for name in variables] + ["log hour of the stay", "hour of the stay"]


def hourly_inputs(x: Floats, recording: Indices, hours: Floats, mean: Sequence[float], sd: Sequence[float]) -> Floats:
    """Return the inputs (rows, F) of each hour, which summarise it and the earlier ones of its recording, as `hourly_names` says.

    x: (rows, variables), NaN where nothing was measured; rows of a recording are contiguous and in order of time. recording,
    hours: (rows,). mean, sd: (variables,), from training rows; a variable without a measurement so far has this mean.
    """
    starts, lengths = segments(recording)
    row = np.arange(len(x))[:, None]
    first = np.repeat(starts, lengths)[:, None]
    measured = ~np.isnan(x)
    seen = np.where(measured, row, -1)
    np.maximum.accumulate(seen, axis=0, out=seen)
    known = seen >= first
    value = (np.take_along_axis(x, seen.clip(0), axis=0) - np.asarray(mean, np.float32)) / np.asarray(sd, np.float32)
    value = np.where(known, value, 0).clip(-_FURTHEST, _FURTHEST).astype(np.float32)
    since = np.log1p(np.where(known, row - seen, row - first + 1)) / 2
    share = measured.astype(np.float32)

    columns: list[npt.NDArray[Any]] = [value, share, since]
    columns += [value - np.take_along_axis(value, np.maximum(row - lag, first), axis=0) for lag in LAGS]
    moments = np.concatenate([value, np.square(value), share], axis=1)
    for scale in TIME_SCALES:
        averages = _weighted_mean(moments, starts, lengths, np.float32(1 - np.exp(-1 / scale)))
        average, square, often = np.split(averages, 3, axis=1)
        columns += [average, np.sqrt(np.maximum(square - np.square(average), 0)), often]
    hour = hours.clip(0, _LONGEST)[:, None]
    columns += [np.log1p(hour) - 3, hour / 50 - 1]  # of order 1 for most stays
    return np.concatenate(columns, axis=1, dtype=np.float32)


def _weighted_mean(values: Floats, starts: Indices, lengths: Indices, weight: np.float32) -> Floats:
    """Return m[t] = m[t - 1] + weight (values[t] - m[t - 1]) of each recording, with m[0] = values[0], like values (rows, F)."""
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    result = np.empty_like(values)
    result[starts] = mean = values[starts]
    for hour in range(1, int(lengths.max(initial=0))):
        running = starts[: np.searchsorted(-lengths, -hour)] + hour
        mean = mean[: len(running)]
        mean += weight * (values[running] - mean)
        result[running] = mean
    return result


# Challenge 2019

NAME = re.compile(r"p(\d{6})\.psv", re.IGNORECASE)
LABEL, HOUR = "SepsisLabel", "ICULOS"
LABEL_HOURS_BEFORE = 6
"""How many hours before the onset the label begins, in MIMIC-IV, too."""


def records(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each record in zips and .psv files."""
    for path in paths:
        if path.suffix.lower() != ".zip":
            with reading(path, "a record"):
                check_file(path, LARGEST_TEXT)
            yield str(path), path.read_bytes()
            continue
        with reading(path, "a zip of records"), zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.lower().endswith(".psv") and all(map(is_own, Path(info.filename).parts)):
                    if (size := info.file_size) > LARGEST_TEXT:
                        raise InputError(f"{path}: {info.filename} unpacks to {size} bytes. Replace the archive.")
                    yield f"{path}: {info.filename}", archive.read(info)


def parse(name: str, data: bytes, variables: Sequence[str]) -> Rows:
    """Return the rows of a record; raise InputError, naming it, for one that is none, or lacks a number, a label or an hour."""
    match = NAME.fullmatch(re.split("[/ ]", name)[-1])  # behind "archive.zip: ", in a folder or not
    if match is None:
        raise InputError(f"{name}: found another name than pNNNNNN.psv, expected that of a record. Rename it.")
    needed = [*variables, LABEL, HOUR]
    expected = f"a record with {', '.join(needed)} (`variables` of the entry among them)"
    with reading(name, expected), warnings.catch_warnings(action="error"):
        header, *lines = data.decode("utf-8-sig").splitlines()
        columns = header.split("|")
        if odd := [column for column in needed if columns.count(column) != 1]:
            raise ValueError(f"not one column each of {', '.join(odd)} among {', '.join(columns)}")
        if not any(lines):
            raise InputError(f"{name}: found a header and no hour below it, expected some. Remove the record.")
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
    if (odd := np.flatnonzero((np.diff(rows.recordings) == 0) & (np.diff(rows.hours) != 1))).size:
        after, before = rows.hours[odd[0] + 1], rows.hours[odd[0]]
        found = f"record p{rows.recordings[odd[0]]:06d}.psv: found {HOUR} {after:g} after {before:g}"
        raise InputError(f"{found}, expected each hour once, without gaps. Correct it.")
    return rows


def prepare_challenge2019(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Read both sets, select the cohort, drop impossible values and write the folds."""
    rows = read(raw.find(), list(settings["variables"]))
    exclusions: list[dict[str, Any]] = []
    total = len(np.unique(rows.recordings))
    flow = [{"step": "records found", "n": total, "unit": "recordings"}]
    if settings["cohort"] == "sepsis_only":
        rows = rows.take(positive_recordings(rows))
        left = len(np.unique(rows.recordings))
        exclusions.append({"reason": "recordings without a positive hour", "count": total - left})
        flow.append({"step": "with a positive hour", "n": left, "unit": "recordings"})
    exclusions += outside_to_missing(rows.x, settings["variables"])
    rule = f"1 from {LABEL_HOURS_BEFORE} hours before the onset of sepsis (Sepsis-3) to the end of the record"
    extra = {"label_rule": f"{rule}, as the source gives it", "label_hours_before": LABEL_HOURS_BEFORE}
    write(raw, writer, settings, seed, rows, **extra, exclusions=exclusions, flow=flow)


CHALLENGE2019 = Source(
    files=("**/*.psv", "*training_set*.zip", "*challenge-2019*.zip"),
    expects="a zip of .psv records, or a folder with such zips or with training_setA/ and training_setB/",
    prepare=prepare_challenge2019,
)
