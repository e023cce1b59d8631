"""Sleep-EDF: pairs of a polysomnogram (EDF) and a hypnogram (EDF+ annotations), cut into scored epochs.

Stages 3 and 4 become N3; movement time and unscored time are dropped (paper, section 6.1). File names are
SC4ssNE0-PSG.edf with subject ss and night N. Both files of a pair begin at the same moment; the hypnogram ends after the
signal.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clai.errors import InputError
from replication.datasets.fetch import Raw
from replication.datasets.prepared import SPLITS, writing
from replication.datasets.sources import Row
from replication.datasets.splits import group_split

logger = logging.getLogger(__name__)

FILES = ("**/SC4*-PSG.edf", "**/SC4*-Hypnogram.edf")
EXPECTS = "a folder with pairs of SC4ssNxx-PSG.edf and SC4ssNxx-Hypnogram.edf"
CLASSES = ["Wake", "N1", "N2", "N3", "REM"]
WAKE, MOVEMENT, UNSCORED = 0, -1, -2
STAGES = {
    "Sleep stage W": WAKE,
    "Sleep stage 1": 1,
    "Sleep stage 2": 2,
    "Sleep stage 3": 3,
    "Sleep stage 4": 3,
    "Sleep stage R": 4,
    "Movement time": MOVEMENT,
    "Sleep stage ?": UNSCORED,
}
NAME = re.compile(r"SC4(?P<subject>\d\d)(?P<night>\d)\w\w-(?P<kind>PSG|Hypnogram)\.edf")
UNITS = ("uV", "µV", "mV", "V")
LONGEST_ANNOTATION = 1e6  # seconds
_EPOCHS_AT_ONCE = 120

Key = tuple[int, int]
"""Subject and night."""


class Unusable(InputError):
    """The error of a recording that cannot be used; `reason` says why, without advice."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. Delete the file and run again, or set `unusable` to skip to leave such recordings out."
        )
        self.reason = f"{path.name}: {reason}"


@dataclass(frozen=True)
class Night:
    """A recording: its signal file, its subject, the indices (N,) of the epochs to keep, and their stages (N,) in 0..4."""

    psg: Path
    subject: int
    epochs: npt.NDArray[np.int64]
    stages: npt.NDArray[np.int64]


def stage_of_epochs(
    onsets: Sequence[float], durations: Sequence[float], descriptions: Sequence[str], epochs: int, seconds: float
) -> npt.NDArray[np.int64]:
    """Return the stage (epochs,) of each epoch of a signal: 0..4, MOVEMENT or UNSCORED.

    An epoch that no single annotation covers wholly is UNSCORED. Annotations after the last epoch have no effect.

    onsets, durations: in seconds, onsets from the start of the signal. epochs: number of whole epochs in the signal.
    seconds: of an epoch. Raises InputError for an unknown description and for an impossible time.
    """
    stage = np.full(epochs, UNSCORED, dtype=np.int64)
    for onset, duration, description in zip(onsets, durations, descriptions, strict=True):
        if description not in STAGES:
            raise InputError(f"annotation '{description}' at {onset:g} s is none of {', '.join(STAGES)}")
        if not (abs(onset) < LONGEST_ANNOTATION and 0 <= duration < LONGEST_ANNOTATION):
            raise InputError(f"annotation '{description}' at {onset:g} s lasts {duration:g} s, which no night does")
        first, last = int(np.ceil(onset / seconds)), int(np.floor((onset + duration) / seconds))
        stage[max(first, 0) : max(last, 0)] = STAGES[description]
    return stage


def within_sleep(stages: npt.NDArray[np.int64], margin: int | None) -> npt.NDArray[np.bool_]:
    """Return (N,) whether each epoch lies within `margin` epochs of the time from first to last sleep.

    stages: (N,). All epochs do when margin is None or there is no sleep.
    """
    keep = np.ones(len(stages), dtype=bool)
    asleep = np.flatnonzero(stages > WAKE)
    if margin is not None and len(asleep):
        keep[: max(asleep[0] - margin, 0)] = False
        keep[asleep[-1] + margin + 1 :] = False
    return keep


