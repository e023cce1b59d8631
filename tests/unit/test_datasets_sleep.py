"""Sleep-EDF: stages are merged and cropped as section 6.1 says, subjects never cross a split, bad recordings are named. The
power of a rhythm is in its band, in the units and the order that the table states."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
import pytest

from clailearn.errors import InputError
from replication.__main__ import main
from replication.datasets.band_powers import BANDS, band_power_table, log_band_powers
from replication.datasets.miniature import make
from replication.datasets.prepared import Prepared, load
from replication.datasets.sleep_edf import MOVEMENT, UNSCORED, choose, scored_epochs, selected, stage_of, within_sleep
from replication.datasets.sources import obtain, prepare, read_sources
from support.loopback import entry
from support.repository import MINI, REPOSITORY, SOURCES

SETTINGS: dict[str, Any] = MINI["datasets"]["sleepedf"] | {"trim_wake_minutes": None}
SPLITS = ("train", "val", "test")


def stages_of(marks: list[tuple[float, float, str]], epochs: int) -> tuple[list[tuple[int, int]], int]:
    """Epochs, counted from 0, with their stages, of a signal of so many; marks have onset, duration and stage."""
    signal = mne.io.RawArray(np.zeros((1, 300 * epochs)), mne.create_info(["EEG"], 10), verbose="error")
    starts, stages, outside = scored_epochs(signal, mne.Annotations(*zip(*marks, strict=True)), 30, 0)
    return list(zip((starts / 300).tolist(), stages.tolist(), strict=True)), outside


@pytest.mark.parametrize(
    ("marks", "epochs", "expected", "beyond"),
    [
        (  # stages 3 and 4 are one, movement and unscored are told apart
            [(30 * n, 30, f"Sleep stage {name}") for n, name in enumerate("34?R")] + [(120, 30, "Movement time")],
            5, [(0, 3), (1, 3), (2, UNSCORED), (3, 4), (4, MOVEMENT)], 0,
        ),
        # a hypnogram is cropped at the end of the signal
        ([(0, 60, "Sleep stage 1"), (60, 300, "Sleep stage 2")], 3, [(0, 1), (1, 1), (2, 2)], 9),
        # a part of an epoch is none
        ([(30, 45, "Sleep stage 1"), (75, 15, "Sleep stage 2"), (90, 30, "Sleep stage 2")], 5, [(1, 1), (3, 2)], 0),
        # a mark without duration lasts until the next one
        ([(0, 0, "Sleep stage N1"), (60, 0, "Sleep stage N2")], 4, [(0, 1), (1, 1), (2, 2), (3, 2)], 0),
    ],
)  # fmt: skip
def test_whole_epochs_have_the_stage_of_their_mark(marks: Any, epochs: int, expected: Any, beyond: int) -> None:
    assert stages_of(marks, epochs) == (expected, beyond)


@pytest.mark.parametrize(
    ("name", "stage"),
    [("Sleep stage 4", 3), ("SLEEP STAGE N1", 1), ("Sleep stage REM", 4), ("n3", 3), ("Stage 2", 2), ("S2 ", 2), ("Wake", 0),
     ("Unscored", UNSCORED), ("Movement time", MOVEMENT), ("Arousal", None), ("Sleep stage 5", None)],
)  # fmt: skip
def test_stages_are_read_as_scorers_write_them(name: str, stage: int | None) -> None:
    assert stage_of(name) == stage


@pytest.mark.parametrize("rate", [299.99985, 199.9996, 100.0])
def test_a_rate_that_the_header_rounds_costs_no_epoch(rate: float) -> None:
    signal = mne.io.RawArray(np.zeros((1, round(30 * rate * 400))), mne.create_info(["EEG"], rate), verbose="error")
    for onsets, duration in ((30 * np.arange(400), 30), ([0], 12000), ([0, 11700], [11700, 300])):
        marks = mne.Annotations(onsets, duration, "Sleep stage 2")
        starts, _, outside = scored_epochs(signal, marks, 30, 0)
        assert len(starts) + outside == 400
        assert outside <= 1


def test_annotations_that_overlap_or_never_end_are_refused() -> None:
    with pytest.raises(InputError, match="found annotations that overlap"):
        stages_of([(0, 60, "Sleep stage W"), (30, 30, "Sleep stage 1")], 2)
    with pytest.raises(InputError, match="found 3,333,333,333 annotated epochs, expected about 2"):
        stages_of([(0, 1e11, "Sleep stage W")], 2)


def test_trimming_keeps_the_margin_around_sleep_and_the_wake_within() -> None:
    stages, starts = np.array([0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0]), 3000 * np.arange(11)
    assert list(np.flatnonzero(within_sleep(starts, stages, 6000))) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert within_sleep(starts, stages, None).all()


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sleep")
    make("sleepedf", folder)
    return folder


def prepared(folder: Path, out: Path, **changes: Any) -> Prepared:
    prepare(obtain("sleepedf", entry("sleep_edf", path=str(folder)), SOURCES, out, False), out, SETTINGS | changes, 0)
    return load(out)


def test_epochs_carry_the_signal_of_their_time_in_microvolt(raw_folder: Path, tmp_path: Path) -> None:
    data = prepared(raw_folder, tmp_path / "prepared")
    subject = int(data["groups_test"][0])
    signal = mne.io.read_raw_edf(raw_folder / f"SC4{subject:02d}1E0-PSG.edf", verbose="error")
    marks = mne.read_annotations(raw_folder / f"SC4{subject:02d}1EC-Hypnogram.edf")
    kept = [
        (100 * int(onset + second), stage)
        for onset, duration, text in zip(marks.onset, marks.duration, marks.description, strict=True)
        for second in range(0, int(duration), 30)
        if (stage := stage_of(str(text))) is not None and stage >= 0 and 100 * (onset + second) < signal.n_times
    ]
    rows = np.flatnonzero(data["groups_test"] == subject)
    assert [stage for _, stage in kept] == data["y_test"][rows].tolist()
    for row in (0, len(rows) // 2, len(rows) - 1):
        begin = kept[row][0]
        expected = 1e6 * signal.get_data(picks=["EEG Pz-Oz"], start=begin, stop=begin + 3000)[0]
        np.testing.assert_allclose(data["x_test"][rows[row], 1], expected, atol=1e-3)
    assert 5 < np.std(data["x_test"]) < 60


def test_signal_seconds_takes_the_first_samples_of_each_epoch(raw_folder: Path, tmp_path: Path) -> None:
    whole, first = prepared(raw_folder, tmp_path / "a"), prepared(raw_folder, tmp_path / "b", signal_seconds=5)
    for split in SPLITS:
        np.testing.assert_array_equal(first[f"x_{split}"], whole[f"x_{split}"][..., :500])
        np.testing.assert_array_equal(first[f"y_{split}"], whole[f"y_{split}"])
    with pytest.raises(InputError, match="signal_seconds: found 31, expected at most epoch_seconds, 30"):
        prepared(raw_folder, tmp_path / "c", signal_seconds=31)


def test_splits_share_no_subject_and_everything_left_out_is_counted(raw_folder: Path, tmp_path: Path) -> None:
    whole, trimmed = prepared(raw_folder, tmp_path / "a"), prepared(raw_folder, tmp_path / "b", trim_wake_minutes=5)
    groups = [set(np.unique(whole[f"groups_{split}"])) for split in SPLITS]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 6
    dropped = {e["reason"]: e["count"] for e in whole.info["exclusions"]}
    assert dropped == {"annotated outside the signal": 6 * 44, "movement time": 6, "not scored": 6}

    def counts(data: Prepared) -> Any:
        return sum(np.array(data.info["splits"][split]["counts"]) for split in SPLITS)

    (wake,) = [e["count"] for e in trimmed.info["exclusions"] if e["reason"].startswith("wake more than 5 minutes")]
    assert wake > 0
    np.testing.assert_array_equal(counts(whole) - counts(trimmed), [wake, 0, 0, 0, 0])


def own(raw_folder: Path, tmp_path: Path) -> Path:
    """A copy of the recordings to spoil, given by path."""
    shutil.copytree(raw_folder, tmp_path / "own", ignore=shutil.ignore_patterns("*.csv"))
    return tmp_path / "own"


def changed(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A fault of a file of subject 2."""

    def fault(folder: Path) -> None:
        path = folder / f"SC4021{kind}.edf"
        path.write_bytes(change(path.read_bytes()))

    return fault


