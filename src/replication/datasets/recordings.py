"""The common part of the sepsis sources: valid ranges, folds and the arrays of the prepared form."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError
from replication.datasets.prepared import writing
from replication.datasets.sources import Raw
from replication.datasets.splits import DEVELOPMENT, draw_patients, patient_folds, require_classes

CLASSES = ["no sepsis", "sepsis"]
UNITS = {
    "HR": "beats/min",
    "O2Sat": "%",
    "Temp": "degrees Celsius",
    "SBP": "mmHg",
    "MAP": "mmHg",
    "DBP": "mmHg",
    "Resp": "breaths/min",
}
ADMITTING = ("cohort", "minimum_age", "minimum_hours", "minimum_onset_hours", "first_stay_only", "onset")
"""Settings that decide which recordings are admitted, where a source has them."""


class Rows(NamedTuple):
    """Hourly rows, (rows,) and (rows, variables), NaN where not measured; those of a recording are contiguous, in order."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    recordings: npt.NDArray[np.int64]
    patients: npt.NDArray[np.int64]
    hours: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[Any]) -> "Rows":
        """Return the rows of these numbers (n,), or those where a mask (rows,) holds."""
        return Rows(*(part[rows] for part in self))


def outside_to_missing(x: npt.NDArray[np.float32], ranges: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Set values of x (rows, variables) outside [low, high] to NaN in place; return an exclusion for each variable."""
    exclusions = []
    for column, (name, (low, high)) in enumerate(ranges.items()):
        outside = (x[:, column] < low) | (x[:, column] > high)
        x[outside, column] = np.nan
        exclusions.append({"reason": f"values of {name} outside {low:g} to {high:g}", "count": int(outside.sum())})
    return exclusions


def positive_recordings(rows: Rows) -> npt.NDArray[np.bool_]:
    """Return (rows,) whether the recording of each row has a positive hour."""
    return np.isin(rows.recordings, np.unique(rows.recordings[rows.y == 1]))


def require_both(y: npt.NDArray[np.int64], settings: Mapping[str, Any]) -> None:
    """Raise InputError, with the setting to change, unless labels y (rows,) have positive and negative hours."""
    positive, negative = int((y == 1).sum()), int((y == 0).sum())
    if positive and negative:
        return
    found = f"found {positive} positive and {negative} negative hours, expected some of each."
    if positive and "label_hours_before" in settings:
        hours = settings["label_hours_before"]
        raise InputError(
            f"label_hours_before: {found} Every hour left lies within {hours} hours before the onset or after it. "
            f"Lower it, raise `minimum_onset_hours` above {hours}, or set `cohort` to all."
        )
    raise InputError(f"cohort: {found} Correct the settings that admit recordings, or provide others.")


def cohort_text(flow: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
    """Return in words how the cohort came about, step by step, and the settings that decide it."""
    steps = "; ".join(f"{step['n']} {step['unit']}: {step['step']}" for step in flow)
    text = f"The cohort: {steps}."
    losses = [(before["n"] - after["n"], after["step"]) for before, after in pairwise(flow)]
    if losses and max(losses)[0] > 0:
        text += f" The step that left out most ({max(losses)[0]}): {max(losses)[1]}."
    decided = ", ".join(f"{name} {settings[name]}" for name in ADMITTING if name in settings)
    return f"{text} Its settings: {decided}."


def write(
    raw: Raw,
    out_dir: Path,
    settings: Mapping[str, Any],
    seed: int,
    rows: Rows,
    exclusions: Sequence[Mapping[str, Any]],
    label_rule: str,
    extra: Mapping[str, Any],
) -> None:
    """Write the prepared form.

    The development patients are drawn first, at `development_share` of the patients; the others are in the folds. extra: further
    entries of `dataset.json`, `flow` among them. Raises InputError, with the flow and the settings behind it, when a part has no
    hour of a class.
    """
    variables = list(settings["variables"])
    try:
        require_both(rows.y, settings)
        share, development = settings["development_share"], np.zeros(len(rows.y), dtype=bool)
        if share is not None:
            development = draw_patients(rows.patients, rows.y, ~development, share, seed)
        ids, first = np.unique(rows.recordings[~development], return_index=True)
        patients, positive = rows.patients[~development][first], positive_recordings(rows)[~development][first]
        drawn = patient_folds(patients, positive, settings["folds"], seed)
        folds = drawn[np.searchsorted(ids, rows.recordings).clip(max=len(ids) - 1)]
        folds = np.where(development, DEVELOPMENT, folds)
        split_rule = f"{settings['folds']} folds by patient, stratified by whether a recording has a positive hour"
        split_rule += f" (seed {seed})"
        if share is not None:
            split_rule += f"; development patients in no fold: a share of {share} with and without a positive hour"
        require_classes(rows.y, folds, CLASSES)
    except InputError as error:
        raise InputError(f"datasets.{raw.dataset}.{error} {cohort_text(extra['flow'], settings)}") from None
    with writing(out_dir) as writer:
        writer.array("x_all", rows.x)
        writer.array("observed_all", ~np.isnan(rows.x))
        writer.array("y_all", rows.y)
        writer.array("groups_all", rows.recordings)
        writer.array("patients_all", rows.patients)
        writer.array("hours_all", rows.hours)
        writer.array("folds_all", folds)
        writer.describe(
            raw.description(settings["title"]),
            kind="recordings",
            classes=CLASSES,
            variables=variables,
            units=[UNITS.get(name, "as in the records") for name in variables],
            sampling_rate=1 / 3600,
            label_rule=label_rule,
            cohort=settings["cohort"],
            split_rule=split_rule,
            exclusions=list(exclusions),
            **extra,
        )
