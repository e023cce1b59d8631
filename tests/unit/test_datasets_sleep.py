"""Sleep-EDF: stages are merged and cropped as section 6.1 says, subjects never cross a split, bad files are named."""

import json
import os
import re
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clai.errors import InputError
from replication.datasets.download import verify
from replication.datasets.fetch import matching, obtain
from replication.datasets.miniature.make import make
from replication.datasets.prepare import prepare
from replication.datasets.prepared import Prepared, load
from replication.datasets.sleep_edf import (
    MOVEMENT,
    STAGES,
    UNSCORED,
    Unusable,
    choose,
    pairs,
    read_header,
    read_night,
    selected,
    stage_of_epochs,
    within_sleep,
)
from replication.datasets.sources import read_sources
from replication.datasets.splits import group_split
from support.loopback import ONCE, entry

SETTINGS: dict[str, Any] = {
    "title": "SleepEDF",
    "channels": ["EEG Fpz-Cz", "EEG Pz-Oz"],
    "sampling_rate": 100,
    "epoch_seconds": 30,
    "trim_wake_minutes": None,
    "subjects": None,
    "nights": "all",
    "unusable": "refuse",
    "test_share": 0.34,
    "validation_share": 0.25,
}


def test_stages_3_and_4_are_one_and_movement_and_unscored_are_told_apart() -> None:
    names = ["Sleep stage W", "Sleep stage 3", "Sleep stage 4", "Movement time", "Sleep stage ?", "Sleep stage R"]
    stages = stage_of_epochs([0, 60, 90, 120, 150, 180], [60, 30, 30, 30, 30, 30], names, 7, 30)
    assert list(stages) == [0, 0, 3, 3, MOVEMENT, UNSCORED, 4]


def test_a_hypnogram_is_cropped_at_the_end_of_the_signal() -> None:
    assert list(stage_of_epochs([0, 60], [60, 86400], ["Sleep stage 1", "Sleep stage 2"], 3, 30)) == [1, 1, 2]


def test_an_epoch_without_an_annotation_or_between_two_is_unscored() -> None:
    stages = stage_of_epochs([30, 75], [45, 45], ["Sleep stage 1", "Sleep stage 2"], 5, 30)
    assert list(stages) == [UNSCORED, 1, UNSCORED, 2, UNSCORED]


def test_an_unknown_annotation_is_named_with_its_time() -> None:
    with pytest.raises(InputError, match="annotation 'Lights off' at 30 s"):
        stage_of_epochs([0, 30], [30, 30], ["Sleep stage W", "Lights off"], 2, 30)


def test_trimming_keeps_the_margin_around_sleep_and_the_wake_within() -> None:
    stages = np.array([0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0])
    assert list(np.flatnonzero(within_sleep(stages, 2))) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert within_sleep(stages, None).all()


def test_every_subject_is_in_exactly_one_split() -> None:
    subjects = np.repeat(np.arange(10), 2)
    for seed in range(20):
        parts = group_split(subjects, 0.2, 0.1, seed, "subjects")
        assert [len(p) for p in parts] == [7, 1, 2]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(10))


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sleep")
    make("sleepedf", folder, 5)
    return folder


def prepared(raw_folder: Path, out: Path, **changes: Any) -> Prepared:
    raw = obtain("sleepedf", entry("sleep_edf"), raw_folder / "sources.csv", raw_folder, None, ONCE, True)
    prepare(raw, out, SETTINGS | changes, 0)
    return load(out)


