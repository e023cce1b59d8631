"""Rows of single patients, which are shown and published only where the licence of their data is open."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from clailearn.errors import InputError
from replication.runs.run import SAMPLES, predictions_of

SIGNALS = "signals.csv"
PATIENT_LEVEL = (SIGNALS, SAMPLES, predictions_of("*"))
"""Evidence files that show single patients. Labels and scores of images do not."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences that allow passing on such rows, by their SPDX names. Under any other licence they are withheld."""


def is_open(licence: Any) -> bool:
    """Return whether a licence is known to allow passing on single rows."""
    return str(licence).replace(" ", "-") in OPEN_LICENCES


def withheld(file: Path) -> bool:
    """Return whether an evidence file shows single patients although the licence in the `dataset.json` beside it forbids it."""
    if not any(fnmatchcase(file.name, pattern) for pattern in PATIENT_LEVEL):
        return False
    description = read_description(file.with_name("dataset.json"))
    return not is_open(description["licence"]) and (file.name == SIGNALS or description.get("kind") != "images")


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
