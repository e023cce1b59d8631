"""The files beside every table and figure: a CSV with what it shows, a JSON with its caption and the identities of its runs.

The records of the runs stand once, in the evidence that the JSON names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence


def sidecar(text: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]], **further: Any) -> str:
    """Return the JSON beside an output: caption, data, evidence, the identities of its runs, and what is `further` there."""
    content = {
        "caption": text,
        "data": [evidence.title(key) for key in evidence.at_hand()],
        "evidence": evidence.name,
        "runs": [str(run["run"]) for run in runs],
        **further,
    }
    lines = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # An object without others is a line.
    return re.sub(r"(?<=.)\{[^{}]*\}", lambda leaf: re.sub(r"\n\s*", " ", leaf[0]), lines, flags=re.DOTALL) + "\n"


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV with six significant digits and Unix line ends."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
