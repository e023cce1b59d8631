"""Sleep-EDF: pairs of a polysomnogram (EDF) and a hypnogram (EDF+ annotations), cut into scored epochs.

Stages 3 and 4 become N3; movement time and unscored time are dropped (paper, section IV-A). File names are
SC4ssNE0-PSG.edf with subject ss and night N, or a table names the pairs (`RECORDINGS`). mne reads the files; what it would
repair by a guess is refused.
"""

import logging
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clailearn.errors import InputError, kind_of
from replication.datasets.files import reading as reading_text
from replication.datasets.prepared import SPLITS, Writer
from replication.datasets.samples import Column, Indices, division, group_split, in_order
from replication.datasets.sources import Raw, Row, Source

logger = logging.getLogger(__name__)

CLASSES = ["Wake", "N1", "N2", "N3", "REM"]
WAKE, MOVEMENT, UNSCORED = 0, -1, -2
STAGES = {
    WAKE: ("w", "wake"),
    1: ("1", "n1", "s1"),
    2: ("2", "n2", "s2"),
    3: ("3", "4", "n3", "n4", "s3", "s4"),
    4: ("r", "rem"),
    MOVEMENT: ("m", "mt", "movement", "movement time"),
    UNSCORED: ("?", "unscored", "unknown"),
}
"""The names of each stage, in small letters; "sleep stage" or "stage" may stand before them."""
NAME = re.compile(r"SC4(?P<subject>\d\d)(?P<night>\d)\w\w-(?P<kind>PSG|Hypnogram)\.edf", re.IGNORECASE)
RECORDINGS = ("signal", "scoring", "subject", "night")
"""Columns of a table of pairs: two files below its own folder, and whose they are; nights may be left out."""
GUESSED = "Number of records|Invalid measurement date|Scaling factor|Physical range"
"""Warnings of mne about what it replaces by a guess: the length, the start, and the scale of a channel."""

SPREAD = (0.1, 20_000)
"""Microvolt from the lowest to the highest value of a channel: less is no signal, and more is no EEG."""
MOST_AFTER = 100
"""Annotated epochs for one of the signal, at most; a hypnogram may go on for long after it."""

Floats = npt.NDArray[np.float64]
Settings = Mapping[str, Any]
Key = tuple[int, int]
"""Subject and night."""


