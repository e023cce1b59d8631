"""The training, validation and test samples of a run, normalised as config.yaml says."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clailearn.batches import Items, Vectors
from clailearn.errors import InputError
from replication.datasets.hourly_inputs import hourly_inputs
from replication.datasets.prepared import Prepared, normalisation
from replication.datasets.splits import DEVELOPMENT, draw_patients
from replication.models.batches import Images, Recordings, Signals, Splits
from replication.runs.run import RunId

Rows = NDArray[np.bool_]


DEVELOPMENT_TEST_SHARE = 0.3
"""Share of the development patients who test the cells of a study that is `scored_on` development."""


def recording_rows(data: Prepared, settings: Mapping[str, Any], run_id: RunId) -> tuple[Rows, Rows, Rows]:
    """Return the training, validation and test rows of recordings, (rows,) each.

    A run tests on its fold and trains on the others. In a study that is `scored_on` development, all three parts are of
    development patients; `split_seed` draws those for testing. Raises InputError where a part lacks a class.
    """
    folds, patients, y = (np.asarray(data[f"{name}_all"]) for name in ("folds", "patients", "y"))
    if settings.get("scored_on") == "development":
        own = folds == DEVELOPMENT
        test = draw_patients(patients, y, own, DEVELOPMENT_TEST_SHARE, settings["split_seed"])
    else:
        own, test = folds != DEVELOPMENT, folds == run_id.fold
    val = draw_patients(patients, y, own & ~test, settings["validation_share_recordings"], run_id.seed)
    parts = {"training": own & ~test & ~val, "validation": val, "test": test}
    for part, rows in parts.items():
        counts = np.bincount(y[rows], minlength=2)
        if not counts.all():
            raise InputError(
                f"{run_id}: found {counts[1]} positive and {counts[0]} negative hours for {part}, expected some of each. "
                f"Change validation_share_recordings ({settings['validation_share_recordings']}), lower "
                f"datasets.{run_id.name}.folds, or admit more recordings."
            )
    return parts["training"], parts["validation"], parts["test"]


def drawn_rows(settings: Mapping[str, Any], run_id: RunId, rows: int) -> NDArray[np.int64] | None:
    """Return the training rows, in order, that the run's seed draws where `training.samples` is fewer than `rows`; else None."""
    samples = settings["training"]["samples"]
    if samples is None or samples >= rows:
        return None
    return np.sort(np.random.default_rng(run_id.seed).permutation(rows)[:samples])


def splits_of(data: Prepared, settings: Mapping[str, Any], run_id: RunId, device: torch.device) -> Splits:
    """Return the normalised items of a run.

    The run's seed draws validation patients and `training.samples`. Recordings are normalised with statistics of the run's own
    training rows, without validation rows.
    """
    if data.info["kind"] != "recordings":
        return _of_samples(data, settings, run_id, device)
    x, y, groups, hours = (np.asarray(data[f"{name}_all"]) for name in ("x", "y", "groups", "hours"))
    rows = recording_rows(data, settings, run_id)
    statistics = normalisation(x, "recordings", data.info["variables"], rows[0], f"training data of fold {run_id.fold}")
    mean, sd = statistics["mean"], statistics["sd"]
    inputs = [hourly_inputs(x[r], groups[r], hours[r], mean, sd) for r in rows]
    return Splits(*(Recordings(known, y[r], groups[r], device) for known, r in zip(inputs, rows, strict=True)))


def _of_samples(data: Prepared, settings: Mapping[str, Any], run_id: RunId, device: torch.device) -> Splits:
    kind = data.info["kind"]
    separately = kind != "features" and settings["normalise_test_separately"]

    def items(split: str) -> Items:
        statistics = data.info["normalisation"]["test" if split == "test" and separately else "train"]
        x, y, mean, sd = data[f"x_{split}"], data[f"y_{split}"], statistics["mean"], statistics["sd"]
        if split == "train" and (rows := drawn_rows(settings, run_id, len(y))) is not None:
            x, y = x[rows], y[rows]
        if kind == "features":
            standardised = ((x - np.asarray(mean)) / np.asarray(sd)).astype(np.float32)
            return Vectors(torch.from_numpy(standardised).to(device), torch.tensor(y))
        if kind == "images":
            return Images(x, y, mean, sd, settings["training"]["augmentation"], device)
        return Signals(x, y, mean, sd, device)

    return Splits(*map(items, Splits._fields))
