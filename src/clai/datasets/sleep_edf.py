"""Sleep-EDF: pairs of a polysomnogram (EDF) and a hypnogram (EDF+ annotations), cut into scored epochs.

Stages 3 and 4 become N3; movement time and unscored time are dropped (paper, section 6.1). File names are
SC4ssNE0-PSG.edf with subject ss and night N. Both files of a pair begin at the same moment; hypnograms run on past the
signal.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clai.datasets.fetch import Raw
from clai.datasets.prepared import SPLITS, writing
from clai.datasets.splits import subject_split
from clai.errors import InputError
from clai.logs import logger

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
NAME = re.compile(r"SC4(?P<subject>\d\d)(?P<night>\d)\w\w-(PSG|Hypnogram)\.edf")


@dataclass(frozen=True)
class Night:
    """A recording: its signal file, subject, the epochs kept (indices from the start) and their stages (0..4)."""

    psg: Path
    subject: int
    epochs: npt.NDArray[np.int64]
    stages: npt.NDArray[np.int64]


def stage_of_epochs(
    onsets: Sequence[float], durations: Sequence[float], descriptions: Sequence[str], epochs: int, seconds: float
) -> npt.NDArray[np.int64]:
    """Stage of each epoch of a signal: 0..4, MOVEMENT or UNSCORED.

    onsets, durations: seconds from the start of the signal. epochs: how many whole epochs the signal has; annotations
    beyond are ignored. An epoch that no single annotation covers wholly is UNSCORED. Raises InputError for an unknown
    description.
    """
    stage = np.full(epochs, UNSCORED, dtype=np.int64)
    for onset, duration, description in zip(onsets, durations, descriptions, strict=True):
        if description not in STAGES:
            raise InputError(f"annotation '{description}' at {onset:g} s is none of {', '.join(STAGES)}")
        first, last = int(np.ceil(onset / seconds)), int(np.floor((onset + duration) / seconds))
        stage[max(first, 0) : max(last, 0)] = STAGES[description]
    return stage


def within_sleep(stages: npt.NDArray[np.int64], margin: int | None) -> npt.NDArray[np.bool_]:
    """Which epochs lie within `margin` epochs of the first and last epoch of sleep; all of them when margin is None."""
    keep = np.ones(len(stages), dtype=bool)
    asleep = np.flatnonzero(stages > WAKE)
    if margin is not None and len(asleep):
        keep[: max(asleep[0] - margin, 0)] = False
        keep[asleep[-1] + margin + 1 :] = False
    return keep


def check_complete(path: Path) -> None:
    """Raise InputError, naming the file, when an EDF file is shorter than its header says."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        header = stream.read(256)
        try:
            header_size, records, signals = int(header[184:192]), int(header[236:244]), int(header[252:256])
            stream.seek(256 + 216 * signals)
            samples = sum(int(stream.read(8)) for _ in range(signals))
        except ValueError as error:
            raise InputError(f"{path}: not an EDF file ({error}). Delete it and run again.") from error
    expected = header_size + 2 * samples * max(records, 0)
    if size < expected:
        raise InputError(
            f"{path}: found {size} bytes, expected {expected} for the {records} data records of its header. The file "
            "is truncated: delete it and run again."
        )


def pairs(paths: Sequence[Path]) -> list[tuple[Path, Path, int]]:
    """Signal file, hypnogram and subject of each recording, by name.

    Raises InputError for a file of another name or without its partner.
    """
    found: dict[tuple[int, int], dict[str, Path]] = {}
    for path in paths:
        match = NAME.fullmatch(path.name)
        if match is None:
            raise InputError(f"{path}: name is not SC4ssNxx-PSG.edf or SC4ssNxx-Hypnogram.edf (ss subject, N night)")
        found.setdefault((int(match["subject"]), int(match["night"])), {})[match[3]] = path
    for (subject, night), files in found.items():
        if len(files) < 2:
            (path,) = files.values()
            raise InputError(
                f"{path}: found no partner for subject {subject}, night {night}; expected PSG and Hypnogram"
            )
    return [(files["PSG"], files["Hypnogram"], key[0]) for key, files in sorted(found.items())]


def read_night(psg: Path, hypnogram: Path, subject: int, settings: Mapping[str, Any], dropped: Counter[str]) -> Night:
    """Which epochs of a recording are kept and how they are scored; the others are counted in `dropped`."""
    import mne

    check_complete(psg)
    check_complete(hypnogram)
    seconds, rate = settings["epoch_seconds"], settings["sampling_rate"]
    signal = _open(psg, settings["channels"])
    if signal.info["sfreq"] != rate:
        raise InputError(f"{psg}: found {signal.info['sfreq']:g} Hz, expected {rate:g} Hz (`sampling_rate`)")
    marks = mne.read_annotations(hypnogram)
    start = signal.info["meas_date"]
    if marks.orig_time is not None and start is not None and marks.orig_time != start:
        raise InputError(
            f"{hypnogram}: begins at {marks.orig_time}, its signal {psg.name} at {start}; expected the same"
        )
    count = int(signal.n_times // round(seconds * rate))
    try:
        stages = stage_of_epochs(marks.onset, marks.duration, marks.description, count, seconds)
    except InputError as error:
        raise InputError(f"{hypnogram}: {error}") from None
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
    return Night(psg, subject, epochs, stages[epochs])


def _open(psg: Path, channels: Sequence[str]) -> Any:
    import mne

    raw = mne.io.read_raw_edf(psg, include=list(channels), stim_channel=None, preload=False, verbose="error")
    if missing := [c for c in channels if c not in raw.ch_names]:
        raise InputError(
            f"{psg}: found no channel {', '.join(missing)}; expected the ones of `channels` in config.yaml"
        )
    return raw


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Score the epochs of every recording, divide the subjects and stream the signals into the split arrays."""
    dropped: Counter[str] = Counter()
    nights = [read_night(*pair, settings, dropped) for pair in pairs(raw.find())]
    subjects = np.array([night.subject for night in nights])
    parts = dict(
        zip(
            ("train", "val", "test"),
            subject_split(subjects, settings["test_share"], settings["validation_share"], seed),
            strict=True,
        )
    )
    samples = round(settings["epoch_seconds"] * settings["sampling_rate"])
    channels = list(settings["channels"])
    with writing(out_dir) as writer:
        for split in SPLITS:
            members = [night for night in nights if night.subject in parts[split]]
            n = sum(len(night.epochs) for night in members)
            x = writer.empty(f"x_{split}", (n, len(channels), samples), np.float32)
            at = 0
            for night in members:
                logger.info("%s: %d epochs for %s", night.psg.name, len(night.epochs), split)
                microvolt = 1e6 * _open(night.psg, channels).get_data(picks=channels)
                whole = microvolt[:, : microvolt.shape[1] // samples * samples].reshape(len(channels), -1, samples)
                x[at : at + len(night.epochs)] = whole[:, night.epochs].transpose(1, 0, 2)
                at += len(night.epochs)
            writer.array(f"y_{split}", np.concatenate([night.stages for night in members]))
            writer.array(
                f"groups_{split}", np.repeat([night.subject for night in members], [len(m.epochs) for m in members])
            )
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
                "exclusions": [{"reason": reason, "count": count} for reason, count in dropped.items()],
            }
        )
