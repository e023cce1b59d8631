"""Sleep-EDF: stages are merged and cropped as section 6.1 says, subjects never cross a split, bad files are named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clai.datasets import miniature, prepare
from clai.datasets.fetch import obtain
from clai.datasets.prepared import Prepared, load
from clai.datasets.sleep_edf import MOVEMENT, UNSCORED, check_complete, pairs, stage_of_epochs, within_sleep
from clai.datasets.splits import subject_split
from clai.errors import InputError

SETTINGS: dict[str, Any] = {
    "title": "SleepEDF",
    "channels": ["EEG Fpz-Cz", "EEG Pz-Oz"],
    "sampling_rate": 100,
    "epoch_seconds": 30,
    "trim_wake_minutes": None,
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
        parts = subject_split(subjects, 0.2, 0.1, seed)
        assert [len(p) for p in parts] == [7, 1, 2]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(10))


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sleep")
    miniature.make("sleepedf", folder, 5)
    return folder


def prepared(raw_folder: Path, out: Path, **changes: Any) -> Prepared:
    raw = obtain("sleepedf", "sleep_edf", None, raw_folder / "sources.csv", raw_folder, None, 0, 0, True)
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
        check_complete(path)


def test_a_file_that_is_not_edf_is_named(tmp_path: Path) -> None:
    (tmp_path / "SC4001E0-PSG.edf").write_bytes(b"<html>not found</html>" * 30)
    with pytest.raises(InputError, match=r"SC4001E0-PSG\.edf: not an EDF file"):
        check_complete(tmp_path / "SC4001E0-PSG.edf")


def test_a_recording_without_its_hypnogram_is_named() -> None:
    with pytest.raises(InputError, match=r"SC4021E0-PSG\.edf: found no partner for subject 2, night 1"):
        pairs([Path("SC4001E0-PSG.edf"), Path("SC4001EC-Hypnogram.edf"), Path("SC4021E0-PSG.edf")])


def test_a_channel_or_rate_that_is_not_there_is_named(raw_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"SC4\d+E0-PSG\.edf: found no channel EEG C3-A2"):
        prepared(raw_folder, tmp_path / "a", channels=["EEG Fpz-Cz", "EEG C3-A2"])
    with pytest.raises(InputError, match=r"SC4001E0-PSG\.edf: found 100 Hz, expected 200 Hz"):
        prepared(raw_folder, tmp_path / "b", sampling_rate=200)
