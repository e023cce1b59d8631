"""Rows of single patients, which are shown and published only where the licence of their data is open."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.runs.outputs import SAMPLES, predictions_of

SIGNALS = "signals.csv"
PATIENT_LEVEL = (SIGNALS, SAMPLES, predictions_of("*"))
"""Evidence files that show single patients. Labels and scores of images do not."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences that allow passing on such rows, by their SPDX names. Under any other licence they are withheld."""


def is_open(licence: Any) -> bool:
    """Return whether a licence is known to allow passing on single rows."""
    return str(licence).replace(" ", "-") in OPEN_LICENCES


def shows_patients(file: str, description: Mapping[str, Any]) -> bool:
    """Return whether an evidence file shows single patients although the licence in `dataset.json` forbids it."""
    of_patients = file == SIGNALS or (_may_show_patients(file) and description.get("kind") != "images")
    return of_patients and not is_open(description["licence"])


def withheld(file: Path) -> bool:
    """Return whether an evidence file must not be passed on, by the `dataset.json` beside it."""
    return _may_show_patients(file.name) and shows_patients(file.name, read_description(file.with_name("dataset.json")))


def _may_show_patients(file: str) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in PATIENT_LEVEL)


def read_description(path: Path) -> dict[str, Any]:
    """Return a `dataset.json`; raises InputError where it is missing, is no JSON, or states no title or licence."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected a description as JSON. Compute this evidence again"
        ) from error
    if not isinstance(description, dict) or not all(
        isinstance(description.get(key), str) for key in ("title", "licence")
    ):
        raise InputError(f"{path}: found no title or no licence, expected both as texts. Compute this evidence again")
    return description
