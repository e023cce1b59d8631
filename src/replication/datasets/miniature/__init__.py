"""Miniature synthetic data in the file formats of the sources, so that the real code runs on it from the download on.

A generator for each dataset writes the raw files into a folder, with the blemishes of the real ones: textures in the files of
MedMNIST and CIFAR-10; pairs of EDF signals and EDF+ hypnograms, and their band powers; the sepsis sources (`icu`). `make` adds
the table `sources.csv`, by which the files are fetched and verified. The classes differ, but a good model stays well below
perfect accuracy. The bytes depend on the seed alone.
"""

import datetime
import gzip
import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clailearn.errors import InputError
from replication.datasets.band_powers import write_table
from replication.datasets.files import checksum_of
from replication.datasets.images import ARCHIVE, BATCHES, META, TEST, TRAIN
from replication.datasets.miniature.icu import challenge2019, mimic_iv
from replication.datasets.sources import Row

TABLE = "sources.csv"
VERSION = "miniature"
SEED = 20190705
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


def textures(labels: NDArray[Any], classes: int, size: int, noise: float, rng: np.random.Generator) -> NDArray[Any]:
    """Draw images uint8 (N, size, size, 3): gratings whose direction and tint depend on the class, under noise."""
    n = len(labels)
    angle = np.pi * (labels + rng.normal(0, 0.35, n)) / classes
    wavelength = rng.uniform(4.0, 8.0, n)
    phase = rng.uniform(0, 2 * np.pi, n)
    row, column = np.mgrid[:size, :size]
    along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
    grating = np.sin(2 * np.pi * along / wavelength[:, None, None] + phase[:, None, None])
    hue = 2 * np.pi * ((labels * 3) % classes) / classes
    tint = np.stack([np.cos(hue), np.cos(hue - 2.1), np.cos(hue + 2.1)], axis=-1)
    light = rng.normal(0, 18, (n, 1, 1, 3)) + 14 * tint[:, None, None, :]
    pixels = 125 + light + rng.uniform(12, 34, (n, 1, 1, 1)) * grating[..., None]
    pixels = pixels + rng.normal(0, noise, (n, size, size, 3))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def breastmnist(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `breastmnist.npz`: 240, 60 and 120 grey images of two classes, a third of them of the first."""
    arrays: dict[str, NDArray[Any]] = {}
    for split, n in (("train", 240), ("val", 60), ("test", 120)):
        labels = rng.permutation((np.arange(n) % 3 > 0).astype(np.int64))
        arrays[f"{split}_images"] = textures(labels, 2, 28, 30.0, rng)[..., 0]
        arrays[f"{split}_labels"] = labels.astype(np.uint8)[:, None]
    np.savez_compressed(folder / "breastmnist.npz", allow_pickle=False, **arrays)
    return [folder / "breastmnist.npz"]


def cifar10(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `cifar-10-python.tar.gz`: five batches of 120 training images and one of 200 test images, classes balanced."""
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    members = {META: pickle.dumps({"num_cases_per_batch": 120, "label_names": classes, "num_vis": 3072}, protocol=2)}
    for name in (*TRAIN, TEST):
        labels = rng.permutation(np.repeat(np.arange(10), 20 if name == TEST else 12))
        pixels = textures(labels, 10, 32, 42.0, rng)
        rows = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1))
        members[name] = pickle.dumps({"labels": labels.tolist(), "data": rows}, protocol=2)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(f"{BATCHES}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path = folder / ARCHIVE
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=6, mtime=0))
    return [path]


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
        ends = seconds * np.cumsum([float(n) for _, n in blocks])
        marks = [
            EdfAnnotation(e - n * seconds, float(n * seconds), text) for e, (text, n) in zip(ends, blocks, strict=True)
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


# A dataset's place in this order decides its random numbers, so new ones go to the end.
GENERATORS: dict[str, Callable[[Path, np.random.Generator], list[Path]]] = {
    "breastmnist": breastmnist,
    "cifar10": cifar10,
    "sleepedf": sleepedf,
    "mimic-iv": mimic_iv,
    "challenge2019": challenge2019,
    "sleepedf-bands": sleepedf_bands,
}


def make(dataset: str, folder: Path) -> Path:
    """Write the raw files of a dataset into `folder` and return its table of sources."""
    if dataset not in GENERATORS:
        raise InputError(f"dataset '{dataset}' has no miniature; expected one of {', '.join(GENERATORS)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = GENERATORS[dataset](folder, np.random.default_rng([SEED, list(GENERATORS).index(dataset)]))
    names = [path.relative_to(folder).as_posix() for path in files]
    rows = [Row(dataset, VERSION, name, "", checksum_of(folder / name), "generated", "generated") for name in names]
    pd.DataFrame(rows).to_csv(folder / TABLE, index=False)
    return folder / TABLE