@dataclass(frozen=True)
class Header:
    """The header of an EDF file: label, unit and samples in a data record of each signal; `seconds` of a data record."""

    labels: list[str]
    units: list[str]
    samples: list[int]
    seconds: float

    def rate(self, channel: str) -> float:
        """Return the sampling rate of a channel in Hz."""
        return self.samples[self.labels.index(channel)] / self.seconds


def read_header(path: Path) -> Header:
    """Read the header of an EDF file; raises Unusable for another file, a contradiction, or a wrong file size."""
    size = path.stat().st_size
    try:
        with path.open("rb") as stream:
            fixed = stream.read(256)
            count = int(fixed[252:256])
            if fixed[:8] != b"0       " or not 1 <= count <= 512:
                raise ValueError(f"version {fixed[:8]!r}, {count} signals")
            rest = stream.read(256 * count).decode("latin1")
        start, records, seconds = int(fixed[184:192]), int(fixed[236:244]), float(fixed[244:252])

        def field(offset: int, width: int) -> list[str]:
            return [rest[offset * count + width * i :][:width].strip() for i in range(count)]

        labels, units, samples = field(0, 16), field(96, 8), [int(n) for n in field(216, 8)]
        ranges = [[float(v) for v in field(at, 8)] for at in (104, 112, 120, 128)]
    except ValueError as error:
        raise Unusable(path, f"not an EDF file ({error})") from error
    if start != 256 * (count + 1) or records < 1 or not 0 <= seconds < 1e5 or min(samples) < 1:
        raise Unusable(
            path,
            f"the header states {records} data records of {seconds:g} s, {min(samples)} or more samples of each signal "
            f"in one, and its own length as {start} bytes for {count} signals, which cannot be",
        )
    for label, low, high, lowest, highest in zip(labels, *ranges, strict=True):
        scale = all(map(math.isfinite, (low, high, lowest, highest))) and low != high and lowest < highest
        # Of the largest samples of 16 bits, so that none overflows in single precision, whatever its unit
        if not scale or not all(
            abs(low + (sample - lowest) * ((high - low) / (highest - lowest))) < 1e12 for sample in (-32768, 32767)
        ):
            raise Unusable(
                path, f"the header maps {lowest:g}..{highest:g} of {label} to {low:g}..{high:g}, which is no scale"
            )
    record = 2 * sum(samples)
    expected = start + record * records
    if size < expected:
        raise Unusable(
            path,
            f"found {size} bytes, expected {expected} for the {records} data records of its header: the file is truncated",
        )
    if size >= expected + record and labels != ["EDF Annotations"]:
        raise Unusable(
            path, f"found {size} bytes, expected {expected}: more data than the {records} data records of its header"
        )
    return Header(labels, units, samples, seconds)


def selected(keys: Iterable[Key], settings: Mapping[str, Any]) -> set[Key]:
    """Return the recordings that the settings `subjects` and `nights` select from `keys`.

    Raises InputError for a subject without a recording.
    """
    available = sorted(set(keys))
    subjects = {subject for subject, _ in available}
    if settings["subjects"] is not None:
        if absent := sorted(set(settings["subjects"]) - subjects):
            raise InputError(
                f"subjects: found no recording of {', '.join(map(str, absent))}; expected some of "
                f"{', '.join(map(str, sorted(subjects)))}"
            )
        subjects = set(settings["subjects"])
    first = {subject: min(night for s, night in available if s == subject) for subject in subjects}
    return {
        (subject, night)
        for subject, night in available
        if subject in subjects and (settings["nights"] == "all" or night == first[subject])
    }


def _key(name: str, where: object) -> tuple[Key, str]:
    """Return subject and night, and the kind of a file; raises InputError, with `where`, for another name."""
    match = NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{where}: name is not SC4ssNxx-PSG.edf or SC4ssNxx-Hypnogram.edf (ss subject, N night)")
    return (int(match["subject"]), int(match["night"])), match["kind"]


