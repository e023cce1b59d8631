"""The files beside every table and figure: a CSV with what it shows, a JSON with its caption and runs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from clai.report.evidence import Evidence


def sidecar(text: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """The JSON beside every output: caption, data, evidence and the records of the runs used; deterministic.

    The settings of runs, mostly the same for many, stand apart, under their hash.
    """
    settings = {}
    for run in [run for run in runs if "settings" in run]:
        settings[run["config_hash"]] = run["settings"]
        if evaluation := run.get("evaluation"):
            settings[evaluation["config_hash"]] = {**run["settings"], **evaluation["settings"]}
    content = {
        "caption": text,
        "data": [evidence.title(key) for key in evidence.at_hand()],
        "evidence": evidence.name,
        "runs": [_without_settings(run) for run in runs],
        "settings": settings,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _without_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record, and the record within it, without settings."""
    return {
        key: _without_settings(value) if key == "evaluation" else value
        for key, value in record.items()
        if key != "settings"
    }


def csv_text(frame: pd.DataFrame) -> str:
    """CSV with six significant digits and Unix line ends."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
