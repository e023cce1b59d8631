"""Published predictions are read without trust."""

from pathlib import Path

import numpy as np
import pytest

from replication.experiments.predictions import load_predictions, load_samples, save_predictions, save_samples
from support.damage import some_damaged
from support.hostile import Attack
from support.predictions import multiclass, recordings

NAMES = ("samples.parquet", "predictions_gp.parquet")


def files(folder: Path, classes: int) -> dict[str, bytes]:
    """Return small valid files by name."""
    samples, runs, temperature = (*recordings(stays=20, hours=4), 1.0) if classes == 2 else multiclass(n=60, seeds=1)
    save_samples(folder / NAMES[0], samples)
    save_predictions(folder / NAMES[1], runs, dict.fromkeys(runs, temperature))
    return {name: (folder / name).read_bytes() for name in NAMES}


def parse(folder: Path, classes: int) -> None:
    samples = load_samples(folder / NAMES[0], classes)
    for replicate, run in load_predictions(folder / NAMES[1], samples, classes):
        assert replicate.startswith("seed")
        for part in (run.score, run.probability, run.calibrated):
            assert np.isfinite(part).all()
        assert ((run.probability >= 0) & (run.probability <= 1)).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_damaged_predictions(attack: Attack, classes: int) -> None:
    whole = files(attack.folder, classes)

    def lay(folder: Path, contents: dict[str, bytes]) -> None:
        for name, content in contents.items():
            (folder / name).write_bytes(content)

    attack(
        "predictions (parquet)",
        some_damaged(whole),
        lay,
        lambda folder: parse(folder, classes),
        valid=whole,
        named=NAMES,
        cases=300,
    )
