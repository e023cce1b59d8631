"""Miniatures of Sleep-EDF: pairs of EDF signals and EDF+ hypnograms, and their table of band powers."""

import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replication.datasets.band_powers import write_table

# Power in five bands (delta, theta, alpha, sigma, beta) for wake, N1, N2, N3 and REM, relative to the background.
_BANDS = ((0.5, 4), (4, 8), (8, 12), (12, 15), (15, 30))
_BAND_POWER = np.array(
    [[0.6, 0.6, 1.9, 0.7, 1.2], [0.8, 1.5, 1.0, 0.7, 0.8], [1.3, 1.4, 0.7, 1.4, 0.6], [2.6, 1.2, 0.6, 0.9, 0.4],
     [0.8, 1.5, 0.8, 0.6, 1.0]]
)  # fmt: skip
# Stage (0 wake to 4 REM) and number of epochs, in the order of the night.
_NIGHT = ((0, 22), (1, 3), (2, 8), (3, 5), (2, 6), (4, 5), (1, 2), (2, 7), (3, 3), (2, 4), (4, 6), (0, 8))
_SETTINGS = {
    "subjects": None, "nights": "all", "unusable": "refuse", "channels": ["EEG Fpz-Cz", "EEG Pz-Oz"], "sampling_rate": 100,
    "epoch_seconds": 30, "signal_seconds": None, "trim_wake_minutes": 6,
}  # fmt: skip


def _eeg(stages: NDArray[Any], rate: int, seconds: int, gain: float, rng: np.random.Generator) -> NDArray[Any]:
    """Return an EEG (epochs * samples,) in microvolt whose bands follow the stage of each epoch (epochs,)."""
    samples = rate * seconds
    frequency = np.fft.rfftfreq(samples, 1 / rate)
    amplitude = np.tile(1 / np.sqrt(np.maximum(frequency, 0.5)), (len(stages), 1))
    varied = _BAND_POWER[np.maximum(stages, 0)] * rng.lognormal(0, 0.45, (len(stages), len(_BANDS)))
    for band, (low, high) in enumerate(_BANDS):
        inside = (frequency >= low) & (frequency < high)
        amplitude[:, inside] *= varied[:, band : band + 1]
    amplitude[:, 0] = 0
    wave = np.fft.irfft(amplitude * np.exp(2j * np.pi * rng.random(amplitude.shape)), n=samples)
    wave *= 16 * gain / wave.std(axis=1).mean()
    return (wave + rng.normal(0, 4, wave.shape)).reshape(-1)


def sleepedf(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write a night of each of six subjects: two EEG channels at 100 Hz, a slow one, and a hypnogram that runs past them."""
    from edfio import Edf, EdfAnnotation, EdfSignal, Recording

    seconds, rate = 30, 100
    date, time = datetime.date(1989, 4, 24), datetime.time(16, 13)
    written = []
    for subject in range(6):
        night = [(stage, max(1, length + int(rng.integers(-2, 3)))) for stage, length in _NIGHT]
        blocks: list[tuple[str, int]] = []
        for stage, length in night:
            if stage == 3 and length > 2:
                blocks += [("Sleep stage 3", length // 2), ("Sleep stage 4", length - length // 2)]
            else:
                blocks.append((f"Sleep stage {'W123R'[stage]}", length))
            if stage == 2 and len(blocks) == 3:
                blocks.append(("Movement time", 1))
        blocks.insert(1, ("Sleep stage ?", 1))
        stage_of = {"1": 1, "2": 2, "3": 3, "4": 3, "R": 4}  # of the last letter; others count as wake
        stages = np.concatenate([np.full(n, stage_of.get(text[-1], 0)) for text, n in blocks])
        gain = float(rng.lognormal(0, 0.15))
        signals = []
        for label, share in (("EEG Fpz-Cz", 1.0), ("EEG Pz-Oz", 0.8)):
            data = np.clip(_eeg(stages, rate, seconds, gain * share, rng), -190, 190)
            signals.append(EdfSignal(data, rate, label=label, physical_dimension="uV", physical_range=(-192, 192)))
        slow = np.clip(rng.normal(2, 0.5, len(stages) * seconds), -5, 5)
        signals.append(EdfSignal(slow, 1, label="EMG submental", physical_dimension="uV", physical_range=(-5, 5)))
        start: Any = {"recording": Recording(startdate=date), "starttime": time}
        name = f"SC4{subject:02d}1"
        psg = folder / f"{name}E0-PSG.edf"
        Edf(signals, **start, data_record_duration=seconds).write(psg)
        blocks += [("Sleep stage W", 4), ("Sleep stage ?", 40)]
        starts = np.cumsum([0, *(n for _, n in blocks[:-1])]) * seconds
        marks = [
            EdfAnnotation(float(start), float(n * seconds), text)
            for (text, n), start in zip(blocks, starts, strict=True)
        ]
        hypnogram = folder / f"{name}EC-Hypnogram.edf"
        Edf([], **start, annotations=marks).write(hypnogram)
        written += [psg, hypnogram]
    return written


def sleepedf_bands(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write the band powers of a night of each of six subjects, computed by the code for the real recordings."""
    table = folder / "band-powers.csv.gz"
    with TemporaryDirectory() as recordings:
        sleepedf(Path(recordings), rng)
        write_table(Path(recordings), table, _SETTINGS)
    return [table]
