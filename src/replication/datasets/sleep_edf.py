"""Sleep-EDF: pairs of a polysomnogram (EDF) and a hypnogram (EDF+ annotations), cut into scored epochs.

Stages 3 and 4 become N3; movement time and unscored time are dropped (paper, section 6.1). File names are
SC4ssNE0-PSG.edf with subject ss and night N, or a table names the pairs (`RECORDINGS`). mne reads the files; what it would
repair by a guess is refused.

`write_table` makes the table of band powers, which `feature_table` reads, a row a scored epoch. Each channel is band-pass
filtered, cropped to the epochs that `trim_wake_minutes` keeps, and standardised over the crop, so that powers have no absolute
unit. The power of a band is the integral of Welch's spectrum of the epoch (Welch 1967), the median over windows of four seconds,
which overlap by half; a feature is its natural logarithm.
"""

import csv
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
from replication.datasets.prepared import SPLITS, writing
from replication.datasets.samples import division, group_split, in_order
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

BANDS = {"delta": (0.5, 4.0), "theta": (4.0, 8.0), "alpha": (8.0, 12.0), "sigma": (12.0, 16.0), "beta": (16.0, 30.0)}
"""Limits in Hz, both included: the integral of a band ends where the next one begins."""
WINDOW_SECONDS = 4
STAGE_NAMES = np.array(["W", *CLASSES[1:]])
"""The class of an epoch in the table of band powers, by class index."""
_SMALLEST = 1e-10  # A power is raised by it, so that silence has a logarithm.

Key = tuple[int, int]
"""Subject and night."""


