"""A miniature of the table of band powers: computed, by the code for the real recordings, from those of miniature Sleep-EDF."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from replication.datasets.band_powers import write_table
from replication.datasets.miniature.sleep_edf import sleepedf

_SETTINGS = {
    "subjects": None, "nights": "all", "unusable": "refuse", "channels": ["EEG Fpz-Cz", "EEG Pz-Oz"], "sampling_rate": 100,
    "epoch_seconds": 30, "signal_seconds": None, "trim_wake_minutes": 6,
}  # fmt: skip


def sleepedf_bands(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write the band powers of a night of each of six subjects."""
    table = folder / "band-powers.csv.gz"
    with TemporaryDirectory() as recordings:
        sleepedf(Path(recordings), rng)
        write_table(Path(recordings), table, _SETTINGS)
    return [table]