class Unusable(InputError):
    """The error of a recording that cannot be used; `reason` says why, without advice."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}. Correct the entry or the file, or set `unusable` to skip to leave it out.")
        self.reason = f"{path.name}: {reason}"


@contextmanager
def skipping(settings: Settings, dropped: Counter[str]) -> Iterator[None]:
    """Count a recording that raises Unusable within the block as dropped; raise it where `unusable` is `refuse`."""
    try:
        yield
    except Unusable as error:
        if settings["unusable"] == "refuse":
            raise
        logger.warning("skipped: %s", error)
        dropped[f"recording {error.reason}"] += 1


@dataclass(frozen=True)
class Night:
    """A recording: signal file, subject and night, the first sample (N,) of each epoch to keep, and their stages (N,) in 0..4."""

    psg: Path
    subject: int
    number: int
    starts: Indices
    stages: Indices


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise Unusable for an InputError, for whatever mne raises within the block, and for the warnings GUESSED."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", GUESSED)
            yield
    except InputError as error:
        raise Unusable(path, str(error)) from None
    except Exception as error:
        raise Unusable(path, f"cannot be read as EDF ({error})") from error


def open_edf(path: Path, channels: Sequence[str] | None = None) -> Any:
    """Open an EDF file as an `mne.io.Raw` of some or all channels, without reading samples; raises Unusable."""
    import mne

    with path.open("rb") as file:
        header = file.read(256)
    if header[:8] != b"0       ":
        raise Unusable(path, f"found {kind_of(header)}, expected EDF")
    if header[192:197] == b"EDF+D":
        raise Unusable(path, "found pauses in the recording (EDF+D), expected one without")
    with reading(path):
        signal = mne.io.read_raw_edf(path, include=channels, stim_channel=None, preload=False, verbose="warning")
    if not re.fullmatch(rb"\d\d\.\d\d\.\d\d", header[176:184]):  # which mne takes for midnight
        raise Unusable(path, f"found the start time {header[176:184]!r}, expected hh.mm.ss")
    return signal


def annotations_of(path: Path) -> Any:
    """Return the `mne.Annotations` of an EDF+ file, of which mne knows the ending .edf in small letters alone."""
    import mne

    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, path.name).with_suffix(".edf")
        link.symlink_to(path.resolve())
        return mne.read_annotations(link if path.suffix != link.suffix else path)


def contents(signal: Any) -> str:
    """Return in words what an `mne.io.Raw` has, for messages."""
    names, rate, begin = ", ".join(signal.ch_names), signal.info["sfreq"], signal.info["meas_date"]
    return f"it has {names} at up to {rate:g} Hz, begins at {begin:%H.%M.%S} and lasts {signal.duration:g} s"


def check_channels(psg: Path, channels: Sequence[str], rate: float) -> None:
    """Raise Unusable unless the file has each channel once, at `rate` Hz and in volts: what mne would resample, or guess."""
    whole = open_edf(psg)
    it_has = contents(whole)
    if not whole.n_times:
        raise Unusable(psg, f"found no data record; {it_has}")
    for channel in channels:
        alone = open_edf(psg, [channel])
        if (count := len(alone.ch_names)) != 1:
            raise Unusable(psg, f"found {count} channels named {channel}, expected one (`channels`); {it_has}")
        if not math.isclose(found := alone.info["sfreq"], rate, rel_tol=1e-5):  # The header rounds a record's length.
            raise Unusable(psg, f"found {found:g} Hz, expected {rate:g} Hz (`sampling_rate`) in {channel}; {it_has}")
        # mne takes a unit that it does not know, such as uv, for volts.
        if alone._raw_extras[0]["units"][0] != {"µV": 1e-6, "mV": 1e-3, "V": 1}.get(alone._orig_units[channel]):
            raise Unusable(psg, f"found another unit than uV, mV or V in {channel}; {it_has}")


def stage_of(name: str) -> int | None:
    """Return the stage of an annotation, 0..4, MOVEMENT or UNSCORED; None for another annotation."""
    short = re.sub(r"^(sleep\s*)?(stage\s*)?", "", name.strip().lower())
    return next((stage for stage, names in STAGES.items() if short in names), None)


def scored_epochs(signal: Any, marks: Any, seconds: float, later: float) -> tuple[Indices, Indices, int]:
    """Return the first sample and the stage of each annotated epoch (N,), and how many are annotated outside the signal.

    A stage is 0..4, MOVEMENT or UNSCORED. An annotation without duration lasts until the next one. signal: an `mne.io.Raw`.
    marks: `mne.Annotations`. seconds: of an epoch. later: seconds from the start of the signal to that of the hypnogram. Raises
    InputError for annotations that lack, are unknown or overlap.
    """
    if not len(marks):
        raise InputError("found no annotation, expected the stages of sleep")
    stage_by_name = {name: stage_of(name) for name in sorted(set(marks.description))}
    if unknown := [name for name, stage in stage_by_name.items() if stage is None]:
        known = ", ".join(stage_by_name)
        raise InputError(f"found the annotations {', '.join(unknown)} among {known}, expected stages (docs/data.md)")
    rate, samples = signal.info["sfreq"], round(seconds * signal.info["sfreq"])
    until_next = np.diff(marks.onset, append=signal.n_times / rate - later).clip(0)
    # In seconds, because the header rounds the rate.
    counts = np.floor(np.where(marks.duration > 0, marks.duration, until_next) / seconds + 1e-6).astype(np.int64)
    if counts.sum() > MOST_AFTER * ((fitting := signal.n_times // samples) + 1):  # which would fill memory
        raise InputError(f"found {counts.sum():,} annotated epochs, expected about {fitting:,}, as the signal has")
    begins = [onset + seconds * np.arange(count) for onset, count in zip(marks.onset + later, counts, strict=True)]
    starts = np.rint(np.concatenate(begins) * rate).astype(np.int64)
    if (np.diff(starts) < samples - 1).any():
        raise InputError("found annotations that overlap, expected one stage at a time")
    stages = np.repeat(np.array([stage_by_name[name] for name in marks.description], dtype=np.int64), counts)
    inside = (starts >= 0) & (starts + samples <= signal.n_times)
    return starts[inside], stages[inside], int((~inside).sum())


def within_sleep(starts: Indices, stages: Indices, margin: float | None) -> npt.NDArray[np.bool_]:
    """Return (N,) whether each epoch lies within `margin` samples of sleep; all do if it is None or there is no sleep."""
    asleep = starts[stages > WAKE]
    if margin is None or not len(asleep):
        return np.ones(len(starts), dtype=bool)
    return (starts >= asleep.min() - margin) & (starts <= asleep.max() + margin)


def selected(keys: Iterable[Key], settings: Settings) -> set[Key]:
    """Return the recordings that `subjects` and `nights` select; raise InputError for a subject without a recording."""
    available = sorted(set(keys))
    subjects = {subject for subject, _ in available}
    wanted = subjects if settings["subjects"] is None else set(settings["subjects"])
    if absent := sorted(wanted - subjects):
        raise InputError(f"subjects: found no recording of {absent}; expected some of {sorted(subjects)}")
    first = dict(reversed(available))
    return {(s, night) for s, night in available if s in wanted and (settings["nights"] == "all" or night == first[s])}


def _key(path: Path) -> tuple[Key, str]:
    """Return subject and night, and whether a file is a "psg" or a "hypnogram"; raises Unusable for another name."""
    match = NAME.fullmatch(path.name)
    if match is None:
        raise Unusable(path, "found another name than SC4ssNxx-PSG.edf or SC4ssNxx-Hypnogram.edf (ss subject, N night)")
    return (int(match["subject"]), int(match["night"])), match["kind"].lower()


def paired(table: Path) -> dict[Path, tuple[Key, str]]:
    """Return what `_key` says of each file that a table of pairs names; raise InputError for a table that cannot be right.

    Subjects and nights that are no numbers are numbered in order.
    """
    with reading_text(table, "a table of recordings as CSV in UTF-8"):
        rows = pd.read_csv(table, dtype=str, encoding="utf-8-sig", index_col=False, na_filter=False).map(str.strip)
        rows.columns = rows.columns.str.strip()
    if lacking := [name for name in RECORDINGS[:3] if rows.empty or "" in [*rows.get(name, [""])]]:
        raise InputError(
            f"{table}: found no {', '.join(lacking)} in some row, expected the columns {', '.join(RECORDINGS)} with commas "
            "between them, and a row a recording. Correct the table."
        )
    subjects = _numbered(Column(table, "subject").texts(rows["subject"]))
    counted = (pd.Series(subjects).groupby(subjects).cumcount() + 1).astype(str)
    nights = _numbered(rows.get("night", counted).mask(lambda name: name == "", counted))
    found = dict[Path, tuple[Key, str]]()
    for kind, column in (("psg", "signal"), ("hypnogram", "scoring")):
        for name, key in zip(rows[column], zip(subjects, nights, strict=True), strict=True):
            path = table.parent / name
            if path in found or not path.is_file() or not path.resolve().is_relative_to(table.parent.resolve()):
                state = "twice" if path in found else "outside its folder" if path.is_file() else "but no such file"
                raise InputError(f"{table}: found {name} {state}, expected a file of its own. Correct the table.")
            found[path] = (key, kind)
    return found


def _numbered(names: Iterable[str]) -> list[int]:
    """Return whole numbers, or the place of each name in their order, from 0."""
    return list(map(int if all(map(str.isdecimal, names)) else in_order(set(names)).index, names))


def choose(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """Return the files of the recordings that `subjects` and `nights` select."""
    keys = [_key(Path(row.file))[0] for row in rows]
    selection = selected(keys, settings)
    return [row for row, key in zip(rows, keys, strict=True) if key in selection]


def read_night(paths: Sequence[tuple[str, Path]], key: Key, settings: Settings, dropped: Counter[str]) -> Night:
    """Select the scored epochs of a recording, and count the others in `dropped` by reason; raise Unusable if it has none."""
    if sorted(kind for kind, _ in paths) != ["hypnogram", "psg"]:
        found = f"found {', '.join(path.name for _, path in paths)} for subject {key[0]}, night {key[1]}"
        raise Unusable(paths[0][1], f"{found}; expected one PSG and one Hypnogram")
    (_, hypnogram), (_, psg) = sorted(paths)
    seconds, rate, channels = settings["epoch_seconds"], settings["sampling_rate"], settings["channels"]
    check_channels(psg, channels, rate)
    signal = open_edf(psg, channels)
    later = (open_edf(hypnogram).info["meas_date"] - signal.info["meas_date"]).total_seconds()
    with reading(hypnogram):
        marks = annotations_of(hypnogram)
        starts, stages, outside = scored_epochs(signal, marks, seconds, later)
    scored = stages >= 0
    if not scored.any():
        marked = ", ".join(f"{name} ({count})" for name, count in sorted(Counter(marks.description).items()))
        reason = f"found no scored epoch within the signal {psg.name}, expected some; it begins {later:g} s later"
        raise Unusable(hypnogram, f"{reason} and has {marked}; of the signal, {contents(signal)}")
    minutes = settings["trim_wake_minutes"]
    near = within_sleep(starts, stages, None if minutes is None else minutes * 60 * rate)
    night = Night(psg, *key, starts[scored & near], stages[scored & near])
    logger.info("%s: %d epochs", psg.name, len(night.starts))
    spread = np.ptp(epochs_of(night, signal, channels, samples_kept(settings)), axis=(0, 2))
    least, most = SPREAD
    for channel, value in zip(channels, spread, strict=True):
        if not least <= value <= most:
            reason = f"found a signal that varies by {value:g} microvolt in {channel}, expected {least:g} to {most:,}"
            raise Unusable(psg, f"{reason}, as in EEG; its physical range, digital range or unit may be wrong")
    moving = int((stages == MOVEMENT).sum())
    dropped["annotated outside the signal"] += outside
    dropped["movement time"] += moving
    dropped["not scored"] += int(signal.n_times // round(seconds * rate) - scored.sum()) - moving
    if minutes is not None:
        dropped[f"wake more than {minutes:g} minutes before or after sleep"] += int((scored & ~near).sum())
    return night


def samples_kept(settings: Settings) -> int:
    """Return the number of samples that are taken from each epoch; raises InputError for more than an epoch has."""
    seconds, whole = settings["signal_seconds"] or settings["epoch_seconds"], settings["epoch_seconds"]
    if seconds > whole:
        raise InputError(f"signal_seconds: found {seconds:g}, expected at most epoch_seconds, {whole:g}")
    return round(seconds * settings["sampling_rate"])


def epochs_of(night: Night, signal: Any, channels: Sequence[str], samples: int, standard: bool = False) -> Floats:
    """Return the first `samples` of each epoch to keep (N, channels, samples), in microvolt.

    signal: an `mne.io.Raw`. standard: whether each channel is instead standardised, over the crop to these epochs.
    """
    first = night.starts[0]
    with reading(night.psg):
        crop = signal.get_data(picks=list(channels), start=first, stop=night.starts[-1] + samples)
    crop = (crop - crop.mean(axis=1, keepdims=True)) / crop.std(axis=1, keepdims=True) if standard else 1e6 * crop
    windows = np.lib.stride_tricks.sliding_window_view(crop, samples, axis=1)
    return windows[:, night.starts - first].transpose(1, 0, 2)


def usable_nights(
    paths: Sequence[Path], settings: Settings, dropped: Counter[str]
) -> tuple[list[Night], dict[str, int]]:
    """Return the usable ones of the selected recordings, and counts by step; raise Unusable to refuse."""
    recordings: dict[Key, list[tuple[str, Path]]] = {}
    nights: list[Night] = []
    known = next(map(paired, filter(_is_table, paths)), {})
    for path in known or paths:
        with skipping(settings, dropped):
            key, kind = known.get(path) or _key(path)
            recordings.setdefault(key, []).append((kind, path))
    selection = sorted(selected(recordings, settings))
    for key in selection:
        with skipping(settings, dropped):
            nights.append(read_night(recordings[key], key, settings, dropped))
    if not nights:
        raise InputError(f"none of {len(selection)} recordings can be used; the first: {next(iter(dropped))}")
    asked = {"asked for by `subjects` and `nights`": len(selection)}
    return nights, {"recordings found": len(recordings)} | asked | {"usable": len(nights)}


def prepare(raw: Raw, writer: Writer, settings: Settings, seed: int) -> None:
    """Score the epochs of every recording, divide the subjects and stream the signals into the split arrays."""
    samples, channels = samples_kept(settings), list(settings["channels"])
    dropped: Counter[str] = Counter()
    nights, flow = usable_nights(raw.find(), settings, dropped)
    parts = group_split(np.array([night.subject for night in nights]), settings, seed, "subjects")
    for split in SPLITS:
        members = [night for night in nights if night.subject in parts[split]]
        lengths = [len(night.starts) for night in members]
        signals = (epochs_of(night, open_edf(night.psg, channels), channels, samples) for night in members)
        writer.stream(f"x_{split}", (sum(lengths), len(channels), samples), np.float32, signals)
        writer.array(f"y_{split}", np.concatenate([night.stages for night in members]))
        writer.array(f"groups_{split}", np.repeat([night.subject for night in members], lengths))
        flow[f"of them for {split}"] = len(members)
    writer.describe(
        kind="signals",
        classes=CLASSES,
        channels=channels,
        units=["microvolt"] * len(channels),
        sampling_rate=float(settings["sampling_rate"]),
        split_rule=f"by subject: {division(settings, 'the subjects', seed)}",
        flow=[{"step": step, "n": n, "unit": "recordings"} for step, n in flow.items()],
        exclusions=[{"reason": reason, "count": count} for reason, count in dropped.items()],
    )


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def named(paths: list[Path]) -> list[Path]:
    """Return a table of pairs and the files that it names, or all paths if there is none."""
    return next(([path, *paired(path)] for path in paths if _is_table(path)), paths)


SOURCE = Source(
    files=("**/SC4*-PSG.edf", "**/SC4*-Hypnogram.edf", "recordings.csv"),
    expects=(
        "a folder with pairs of SC4ssNxx-PSG.edf and SC4ssNxx-Hypnogram.edf, or a table, in a folder recordings.csv, with the "
        f"columns {', '.join(RECORDINGS)}"
    ),
    prepare=prepare,
    named=named,
    choose=choose,
)