def with_field(offset: int, field: bytes, kind: str = "E0-PSG") -> Callable[[Path], None]:
    return changed(kind, lambda whole: whole[:offset] + field + whole[offset + len(field) :])


def without(kind: str) -> Callable[[Path], None]:
    return lambda folder: (folder / f"SC4021{kind}.edf").unlink()


def again(folder: Path) -> None:
    shutil.copy(folder / "SC4021E0-PSG.edf", folder / "SC4021F0-PSG.edf")


PSG, HYPNOGRAM = "E0-PSG", "EC-Hypnogram"
STAGE = re.compile(rb"Sleep stage [W1-4R]|Movement time")
FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no hypnogram": (without(HYPNOGRAM), r"E0-PSG\.edf: found SC4021E0-PSG.edf for subject 2, night 1; expected one PSG and"),
    "two signals": (again, r"E0-PSG\.edf: found SC4021E0-PSG.edf, SC4021EC-Hypnogram.edf, SC4021F0-PSG.edf for subject 2"),
    "signal cut short": (changed(PSG, lambda whole: whole[:-20]), r"E0-PSG\.edf: cannot be read as EDF \(Number of records"),
    "hypnogram cut short": (changed(HYPNOGRAM, lambda whole: whole[:-20]), r"EC-Hypnogram\.edf: cannot be read as EDF"),
    "HTML page": (changed(PSG, lambda _: b"<html>" * 99), r"E0-PSG\.edf: found an HTML page, expected EDF"),
    "no data record": (changed(PSG, lambda whole: whole[:236] + b"0       " + whole[244:1024]), r"E0-PSG\.edf: found no data"),
    "another rate": (with_field(244, b"60      "), r"E0-PSG\.edf: found 50 Hz, expected 100 Hz .* in EEG Fpz-Cz; it has "),
    "slower channel": (with_field(256 + 16, b"EMG submental   EEG Pz-Oz       "), r"E0-PSG\.edf: found 1 Hz, .* in EEG Pz-Oz"),
    "no such channel": (with_field(256, b"Fpz-Cz          "), r"E0-PSG\.edf: found 0 channels .* it has Fpz-Cz, "),
    "channel twice": (with_field(256 + 16, b"EEG Fpz-Cz      "), r"E0-PSG\.edf: found 2 channels named EEG Fpz-Cz, expected one"),
    "unit in small letters": (with_field(256 + 3 * 96, b"uv      "), r"E0-PSG\.edf: found another unit"),
    "pauses": (with_field(192, b"EDF+D"), r"E0-PSG\.edf: found pauses in the recording"),
    "no start": (with_field(88, b"X" * 96), r"E0-PSG\.edf: cannot be read as EDF \(Invalid measurement date"),
    "start with colons": (with_field(176, b"00:00:00"), r"E0-PSG\.edf: found the start time b'00:00:00', expected hh"),
    "infinite scale": (with_field(256 + 3 * 104, b"inf     "), r"E0-PSG\.edf: "),
    "flat": (changed(PSG, lambda whole: whole[:1024] + bytes(len(whole) - 1024)), r"E0-PSG\.edf: found a signal .* by 0 mic"),
    "range without sense": (with_field(256 + 3 * 104, b"-1e30   "), r"E0-PSG\.edf: found a signal .* by \S+e\+\d\d "),
    "channel of -1 samples": (with_field(256 + 3 * 216 + 16, b"-1"), r"E0-PSG\.edf: cannot be read as EDF"),
    "nothing scored": (
        changed(HYPNOGRAM, lambda whole: STAGE.sub(b"Sleep stage ?", whole)), r"EC-Hypnogram\.edf: found no scored epoch .*; it "
    ),
    "no annotation": (changed(HYPNOGRAM, lambda whole: whole.replace(b"\x14", b"-")), r"EC-Hypnogram\.edf: found no annotation"),
    "unknown stage": (
        changed(HYPNOGRAM, lambda whole: whole.replace(b"stage R", b"stage X")),
        r"EC-Hypnogram\.edf: found the annotations Sleep stage X",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_an_unusable_recording_is_named_and_refused_or_skipped(raw_folder: Path, tmp_path: Path, fault: str) -> None:
    folder = own(raw_folder, tmp_path)
    damage, message = FAULTS[fault]
    damage(folder)
    with pytest.raises(InputError, match=f"SC4021{message}") as refused:
        prepared(folder, tmp_path / "out", subjects=[0, 1, 2, 3])
    assert "elete" not in str(refused.value)
    assert not (tmp_path / "out").exists()
    data = prepared(folder, tmp_path / "out", subjects=[0, 1, 2, 3], unusable="skip")
    assert 2 not in set(np.concatenate([data[f"groups_{split}"] for split in SPLITS]))
    assert {step["step"]: step["n"] for step in data.info["flow"]}["usable"] == 3
    (named,) = [e["reason"] for e in data.info["exclusions"] if e["reason"].startswith("recording")]
    assert re.match(f"recording SC4021{message}", named)
    assert str(tmp_path) not in named, "no path of this machine is recorded"


def test_a_file_of_another_name_is_a_fault_of_its_recording(raw_folder: Path, tmp_path: Path) -> None:
    folder = own(raw_folder, tmp_path)
    (folder / "SC4021E0-PSG.edf").rename(folder / "SC402E0-PSG.EDF")
    (folder / "SC4031E0-PSG.edf").rename(folder / "sc4031e0-psg.EDF")
    (folder / "SC4031EC-Hypnogram.edf").rename(folder / "SC4031EC-HYPNOGRAM.EDF")
    with pytest.raises(InputError, match=r"SC402E0-PSG\.EDF: found another name than SC4ssNxx-PSG\.edf"):
        prepared(folder, tmp_path / "out")
    data = prepared(folder, tmp_path / "out", unusable="skip")
    assert set(np.concatenate([data[f"groups_{split}"] for split in SPLITS])) == {0, 1, 3, 4, 5}


def test_a_hypnogram_that_starts_later_is_moved(raw_folder: Path, tmp_path: Path) -> None:
    folder = own(raw_folder, tmp_path)
    with_field(176, b"16.13.30", "EC-Hypnogram")(folder)
    moved, before = prepared(folder, tmp_path / "a"), prepared(raw_folder, tmp_path / "b")
    (split,) = [s for s in SPLITS if 2 in before[f"groups_{s}"]]
    rows = [np.flatnonzero(data[f"groups_{split}"] == 2) for data in (before, moved)]
    shared = min(map(len, rows)) - 1
    # Epoch n of the signal has the stage that epoch n - 1 had. The one after the first is "Sleep stage ?" of 30 s.
    assert before[f"y_{split}"][rows[0][:shared]].tolist() == moved[f"y_{split}"][rows[1][:shared]].tolist()
    np.testing.assert_array_equal(moved[f"x_{split}"][rows[1][0]], before[f"x_{split}"][rows[0][1]])


# Which recordings


def test_subjects_and_nights_choose_recordings(raw_folder: Path) -> None:
    keys = [(0, 1), (0, 2), (13, 1), (36, 2)]
    whole = {"subjects": None, "nights": "all"}
    assert selected(keys, whole) == set(keys)
    assert selected(keys, whole | {"nights": "first"}) == {(0, 1), (13, 1), (36, 2)}
    assert selected(keys, whole | {"subjects": [0, 36]}) == {(0, 1), (0, 2), (36, 2)}
    with pytest.raises(InputError, match=r"subjects: found no recording of \[39\]; expected some of \[0, 13, 36\]"):
        selected(keys, whole | {"subjects": [0, 39]})
    rows = read_sources(SOURCES, "sleepedf")
    assert len(choose(rows, whole)) == 2 * 153
    assert len(choose(rows, whole | {"nights": "first"})) == 2 * 78
    chosen = {"subjects": [0, 2, 3]}
    raw = obtain("sleepedf", entry("sleep_edf", **chosen), raw_folder / "sources.csv", raw_folder, True)
    assert len(raw.files) == 6, "only these are fetched"


TABLE = "signal,scoring,subject,night\n"


def own_names(folder: Path) -> str:
    """Give the recordings names of their own, and return the rows of a table that pairs them."""
    rows = []
    for n, psg in enumerate(sorted(folder.glob("*-PSG.edf"))):
        (scoring,) = folder.glob(f"{psg.name[:6]}*-Hypnogram.edf")
        (folder / "eeg").mkdir(exist_ok=True)
        psg.rename(folder / "eeg" / f"night of {n}.edf")
        scoring.rename(folder / f"{n}.edf")
        rows.append(f"eeg/night of {n}.edf,{n}.edf,{'abcdefgh'[n]},\n")
    return "".join(rows)


@pytest.mark.parametrize("name", ["recordings.csv", "mine.csv"])
def test_a_table_pairs_recordings_of_any_name(raw_folder: Path, tmp_path: Path, name: str) -> None:
    before, folder = prepared(raw_folder, tmp_path / "a"), own(raw_folder, tmp_path)
    (folder / name).write_text(TABLE + own_names(folder))
    data = prepared(folder if name == "recordings.csv" else folder / name, tmp_path / "b")
    assert len(data.info["files"]) == 1 + 2 * len(list(raw_folder.glob("*-PSG.edf")))
    assert {split: data.info["splits"][split] for split in SPLITS} == before.info["splits"]
    np.testing.assert_array_equal(data["x_test"], before["x_test"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("eeg/night of 0.edf,0.edf,,1\n", "found no subject in some row, expected the columns signal, scoring"),
        ("eeg/night of 0.edf,none.edf,a,1\n", "found none.edf but no such file, expected a file of its own"),
        ("eeg/night of 0.edf,0.edf,a,1\neeg/night of 1.edf,0.edf,b,1\n", "found 0.edf twice, expected"),
        ("", "found no signal, scoring, subject in some row"),
        ("eeg/night of 0.edf,0.edf,a,1\neeg/night of 1.edf,1.edf,A,1\n", "subject: found A and a, expected one way"),
    ],
)
def test_a_table_of_recordings_that_cannot_be_right_is_refused(
    raw_folder: Path, tmp_path: Path, rows: str, message: str
) -> None:
    folder = own(raw_folder, tmp_path)
    own_names(folder)
    (folder / "recordings.csv").write_text(TABLE + rows)
    with pytest.raises(InputError, match=message):
        prepared(folder, tmp_path / "out")


# Band powers


@pytest.mark.parametrize(("hertz", "band"), [(2, "delta"), (6, "theta"), (10, "alpha"), (14, "sigma"), (22, "beta")])
def test_the_power_of_a_sine_is_in_its_band_and_grows_with_the_square_of_its_amplitude(hertz: float, band: str) -> None:
    wave = np.sin(2 * np.pi * hertz * np.arange(30 * SETTINGS["sampling_rate"]) / SETTINGS["sampling_rate"])
    one, three = np.exp(log_band_powers(np.stack([wave, 3 * wave])[:, None], SETTINGS["sampling_rate"]))[:, 0]
    inside = list(BANDS).index(band)
    assert np.delete(one, inside).max() < 0.01 * one[inside]
    assert three[inside] == pytest.approx(9 * one[inside])


def test_the_table_has_a_row_for_each_scored_epoch_near_sleep(raw_folder: Path) -> None:
    table = band_power_table(raw_folder, MINI["datasets"]["sleepedf"])
    assert list(table)[:5] == ["recording", "subject", "night", "onset_s", "stage"]
    assert list(table)[5:] == [f"{channel}_{band}" for channel in ("fpz_cz", "pz_oz") for band in BANDS]
    assert sorted(table["recording"].unique()) == [f"SC4{n:02d}1" for n in range(6)]
    own = table[table["subject"] == "01"]
    marks = mne.read_annotations(raw_folder / "SC4011EC-Hypnogram.edf")
    names = {"1": "N1", "2": "N2", "3": "N3", "4": "N3", "R": "REM", "W": "W"}
    for onset, stage in zip(own["onset_s"], own["stage"], strict=True):
        marked = zip(marks.onset, marks.duration, marks.description, strict=True)
        (text,) = [d for o, n, d in marked if o <= onset < o + n]
        assert names[text[-1]] == stage
    asleep = own.loc[own["stage"] != "W", "onset_s"]
    assert asleep.min() - own["onset_s"].min() <= 360
    assert own["onset_s"].max() - asleep.max() <= 360


def test_the_command_writes_the_table_and_names_what_it_cannot_read(
    raw_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    out = tmp_path / "bands.csv.gz"
    assert main(["band-powers", str(raw_folder), str(out)]) == 0
    rows = len(pd.read_csv(out))
    assert capsys.readouterr().out.endswith(f"{out}: {rows:,} epochs of 6 recordings, 6 subjects\n")
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        main(["band-powers", str(empty), str(out)])
    assert f"found nothing in {empty}, no **/SC4*-PSG.edf" in capsys.readouterr().err