def choose(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Row]:
    """Return the files of the recordings that `subjects` and `nights` select."""
    keys = [_key(row.file, row.file)[0] for row in rows]
    selection = selected(keys, settings)
    return [row for row, key in zip(rows, keys, strict=True) if key in selection]


def pairs(paths: Sequence[Path]) -> dict[Key, dict[str, Path]]:
    """Return the files of each recording, by subject and night, then by "PSG" and "Hypnogram".

    Raises InputError for a file of another name, or two files of the same kind for a recording.
    """
    recordings: dict[Key, dict[str, Path]] = {}
    for path in paths:
        key, kind = _key(path.name, path)
        if kind in recordings.setdefault(key, {}):
            raise InputError(f"{path}: {recordings[key][kind]} is of the same subject and night. Keep one of the two.")
        recordings[key][kind] = path
    return dict(sorted(recordings.items()))


def read_night(files: Mapping[str, Path], key: Key, settings: Mapping[str, Any], dropped: Counter[str]) -> Night:
    """Select the scored epochs of a recording, and count the others in `dropped` by reason.

    Raises Unusable for a recording that lacks one of its files or a channel, is damaged, or has another sampling rate or
    unit.
    """
    import mne

    if len(files) < 2:
        (path,) = files.values()
        raise Unusable(path, f"found no partner for subject {key[0]}, night {key[1]}; expected PSG and Hypnogram")
    psg, hypnogram = files["PSG"], files["Hypnogram"]
    header, _ = read_header(psg), read_header(hypnogram)
    seconds, rate, channels = settings["epoch_seconds"], settings["sampling_rate"], settings["channels"]
    if missing := [c for c in channels if c not in header.labels]:
        raise Unusable(psg, f"found no channel {', '.join(missing)}; expected the ones of `channels` in config.yaml")
    for channel in channels:
        if header.seconds == 0 or header.rate(channel) != rate:
            found_rate = header.rate(channel) if header.seconds else math.nan
            raise Unusable(psg, f"found {found_rate:g} Hz, expected {rate:g} Hz (`sampling_rate`) in {channel}")
        if (unit := header.units[header.labels.index(channel)]) not in UNITS:
            raise Unusable(psg, f"found the unit '{unit}', expected one of {', '.join(UNITS)} in {channel}")
    try:
        signal = open_signal(psg, channels)
        marks = mne.read_annotations(hypnogram)
    except (ValueError, RuntimeError, OSError, AssertionError, IndexError) as error:
        raise Unusable(psg, f"it or its hypnogram cannot be read ({error})") from error
    start = signal.info["meas_date"]
    if marks.orig_time is not None and start is not None and marks.orig_time != start:
        raise Unusable(hypnogram, f"begins at {marks.orig_time}, its signal {psg.name} at {start}; expected the same")
    count = int(signal.n_times // round(seconds * rate))
    try:
        stages = stage_of_epochs(marks.onset, marks.duration, marks.description, count, seconds)
    except InputError as error:
        raise Unusable(hypnogram, str(error)) from None
    beyond = sum(
        max(0, int((o + d) // seconds) - max(count, int(o // seconds)))
        for o, d in zip(marks.onset, marks.duration, strict=True)
    )
    minutes = settings["trim_wake_minutes"]
    near = within_sleep(stages, None if minutes is None else round(minutes * 60 / seconds))
    scored = stages >= 0
    dropped["annotated after the end of the signal"] += beyond
    dropped["movement time"] += int((stages == MOVEMENT).sum())
    dropped["not scored"] += int((stages == UNSCORED).sum())
    if minutes is not None:
        dropped[f"wake more than {minutes:g} minutes before or after sleep"] += int((scored & ~near).sum())
    epochs = np.flatnonzero(scored & near)
    return Night(psg, key[0], epochs, stages[epochs])


def open_signal(psg: Path, channels: Sequence[str]) -> Any:
    """Open the channels of a signal file without reading them, as an `mne.io.Raw`."""
    import mne

    return mne.io.read_raw_edf(psg, include=list(channels), stim_channel=None, preload=False, verbose="error")


def epochs_of(night: Night, channels: Sequence[str], samples: int) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the epochs to keep in order, float32 (n, channels, samples) in microvolt, an hour of signal at a time."""
    signal = open_signal(night.psg, channels)
    for first in range(0, int(signal.n_times // samples), _EPOCHS_AT_ONCE):
        kept = night.epochs[(night.epochs >= first) & (night.epochs < first + _EPOCHS_AT_ONCE)]
        if not len(kept):
            continue
        stop = min((first + _EPOCHS_AT_ONCE) * samples, signal.n_times // samples * samples)
        microvolt = 1e6 * signal.get_data(picks=list(channels), start=first * samples, stop=stop)
        whole = microvolt.reshape(len(channels), -1, samples)[:, kept - first]
        yield whole.transpose(1, 0, 2).astype(np.float32)


def usable_nights(
    recordings: Mapping[Key, Mapping[str, Path]], settings: Mapping[str, Any], dropped: Counter[str]
) -> tuple[list[Night], list[str]]:
    """Return the usable recordings, and for each other one the reason.

    Raises Unusable for the first unusable recording when the setting `unusable` is `refuse`, and InputError when no recording
    is usable.
    """
    nights: list[Night] = []
    reasons: list[str] = []
    for key, files in recordings.items():
        try:
            nights.append(read_night(files, key, settings, dropped))
        except Unusable as error:
            if settings["unusable"] == "refuse":
                raise
            logger.warning("skipped: %s", error)
            reasons.append(error.reason)
    if not nights:
        raise InputError(f"none of {len(recordings)} recordings can be used; the first: {reasons[0]}")
    return nights, reasons


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Score the epochs of every recording, divide the subjects and stream the signals into the split arrays."""
    dropped: Counter[str] = Counter()
    recordings = pairs(raw.find())
    selection = selected(recordings, settings)
    selected_files = {key: files for key, files in recordings.items() if key in selection}
    nights, unusable = usable_nights(selected_files, settings, dropped)
    subjects = np.array([night.subject for night in nights])
    parts = dict(
        zip(
            SPLITS,
            group_split(subjects, settings["test_share"], settings["validation_share"], seed, "subjects"),
            strict=True,
        )
    )
    samples = round(settings["epoch_seconds"] * settings["sampling_rate"])
    channels = list(settings["channels"])
    with writing(out_dir) as writer:
        for split in SPLITS:
            members = [night for night in nights if night.subject in parts[split]]
            n = sum(len(night.epochs) for night in members)
            with writer.stream(f"x_{split}", (n, len(channels), samples), np.float32) as append:
                for night in members:
                    logger.info("%s: %d epochs for %s", night.psg.name, len(night.epochs), split)
                    for epochs in epochs_of(night, channels, samples):
                        append(epochs)
            writer.array(f"y_{split}", np.concatenate([night.stages for night in members]))
            writer.array(
                f"groups_{split}", np.repeat([night.subject for night in members], [len(m.epochs) for m in members])
            )
        flow = [("recordings found", len(recordings)), ("asked for by `subjects` and `nights`", len(selection))]
        flow += [("usable", len(nights)), *((f"of them for {s}", _count(subjects, parts[s])) for s in SPLITS)]
        writer.describe(
            raw.description(settings["title"])
            | {
                "kind": "signals",
                "classes": CLASSES,
                "channels": channels,
                "units": ["microvolt"] * len(channels),
                "sampling_rate": float(settings["sampling_rate"]),
                "split_rule": f"by subject: {settings['test_share']:g} of the subjects for test, "
                f"{settings['validation_share']:g} of the others for validation (seed {seed})",
                "flow": [{"step": step, "n": n, "unit": "recordings"} for step, n in flow],
                "exclusions": [{"reason": f"recording {reason}", "count": 1} for reason in unusable]
                + [{"reason": reason, "count": count} for reason, count in dropped.items()],
            }
        )


def _count(subjects: npt.NDArray[np.int64], part: npt.NDArray[np.int64]) -> int:
    """Return the number of recordings (N,) whose subject is in `part`."""
    return int(np.isin(subjects, part).sum())