def test_epochs_carry_the_signal_of_their_time_in_microvolt(raw_folder: Path, tmp_path: Path) -> None:
    data = prepared(raw_folder, tmp_path / "prepared")
    mne = pytest.importorskip("mne")
    subject = int(data["groups_test"][0])
    signal = mne.io.read_raw_edf(raw_folder / f"SC4{subject:02d}1E0-PSG.edf", verbose="error")
    marks = mne.read_annotations(raw_folder / f"SC4{subject:02d}1EC-Hypnogram.edf")
    stages = stage_of_epochs(marks.onset, marks.duration, marks.description, signal.n_times // 3000, 30)
    kept = np.flatnonzero(stages >= 0)
    last = int(np.sum(data["groups_test"] == subject)) - 1
    assert last + 1 == len(kept)
    begin = 3000 * kept[last]
    expected = 1e6 * signal.get_data(picks=["EEG Pz-Oz"], start=begin, stop=begin + 3000)[0]
    np.testing.assert_allclose(data["x_test"][last, 1], expected, atol=1e-3)
    assert 5 < np.std(data["x_test"]) < 60


def test_splits_share_no_subject_and_drops_are_counted(raw_folder: Path, tmp_path: Path) -> None:
    data = prepared(raw_folder, tmp_path / "prepared")
    groups = [set(np.unique(data[f"groups_{split}"])) for split in ("train", "val", "test")]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 6
    dropped = {e["reason"]: e["count"] for e in data.info["exclusions"]}
    assert dropped == {"annotated after the end of the signal": 6 * 44, "movement time": 6, "not scored": 6}


def test_trimmed_wake_is_counted_and_nothing_else_changes(raw_folder: Path, tmp_path: Path) -> None:
    whole, trimmed = prepared(raw_folder, tmp_path / "a"), prepared(raw_folder, tmp_path / "b", trim_wake_minutes=5)

    def counts(data: Prepared) -> Any:
        return sum(np.array(data.info["splits"][split]["counts"]) for split in ("train", "val", "test"))

    (dropped,) = [e["count"] for e in trimmed.info["exclusions"] if e["reason"].startswith("wake more than 5 minutes")]
    assert dropped > 0
    np.testing.assert_array_equal(counts(whole) - counts(trimmed), [dropped, 0, 0, 0, 0])


@pytest.mark.parametrize("kind", ["E0-PSG", "EC-Hypnogram"])
def test_a_truncated_edf_file_is_named_with_its_sizes(raw_folder: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"SC4001{kind}.edf"
    content = (raw_folder / path.name).read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(InputError, match=rf"{path.name}: found {len(content) - 20} bytes, expected {len(content)}"):
        read_header(path)


def test_a_file_that_is_not_edf_is_named(tmp_path: Path) -> None:
    (tmp_path / "SC4001E0-PSG.edf").write_bytes(b"<html>not found</html>" * 30)
    with pytest.raises(InputError, match=r"SC4001E0-PSG\.edf: not an EDF file"):
        read_header(tmp_path / "SC4001E0-PSG.edf")


def own(raw_folder: Path, tmp_path: Path) -> Path:
    """A copy of the recordings to spoil, given by path."""
    shutil.copytree(raw_folder, tmp_path / "own", ignore=shutil.ignore_patterns("*.csv"))
    return tmp_path / "own"


def prepared_from(folder: Path, out: Path, **changes: Any) -> Prepared:
    table = Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv"
    prepare(
        obtain("sleepedf", entry("sleep_edf", path=str(folder)), table, out, None, ONCE, False),
        out,
        SETTINGS | changes,
        0,
    )
    return load(out)


def without_hypnogram(folder: Path) -> str:
    (folder / "SC4021EC-Hypnogram.edf").unlink()
    return r"SC4021E0-PSG\.edf: found no partner for subject 2, night 1"


def truncated(folder: Path) -> str:
    path = folder / "SC4021E0-PSG.edf"
    path.write_bytes(path.read_bytes()[:-1000])
    return r"SC4021E0-PSG\.edf: found \d+ bytes, expected \d+ for the \d+ data records .* truncated"


def of_another_rate(folder: Path) -> str:
    """The record's duration in the header doubles, which halves the rate."""
    spoil(folder / "SC4021E0-PSG.edf", 244, b"60      ")
    return r"SC4021E0-PSG\.edf: found 50 Hz, expected 100 Hz"


def spoil(path: Path, offset: int, field: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(field)] = field
    path.write_bytes(content)


@pytest.mark.parametrize("fault", [without_hypnogram, truncated, of_another_rate])
def test_a_recording_that_cannot_be_used_is_named_and_refused_or_skipped(
    raw_folder: Path, tmp_path: Path, fault: Callable[[Path], str]
) -> None:
    folder = own(raw_folder, tmp_path)
    message = fault(folder)
    with pytest.raises(InputError, match=message):
        prepared_from(folder, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    data = prepared_from(folder, tmp_path / "skipped", unusable="skip")
    assert 2 not in set(np.concatenate([data[f"groups_{split}"] for split in ("train", "val", "test")]))
    assert {step["step"]: step["n"] for step in data.info["flow"]}["usable"] == 5
    (named,) = [e for e in data.info["exclusions"] if e["reason"].startswith("recording")]
    assert re.match(f"recording {message}", named["reason"])
    assert str(tmp_path) not in json.dumps(data.info), "no path of this machine is recorded"


def test_when_no_recording_can_be_used_nothing_is_prepared(raw_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of 6 recordings can be used; the first: SC4001E0-PSG\.edf: found 100 Hz"
    ):
        prepared_from(raw_folder, tmp_path / "p", unusable="skip", sampling_rate=200)


# Signals of the header of an EDF file, each field of eight characters: offset of the first one's, for the three of a miniature.
PSG_FIELDS = 256 + 3 * 104


@pytest.mark.parametrize(
    ("offset", "field", "message"),
    [
        (236, b"99999   ", "truncated"),
        (236, b"2       ", "more data than the 2 data records"),
        (236, b"-1      ", "states -1 data records"),
        (236, b"many    ", "not an EDF file"),
        (244, b"nan     ", "data records of nan s"),
        (252, b"0   ", "not an EDF file .*0 signals"),
        (252, b"9999", "not an EDF file .*9999 signals"),
        (184, b"99999999", "its own length as 99999999 bytes"),
        (0, b"\xffBIOSEMI", "not an EDF file"),
        (PSG_FIELDS, b"192     ", "which is no scale"),
        (PSG_FIELDS, b"inf     ", "which is no scale"),
        (PSG_FIELDS, b"1e308   ", "which is no scale"),
        (PSG_FIELDS + 2 * 16, b"-inf    ", "which is no scale"),
        (PSG_FIELDS + 3 * 16, b"32767   ", "which is no scale"),
        (256 + 3 * 216, b"-3000   ", "which cannot be"),
        (256 + 3 * 216, b"99999999", "truncated"),
        (256 + 3 * 96, b"kV      ", "found the unit 'kV'"),
    ],
)
def test_a_header_that_lies_is_refused(
    raw_folder: Path, tmp_path: Path, offset: int, field: bytes, message: str
) -> None:
    folder = own(raw_folder, tmp_path)
    spoil(folder / "SC4011E0-PSG.edf", offset, field)
    with pytest.raises(InputError, match=rf"SC4011E0-PSG\.edf: .*{message}"):
        prepared_from(folder, tmp_path / "p")


def test_recordings_with_any_bytes_changed_are_read_or_unusable(raw_folder: Path, tmp_path: Path) -> None:
    files = {"PSG": tmp_path / "SC4001E0-PSG.edf", "Hypnogram": tmp_path / "SC4001EC-Hypnogram.edf"}
    whole = {kind: (raw_folder / path.name).read_bytes() for kind, path in files.items()}
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(120):
        for kind, path in files.items():
            content = bytearray(whole[kind])
            content[int(rng.integers(min(len(content), 1024)))] = int(rng.choice([0, 32, 45, 48, 57, 255]))
            path.write_bytes(content)
        try:
            read_night(files, (0, 1), SETTINGS, Counter())
        except Unusable:
            refused += 1
    assert 0 < refused < 120


@pytest.mark.parametrize(("onset", "duration"), [(float("nan"), 30), (0, float("inf")), (0, -30), (1e12, 30)])
def test_annotations_at_impossible_times_are_refused(onset: float, duration: float) -> None:
    with pytest.raises(InputError, match="which no night does"):
        stage_of_epochs([onset], [duration], ["Sleep stage W"], 5, 30)


def test_two_files_of_the_same_night_are_refused() -> None:
    with pytest.raises(InputError, match="of the same subject and night"):
        pairs([Path("a/SC4001E0-PSG.edf"), Path("b/SC4001E0-PSG.edf")])


def test_a_folder_with_the_telemetry_recordings_beside_is_read_as_it_is(raw_folder: Path, tmp_path: Path) -> None:
    folder = own(raw_folder, tmp_path)
    (folder / "sleep-telemetry").mkdir()
    (folder / "sleep-telemetry" / "ST7011J0-PSG.edf").write_bytes(b"0")
    assert len(prepared_from(folder, tmp_path / "p").info["files"]) == 12


# Which recordings

KEYS = [(0, 1), (0, 2), (13, 1), (36, 2)]


def test_subjects_and_nights_choose_recordings() -> None:
    whole = {"subjects": None, "nights": "all"}
    assert selected(KEYS, whole) == set(KEYS)
    assert selected(KEYS, whole | {"nights": "first"}) == {(0, 1), (13, 1), (36, 2)}
    assert selected(KEYS, whole | {"subjects": [0, 36]}) == {(0, 1), (0, 2), (36, 2)}
    with pytest.raises(InputError, match="subjects: found no recording of 39; expected some of 0, 13, 36"):
        selected(KEYS, whole | {"subjects": [0, 39]})


def test_the_real_set_has_153_recordings_and_78_with_one_a_subject() -> None:
    rows = read_sources(Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv", "sleepedf")
    assert len(choose(rows, {"subjects": None, "nights": "all"})) == 2 * 153
    first = choose(rows, {"subjects": None, "nights": "first"})
    assert len(first) == 2 * 78
    assert len({row.file[3:5] for row in first}) == 78


def test_only_the_recordings_asked_for_are_fetched_and_prepared(raw_folder: Path, tmp_path: Path) -> None:
    chosen = {"subjects": [0, 2, 3]}
    raw = obtain("sleepedf", entry("sleep_edf", **chosen), raw_folder / "sources.csv", raw_folder, None, ONCE, True)
    assert len(raw.files) == 6
    prepare(raw, tmp_path / "p", SETTINGS | chosen, 0)
    data = load(tmp_path / "p")
    assert set(np.concatenate([data[f"groups_{split}"] for split in ("train", "val", "test")])) == {0, 2, 3}


def test_a_channel_or_rate_that_is_not_there_is_named(raw_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"SC4\d+E0-PSG\.edf: found no channel EEG C3-A2"):
        prepared(raw_folder, tmp_path / "a", channels=["EEG Fpz-Cz", "EEG C3-A2"])
    with pytest.raises(InputError, match=r"SC4001E0-PSG\.edf: found 100 Hz, expected 200 Hz"):
        prepared(raw_folder, tmp_path / "b", sampling_rate=200)


def test_memory_does_not_grow_with_the_number_of_recordings(
    raw_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peak of what Python and numpy allocate."""
    monkeypatch.setattr("replication.datasets.prepared._CHUNK_VALUES", 2**18)  # less than the smaller of the two sets
    peaks = []
    for copies in (1, 4):
        folder = tmp_path / f"raw{copies}"
        folder.mkdir()
        for path in raw_folder.glob("*.edf"):
            for n in range(copies):
                shutil.copy(path, folder / f"SC4{int(path.name[3:5]) + 10 * n:02d}{path.name[5:]}")
        prepared_from(folder, tmp_path / f"warm{copies}")
        tracemalloc.start()
        data = prepared_from(folder, tmp_path / f"p{copies}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert sum(data.info["splits"][s]["subjects"] for s in ("train", "val", "test")) == 6 * copies
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < sum(data[f"x_{s}"].nbytes for s in ("train", "val", "test")) / 2


@pytest.fixture(scope="module")
def hypnograms() -> list[Path]:
    """The hypnograms of the real data, below a folder that the environment names."""
    folder = os.environ.get("CLAI_SLEEP_EDF")
    if not folder:
        pytest.skip("set CLAI_SLEEP_EDF to a folder with hypnograms of Sleep-EDF")
    paths = matching(Path(folder), ("**/SC4*-Hypnogram.edf",))
    assert paths
    return paths


def signal_of(hypnogram: Path, out: Path, rate: int) -> tuple[Path, Any]:
    """Write a signal of noise that belongs to a real hypnogram and ends where its scoring does; give it and the annotations."""
    mne = pytest.importorskip("mne")
    edfio = pytest.importorskip("edfio")
    marks = mne.read_annotations(hypnogram)
    unscored = marks.description[-1] == "Sleep stage ?"
    seconds = int(marks.onset[-1] + (0 if unscored else marks.duration[-1])) // 30 * 30
    noise = np.random.default_rng(0).uniform(-90, 90, seconds * rate)
    signals = [
        edfio.EdfSignal(noise, rate, label=label, physical_dimension="uV", physical_range=(-100, 100))
        for label in SETTINGS["channels"]
    ]
    begin = datetime.strptime(hypnogram.read_bytes()[168:184].decode(), "%d.%m.%y%H.%M.%S")
    psg = out / f"{hypnogram.name[:7]}0-PSG.edf"
    edfio.Edf(
        signals, recording=edfio.Recording(startdate=begin.date()), starttime=begin.time(), data_record_duration=30
    ).write(psg)
    return psg, marks


def test_real_hypnograms_are_the_official_ones_and_are_read_whole(hypnograms: list[Path]) -> None:
    mne = pytest.importorskip("mne")
    rows = {row.file: row for row in read_sources(Path("workflow/config/data_sources.csv"), "sleepedf")}
    for path in hypnograms:
        verify(path, rows[path.name])
        assert read_header(path).labels == ["EDF Annotations"]
        marks = mne.read_annotations(path)
        epochs = int(max(marks.onset + marks.duration)) // 30
        stages = stage_of_epochs(marks.onset, marks.duration, marks.description, epochs, 30)
        expected = dict.fromkeys([*range(5), MOVEMENT, UNSCORED], 0)
        for text, seconds in zip(marks.description, marks.duration, strict=True):
            expected[STAGES[text]] += round(seconds / 30)
        assert {stage: int((stages == stage).sum()) for stage in expected} == expected
        assert min(expected[k] for k in (0, 1, 2, 4)) > 0


def test_signals_with_real_hypnograms_become_epochs_of_their_stages(hypnograms: list[Path], tmp_path: Path) -> None:
    """From the files to the prepared arrays; stages are those of the public table of band powers, where it is there."""
    by_subject = {path.name[3:5]: path for path in hypnograms}
    chosen = [by_subject[key] for key in sorted(by_subject)[:3]]
    folder = tmp_path / "own"
    folder.mkdir()
    for path in chosen:
        shutil.copy(path, folder)
        signal_of(path, folder, rate=10)
    data = prepared_from(folder, tmp_path / "out", sampling_rate=10, trim_wake_minutes=30)
    counts = {
        int(subject): np.bincount(data[f"y_{split}"][data[f"groups_{split}"] == subject], minlength=5)
        for split in ("train", "val", "test")
        for subject in np.unique(data[f"groups_{split}"])
    }
    assert set(counts) == {int(path.name[3:5]) for path in chosen}
    tables = matching(Path(os.environ["CLAI_SLEEP_EDF"]), ("**/band-powers*.csv.gz",))
    for path in chosen:
        own = counts[int(path.name[3:5])]
        assert own.sum() > 700
        for table in map(pd.read_csv, tables):
            of_night = table[table["recording"] == path.name[:6]]["stage"].value_counts()
            listed = np.array([of_night.get(stage, 0) for stage in ("W", "N1", "N2", "N3", "REM")])
            assert np.abs(own - listed).sum() <= 41, f"{path.name}: {own} here, {listed} there"