class Unusable(InputError):
    """The error of a recording that cannot be used; `reason` says why, without advice."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. Correct the entry or replace the file; or set `unusable` to skip to leave such recordings out."
        )
        self.reason = f"{path.name}: {reason}"


@contextmanager
def skipping(settings: Mapping[str, Any], reasons: list[str]) -> Iterator[None]:
    """Note the reason against a recording that raises Unusable within the block; raise it where `unusable` is `refuse`."""
    try:
        yield
    except Unusable as error:
        if settings["unusable"] == "refuse":
            raise
        logger.warning("skipped: %s", error)
        reasons.append(error.reason)


@dataclass(frozen=True)
class Night:
    """A recording: signal file, subject and night, the first sample (N,) of each epoch to keep, and their stages (N,) in 0..4."""

    psg: Path
    subject: int
    number: int
    starts: npt.NDArray[np.int64]
    stages: npt.NDArray[np.int64]


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
        return mne.io.read_raw_edf(path, include=channels, stim_channel=None, preload=False, verbose="warning")


def annotations_of(path: Path) -> Any:
    """Return the `mne.Annotations` of an EDF+ file, of which mne knows the ending .edf in small letters alone."""
    import mne

    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, path.name).with_suffix(".edf")
        link.symlink_to(path.resolve())
        return mne.read_annotations(link if path.suffix != link.suffix else path)


def contents(signal: Any) -> str:
    """Return in words what an `mne.io.Raw` has, for messages."""
    return (
        f"it has {', '.join(signal.ch_names)} at up to {signal.info['sfreq']:g} Hz, begins at "
        f"{signal.info['meas_date']:%H.%M.%S} and lasts {signal.duration:g} s"
    )


def check_channels(psg: Path, channels: Sequence[str], rate: float) -> None:
    """Raise Unusable unless the file has each channel once, at `rate` Hz and in volts: what mne would resample, or guess."""
    whole = open_edf(psg)
    it_has = contents(whole)
    if not whole.n_times:
        raise Unusable(psg, f"found no data record; {it_has}")
    for channel in channels:
        alone = open_edf(psg, [channel])
        if (count := len(alone.ch_names)) != 1:
            found = f"{count} channels named" if count else "no channel"
            raise Unusable(psg, f"found {found} {channel}, expected one (`channels`); {it_has}")
        if not math.isclose(alone.info["sfreq"], rate, rel_tol=1e-5):  # The header rounds the length of a data record.
            raise Unusable(
                psg, f"found {alone.info['sfreq']:g} Hz, expected {rate:g} Hz (`sampling_rate`) in {channel}; {it_has}"
            )
        # mne takes a unit that it does not know, such as uv, for volts.
        if alone._raw_extras[0]["units"][0] != {"µV": 1e-6, "mV": 1e-3, "V": 1}.get(alone._orig_units[channel]):
            raise Unusable(psg, f"found another unit than uV, mV or V in {channel}; {it_has}")


def stage_of(name: str) -> int | None:
    """Return the stage of an annotation, 0..4, MOVEMENT or UNSCORED; None for another annotation."""
    short = re.sub(r"^(sleep\s*)?(stage\s*)?", "", name.strip().lower())
    return next((stage for stage, names in STAGES.items() if short in names), None)


def scored_epochs(
    signal: Any, marks: Any, seconds: float, later: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return the first sample and the stage of each annotated epoch (N,), and how many are annotated outside the signal.

    A stage is 0..4, MOVEMENT or UNSCORED. An annotation without duration lasts until the next one. signal: an `mne.io.Raw`.
    marks: `mne.Annotations`. seconds: of an epoch. later: seconds from the start of the signal to that of the hypnogram. Raises
    InputError for annotations that lack, are unknown or overlap.
    """
    if not len(marks):
        raise InputError("found no annotation, expected the stages of sleep")
    names = sorted(set(marks.description))
    if unknown := [name for name in names if stage_of(name) is None]:
        raise InputError(
            f"found the annotations {', '.join(unknown)} among {', '.join(names)}, expected the stages of sleep (docs/data.md)"
        )
    rate, samples = signal.info["sfreq"], round(seconds * signal.info["sfreq"])
    onsets, lasting = (np.rint(times * rate).astype(np.int64) for times in (marks.onset + later, marks.duration))
    until_next = np.append(onsets[1:], signal.n_times) - onsets
    counts = np.where(lasting > 0, lasting, until_next.clip(0)) // samples
    if counts.sum() > MOST_AFTER * (signal.n_times // samples + 1):  # which would fill memory
        raise InputError(
            f"found {counts.sum():,} annotated epochs, expected about {signal.n_times // samples:,}, as the signal has"
        )
    starts = np.concatenate([onset + samples * np.arange(count) for onset, count in zip(onsets, counts, strict=True)])
    if (np.diff(starts) < samples).any():
        raise InputError("found annotations that overlap, expected one stage at a time")
    stages = np.repeat(np.array([stage_of(name) for name in marks.description], dtype=np.int64), counts)
    inside = (starts >= 0) & (starts + samples <= signal.n_times)
    return starts[inside], stages[inside], int((~inside).sum())


def within_sleep(
    starts: npt.NDArray[np.int64], stages: npt.NDArray[np.int64], margin: float | None
) -> npt.NDArray[np.bool_]:
    """Return (N,) whether each epoch lies within `margin` samples of sleep; all do if it is None or there is no sleep."""
    asleep = starts[stages > WAKE]
    if margin is None or not len(asleep):
        return np.ones(len(starts), dtype=bool)
    return (starts >= asleep.min() - margin) & (starts <= asleep.max() + margin)


def selected(keys: Iterable[Key], settings: Mapping[str, Any]) -> set[Key]:
    """Return the recordings that `subjects` and `nights` select; raise InputError for a subject without a recording."""
    available = sorted(set(keys))
    subjects = {subject for subject, _ in available}
    wanted = subjects if settings["subjects"] is None else set(settings["subjects"])
    if absent := sorted(wanted - subjects):
        raise InputError(
            f"subjects: found no recording of {', '.join(map(str, absent))}; expected some of "
            f"{', '.join(map(str, sorted(subjects)))}"
        )
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
    with (
        reading_text(table, "a table of recordings as CSV in UTF-8"),
        table.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = [{str(key).strip(): (value or "").strip() for key, value in row.items()} for row in csv.DictReader(file)]
    lacking = [name for name in RECORDINGS[:3] if not rows or not all(row.get(name) for row in rows)]
    if lacking:
        raise InputError(
            f"{table}: found no {', '.join(lacking)} in some row, expected the columns {', '.join(RECORDINGS)} with commas "
            "between them, and a row a recording. Correct the table."
        )
    subjects = _numbered([row["subject"] for row in rows])
    before = Counter[int]()
    names = []
    for row, subject in zip(rows, subjects, strict=True):
        before[subject] += 1
        names.append(row.get("night") or str(before[subject]))
    found = dict[Path, tuple[Key, str]]()
    for row, key in zip(rows, zip(subjects, _numbered(names), strict=True), strict=True):
        for kind, column in (("psg", "signal"), ("hypnogram", "scoring")):
            path = table.parent / row[column]
            if path in found or not path.is_file() or not path.resolve().is_relative_to(table.parent.resolve()):
                state = (
                    "twice" if path in found else "outside its folder" if path.is_file() else "where there is no file"
                )
                raise InputError(
                    f"{table}: found {row[column]} {state}, expected a file of its own. Correct the table."
                )
            found[path] = (key, kind)
    return found


def _numbered(names: Sequence[str]) -> list[int]:
    """Return whole numbers, or the place of each name in their order, from 0."""
    if all(name.isdecimal() for name in names):
        return [int(name) for name in names]
    order = in_order(set(names))
    return [order.index(name) for name in names]


def choose(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Row]:
    """Return the files of the recordings that `subjects` and `nights` select."""
    keys = [_key(Path(row.file))[0] for row in rows]
    selection = selected(keys, settings)
    return [row for row, key in zip(rows, keys, strict=True) if key in selection]


def read_night(
    paths: Sequence[tuple[str, Path]], key: Key, settings: Mapping[str, Any], dropped: Counter[str]
) -> Night:
    """Select the scored epochs of a recording, and count the others in `dropped` by reason; raise Unusable if it has none."""
    files = dict(paths)
    if len(files) != 2 or len(paths) != 2:
        names = ", ".join(path.name for _, path in paths)
        raise Unusable(
            paths[0][1], f"found {names} for subject {key[0]}, night {key[1]}; expected one PSG and one Hypnogram"
        )
    psg, hypnogram = files["psg"], files["hypnogram"]
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
        raise Unusable(
            hypnogram,
            f"found no scored epoch within the signal {psg.name}, expected some; it begins {later:g} s after the signal and has "
            f"{marked}; of the signal, {contents(signal)}",
        )
    minutes = settings["trim_wake_minutes"]
    near = within_sleep(starts, stages, None if minutes is None else minutes * 60 * rate)
    night = Night(psg, *key, starts[scored & near], stages[scored & near])
    logger.info("%s: %d epochs", psg.name, len(night.starts))
    spread = np.ptp(signals_of(night, channels, samples_kept(settings)), axis=(0, 2))
    least, most = SPREAD
    for channel, value in zip(channels, spread, strict=True):
        if not least <= value <= most:
            raise Unusable(
                psg,
                f"found a signal that varies by {value:g} microvolt in {channel}, expected {least:g} to {most:,}, as in EEG; "
                "its physical range, digital range or unit may be wrong",
            )
    moving = int((stages == MOVEMENT).sum())
    dropped["annotated after the end of the signal"] += outside
    dropped["movement time"] += moving
    dropped["not scored"] += int(signal.n_times // round(seconds * rate) - scored.sum()) - moving
    if minutes is not None:
        dropped[f"wake more than {minutes:g} minutes before or after sleep"] += int((scored & ~near).sum())
    return night


def samples_kept(settings: Mapping[str, Any]) -> int:
    """Return the number of samples that are taken from each epoch; raises InputError for more than an epoch has."""
    seconds = settings["signal_seconds"] or settings["epoch_seconds"]
    if seconds > settings["epoch_seconds"]:
        raise InputError(
            f"signal_seconds: found {seconds:g}, expected at most epoch_seconds, {settings['epoch_seconds']:g}"
        )
    return round(seconds * settings["sampling_rate"])


def signals_of(night: Night, channels: Sequence[str], samples: int) -> npt.NDArray[np.float32]:
    """Return the first `samples` of each epoch to keep, float32 (N, channels, samples) in microvolt."""
    first, stop = night.starts[0], night.starts[-1] + samples
    microvolt = 1e6 * open_edf(night.psg, channels).get_data(picks=list(channels), start=first, stop=stop)
    windows = np.lib.stride_tricks.sliding_window_view(microvolt, samples, axis=1)[:, night.starts - first]
    return windows.transpose(1, 0, 2).astype(np.float32)


def usable_nights(
    paths: Sequence[Path], settings: Mapping[str, Any], dropped: Counter[str]
) -> tuple[list[Night], list[str], list[tuple[str, int]]]:
    """Return the usable ones of the selected recordings, the reasons against others, and counts by step; Unusable to refuse."""
    recordings: dict[Key, list[tuple[str, Path]]] = {}
    nights: list[Night] = []
    reasons: list[str] = []
    tables = [path for path in paths if _is_table(path)]
    known = paired(tables[0]) if tables else {}
    for path in known or paths:
        with skipping(settings, reasons):
            key, kind = known.get(path) or _key(path)
            recordings.setdefault(key, []).append((kind, path))
    selection = sorted(selected(recordings, settings))
    for key in selection:
        with skipping(settings, reasons):
            nights.append(read_night(recordings[key], key, settings, dropped))
    if not nights:
        raise InputError(f"none of {len(selection)} recordings can be used; the first: {reasons[0]}")
    asked = "asked for by `subjects` and `nights`"
    return nights, reasons, [("recordings found", len(recordings)), (asked, len(selection)), ("usable", len(nights))]


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Score the epochs of every recording, divide the subjects and stream the signals into the split arrays."""
    samples, channels = samples_kept(settings), list(settings["channels"])
    dropped: Counter[str] = Counter()
    nights, unusable, flow = usable_nights(raw.find(), settings, dropped)
    subjects = np.array([night.subject for night in nights])
    parts = group_split(subjects, settings, seed, "subjects")
    with writing(out_dir) as writer:
        for split in SPLITS:
            members = [night for night in nights if night.subject in parts[split]]
            lengths = [len(night.starts) for night in members]
            signals = (signals_of(night, channels, samples) for night in members)
            writer.stream(f"x_{split}", (sum(lengths), len(channels), samples), np.float32, signals)
            writer.array(f"y_{split}", np.concatenate([night.stages for night in members]))
            writer.array(f"groups_{split}", np.repeat([night.subject for night in members], lengths))
            flow.append((f"of them for {split}", len(members)))
        writer.describe(
            raw.description(settings["title"]),
            kind="signals",
            classes=CLASSES,
            channels=channels,
            units=["microvolt"] * len(channels),
            sampling_rate=float(settings["sampling_rate"]),
            split_rule=f"by subject: {division(settings, 'the subjects', seed)}",
            flow=[{"step": step, "n": n, "unit": "recordings"} for step, n in flow],
            exclusions=[{"reason": f"recording {reason}", "count": 1} for reason in unusable]
            + [{"reason": reason, "count": count} for reason, count in dropped.items()],
        )


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def named(paths: list[Path]) -> list[Path]:
    """Return a table of pairs and the files that it names, or all paths if there is none."""
    tables = [path for path in paths if _is_table(path)]
    return [tables[0], *paired(tables[0])] if tables else paths


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


def log_band_powers(epochs: npt.NDArray[np.float64], rate: float) -> npt.NDArray[np.float64]:
    """Return the logarithm of the power in each band, (N, channels, bands), of epochs (N, channels, samples) at `rate` Hz."""
    from scipy.signal import welch

    window = round(WINDOW_SECONDS * rate)
    frequency, density = welch(epochs, rate, window="hamming", nperseg=window, noverlap=window // 2, average="median")
    powers = []
    for low, high in BANDS.values():
        inside = (frequency >= low) & (frequency <= high)
        powers.append(np.trapezoid(density[..., inside], frequency[inside], axis=-1))
    return np.log(np.stack(powers, axis=-1) + _SMALLEST)


def night_powers(night: Night, channels: Sequence[str], samples: int) -> npt.NDArray[np.float64]:
    """Return the log band powers (N, channels, bands) of the N epochs to keep of a recording; `samples` of an epoch."""
    limits = [limit for band in BANDS.values() for limit in band]
    first, stop = night.starts[0], night.starts[-1] + samples
    signal = open_edf(night.psg, channels).load_data(verbose="error")
    signal.filter(min(limits), max(limits), verbose="error")
    crop = signal.get_data(picks=list(channels), start=first, stop=stop)
    standardised = (crop - crop.mean(axis=1, keepdims=True)) / crop.std(axis=1, keepdims=True)
    epochs = np.lib.stride_tricks.sliding_window_view(standardised, samples, axis=1)[:, night.starts - first]
    return log_band_powers(epochs.transpose(1, 0, 2), signal.info["sfreq"])


def band_power_table(folder: Path, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of the recordings in a folder, of which the entry `sleepedf` says what is kept.

    Columns: recording, subject, night, onset_s (of the epoch, from the beginning of the signal), stage, and one for each channel
    and band, such as fpz_cz_delta. Raises InputError if the folder has no recordings, or one cannot be used.
    """
    nights, *_ = usable_nights(SOURCE.own_files(folder, "folder"), settings, Counter())
    channels, samples = settings["channels"], round(settings["epoch_seconds"] * settings["sampling_rate"])
    short = [name.split()[-1].replace("-", "_").lower() for name in channels]
    names = [f"{channel}_{band}" for channel in short for band in BANDS]
    parts = []
    for night in nights:
        powers = night_powers(night, channels, samples)
        logger.info("%s: %d epochs", night.psg.name, len(powers))
        name = night.psg.name[:6] if NAME.fullmatch(night.psg.name) else night.psg.stem
        onsets = (night.starts / settings["sampling_rate"]).astype(int)
        recording = {"recording": name, "subject": f"{night.subject:02d}", "night": str(night.number)}
        epochs = pd.DataFrame({**recording, "onset_s": onsets, "stage": STAGE_NAMES[night.stages]})
        parts.append(pd.concat([epochs, pd.DataFrame(powers.reshape(len(powers), -1), columns=names)], axis=1))
    return pd.concat(parts, ignore_index=True)


def write_table(folder: Path, table: Path, settings: Mapping[str, Any]) -> str:
    """Write the table of `band_power_table` as CSV, and return a sentence that says so."""
    frame = band_power_table(folder, settings)
    # gzip writes the time into its header unless told not to
    compression: Any = {"method": "gzip", "mtime": 0} if table.suffix == ".gz" else None
    frame.to_csv(table, index=False, float_format="%.4g", compression=compression)
    return f"{table}: {len(frame):,} epochs of {frame['recording'].nunique()} recordings, {frame['subject'].nunique()} subjects\n"
