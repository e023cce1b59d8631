"""Band powers of Sleep-EDF: the table that `feature_table` reads, a row a scored epoch.

Each channel is band-pass filtered, cropped to the epochs that `trim_wake_minutes` keeps, and standardised over the crop, so that
powers have no absolute unit. The power of a band is the integral of Welch's spectrum of the epoch (Welch 1967), the median over
windows of four seconds, which overlap by half; a feature is its natural logarithm.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.datasets.sleep_edf import CLASSES, NAME, SOURCE, Floats, epochs_of, open_edf, usable_nights

BANDS = {"delta": (0.5, 4.0), "theta": (4.0, 8.0), "alpha": (8.0, 12.0), "sigma": (12.0, 16.0), "beta": (16.0, 30.0)}
"""Limits in Hz, both included: the integral of a band ends where the next one begins."""
WINDOW_SECONDS = 4
_SMALLEST = 1e-10  # A power is raised by it, so that silence has a logarithm.


def log_band_powers(epochs: Floats, rate: float) -> Floats:
    """Return the logarithm of the power in each band, (N, channels, bands), of epochs (N, channels, samples) at `rate` Hz."""
    from scipy.signal import welch

    window = round(WINDOW_SECONDS * rate)
    frequency, density = welch(epochs, rate, window="hamming", nperseg=window, noverlap=window // 2, average="median")
    powers = []
    for low, high in BANDS.values():
        inside = (frequency >= low) & (frequency <= high)
        powers.append(np.trapezoid(density[..., inside], frequency[inside], axis=-1))
    return np.log(np.stack(powers, axis=-1) + _SMALLEST)


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
        signal = open_edf(night.psg, channels).load_data(verbose="error")
        signal.filter(BANDS["delta"][0], BANDS["beta"][1], verbose="error")
        powers = log_band_powers(epochs_of(night, signal, channels, samples, standard=True), signal.info["sfreq"])
        name = night.psg.name[:6] if NAME.fullmatch(night.psg.name) else night.psg.stem
        onsets = (night.starts / settings["sampling_rate"]).astype(int)
        recording = {"recording": name, "subject": f"{night.subject:02d}", "night": str(night.number)}
        epochs = pd.DataFrame({**recording, "onset_s": onsets, "stage": np.array(["W", *CLASSES[1:]])[night.stages]})
        parts.append(pd.concat([epochs, pd.DataFrame(powers.reshape(len(powers), -1), columns=names)], axis=1))
    return pd.concat(parts, ignore_index=True)


def write_table(folder: Path, table: Path, settings: Mapping[str, Any]) -> str:
    """Write the table of `band_power_table` as CSV, and return a sentence that says so."""
    frame = band_power_table(folder, settings)
    # gzip writes the time into its header unless told not to
    compression: Any = {"method": "gzip", "mtime": 0} if table.suffix == ".gz" else None
    frame.to_csv(table, index=False, float_format="%.4g", compression=compression)
    return f"{table}: {len(frame):,} epochs of {frame['recording'].nunique()} recordings, {frame['subject'].nunique()} subjects\n"
