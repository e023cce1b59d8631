"""The band powers of an EEG: a rhythm's power is in its band, in the units and the order that the table states."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication.__main__ import main
from replication.datasets.miniature import make
from replication.datasets.sleep_edf import BANDS, band_power_table, log_band_powers
from support.repository import MINI, REPOSITORY

SETTINGS = MINI["datasets"]["sleepedf"]
RATE = SETTINGS["sampling_rate"]


@pytest.mark.parametrize(("hertz", "band"), [(2, "delta"), (6, "theta"), (10, "alpha"), (14, "sigma"), (22, "beta")])
def test_the_power_of_a_sine_is_in_its_band_and_grows_with_the_square_of_its_amplitude(hertz: float, band: str) -> None:
    wave = np.sin(2 * np.pi * hertz * np.arange(30 * RATE) / RATE)
    one, three = np.exp(log_band_powers(np.stack([wave, 3 * wave])[:, None], RATE))[:, 0]
    inside = list(BANDS).index(band)
    assert np.delete(one, inside).max() < 0.01 * one[inside]
    assert three[inside] == pytest.approx(9 * one[inside])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sleep")
    make("sleepedf", folder, 5)
    for path in folder.glob("SC40[2-5]*"):  # two nights suffice
        path.unlink()
    return folder


def test_the_table_has_a_row_for_each_scored_epoch_near_sleep(recordings: Path) -> None:
    mne = pytest.importorskip("mne")
    table = band_power_table(recordings, SETTINGS)
    assert list(table)[:5] == ["recording", "subject", "night", "onset_s", "stage"]
    assert list(table)[5:] == [f"{channel}_{band}" for channel in ("fpz_cz", "pz_oz") for band in BANDS]
    assert sorted(table["recording"].unique()) == ["SC4001", "SC4011"]
    own = table[table["subject"] == "01"]
    marks = mne.read_annotations(recordings / "SC4011EC-Hypnogram.edf")
    names = {"1": "N1", "2": "N2", "3": "N3", "4": "N3", "R": "REM", "W": "W"}
    for onset, stage in zip(own["onset_s"], own["stage"], strict=True):
        (text,) = [
            d for o, n, d in zip(marks.onset, marks.duration, marks.description, strict=True) if o <= onset < o + n
        ]
        assert names[text[-1]] == stage
    asleep = own.loc[own["stage"] != "W", "onset_s"]
    assert asleep.min() - own["onset_s"].min() <= 360
    assert own["onset_s"].max() - asleep.max() <= 360


def test_the_command_writes_the_table_and_names_what_it_cannot_read(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    out = tmp_path / "bands.csv.gz"
    assert main(["band-powers", str(recordings), str(out)]) == 0
    rows = len(pd.read_csv(out))
    assert capsys.readouterr().out.endswith(f"{out}: {rows:,} epochs of 2 recordings, 2 subjects\n")
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        main(["band-powers", str(empty), str(out)])
    assert f"found nothing in {empty}, no **/SC4*-PSG.edf" in capsys.readouterr().err
