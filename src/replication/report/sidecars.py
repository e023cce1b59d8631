"""The files beside every table and figure: a CSV with what it shows, a JSON with its caption and the identities of its runs.

The records of the runs stand once, in the evidence that the JSON names.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clai.errors import InputError
from replication.report.evidence import Evidence
from replication.runs.identity import RunId
from replication.runs.record import RUNS, read_records


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


def records_behind(runs: Sequence[str], root: Path) -> list[dict[str, Any]]:
    """Return the records of runs, in their order.

    Args:
        runs: identities, as a sidecar has them.
        root: the folder of the evidence that the sidecar names, such as `results/published`.

    Raises:
        InputError: the evidence has no record of a run.
    """
    datasets = {run: RunId.parse(run).dataset for run in runs}
    folders = {dataset: root / dataset / "evidence" for dataset in datasets.values()}
    records = {record["run"]: record for folder in folders.values() for record in read_records(folder)}
    for run, dataset in datasets.items():
        if run not in records:
            raise InputError(
                f"{folders[dataset] / RUNS} has no record of {run}, which an output names; the output was made from other "
                "evidence. Render it again"
            )
    return [records[run] for run in runs]


def settings_by_hash(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of runs and of their evaluations, each once, by their hash."""
    parts = [part for record in records for part in (record, record.get("evaluation", {})) if "settings" in part]
    return {part["config_hash"]: part["settings"] for part in sorted(parts, key=lambda part: str(part["config_hash"]))}
