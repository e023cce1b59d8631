"""Table S20: time, memory and disk of each stage of the workflow."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.latex import group, grouped, missing_group, row
from replication.report.tables.parts import Sources
from replication.runs.resources import MIB

STAGES = {
    "download": "Download",
    "prepare": "Prepare",
    "train": "Train",
    "evaluate": "Evaluate",
    "summarise": "Summarise",
}
MEASURES = {
    "wall_seconds": "Longest job (s)", "cpu_seconds": "Processor time of all jobs (s)",
    "peak_memory_mb": "Peak memory of a job (MiB)", "disk_mb": "Disk of all jobs (MiB)",
}  # fmt: skip
COLUMNS = ["dataset", "stage", "jobs", *MEASURES, "data"]
NOT_RECORDED = "not recorded"


def stages_frame(sources: Sources) -> pd.DataFrame:
    """Return a row for each dataset and stage: the columns `COLUMNS`.

    wall_seconds is that of the longest job, cpu_seconds (processor time) and disk_mb are sums over jobs, peak_memory_mb is the
    largest of any job; an empty cell was not recorded. A dataset without evidence has one row without a stage.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        data = {"dataset": dataset, "data": evidence.data(dataset)}
        rows += [data | measured for measured in _stages(evidence, dataset)] if evidence.has(dataset) else [data]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"jobs": "Int64"})


def _stages(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    records, description = evidence.runs(dataset), evidence.description(dataset)
    measured = evidence.frame(dataset, "resources.csv").to_dict("records")
    single: dict[str, dict[str, Any]] = {
        str(entry["stage"]): {str(k): v for k, v in entry.items()} for entry in measured
    }
    of_source = {
        "download": sum(file["size"] for file in description["files"]) / MIB,
        "prepare": sum(_size(array) for array in description["arrays"].values()) / MIB,
    }
    jobs: dict[str, Sequence[Mapping[str, Any]]] = {
        # What was measured wins over what follows from the description of the data, which older evidence has, too.
        **{name: [{"disk_mb": size} | single.get(name, {})] for name, size in of_source.items()},
        "train": records,
        "evaluate": [record["evaluation"] for record in records if "evaluation" in record],
        "summarise": [single.get("summarise", {})],
    }
    return [{"stage": stage, "jobs": len(jobs[stage])} | _together(jobs[stage]) for stage in STAGES if jobs[stage]]


def _together(jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the measures of a stage; nan for one that a job lacks."""
    values = {name: [float(job[name]) for job in jobs if pd.notna(job.get(name))] for name in MEASURES}
    whole = {name: found if len(found) == len(jobs) else [] for name, found in values.items()}
    largest = {name: max(whole[name], default=math.nan) for name in ("wall_seconds", "peak_memory_mb")}
    return largest | {name: sum(whole[name]) if whole[name] else math.nan for name in ("cpu_seconds", "disk_mb")}


def _size(array: Mapping[str, Any]) -> int:
    """Return the bytes of an array of a prepared dataset."""
    return math.prod(array["shape"]) * np.dtype(array["dtype"]).itemsize


def stages_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S20."""
    evidence = sources.evidence
    groups: list[str] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            groups.append(missing_group(evidence.title(dataset), len(MEASURES) + 2, evidence.not_run(dataset)))
            continue
        lines = []
        for entry in frame[frame["dataset"] == dataset].to_dict("records"):
            numbers = [NOT_RECORDED if pd.isna(entry[name]) else _number(float(entry[name])) for name in MEASURES]
            lines.append(row(rf"\quad {STAGES[str(entry['stage'])]}", str(entry["jobs"]), *numbers))
        groups.append(group(evidence.title(dataset), len(MEASURES) + 2, lines))
    head = row("Stage", "Jobs", *MEASURES.values())
    return grouped(head, groups, "lccccc", text, "tab:stages", evidence.miniature)


def _number(value: float) -> str:
    """Return a number with one digit behind the point, a small one with two that count."""
    return f"{value:,.1f}" if value >= 1 or value == 0 else f"{value:.2g}"
