"""Supplementary tables of time and memory: of runs and stages, from their records, and of schedules side by side."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence, run_model
from replication.report.labels import MEASURED_TITLES, Metric, in_order
from replication.report.statistics import spread
from replication.report.tables import layout
from replication.report.tables.layout import Block, Sources, results

TIME_COLUMNS = ["dataset", "model", "stage", "hardware", "device", "threads", "n", "metric", "mean", "sd", "data"]
RUN_METRICS = [
    Metric("seconds", "Seconds per run", decimals=1),
    Metric("peak_memory_mb", "Peak memory (MiB)", decimals=0),
    Metric("pairs", "Pairs per run", decimals=0),
]
MEASURES = {"wall_seconds": "max", "cpu_seconds": "sum", "peak_memory_mb": "max", "disk_mb": "sum"}
"""What a stage is measured by, and how its jobs count together."""
STAGE_METRICS = [
    Metric("wall_seconds", "Longest job (s)", decimals=1),
    Metric("cpu_seconds", "Processor time of all jobs (s)", decimals=1),
    Metric("peak_memory_mb", "Peak memory of a job (MiB)", decimals=0),
    Metric("disk_mb", "Disk of all jobs (MiB)", decimals=2),
]

COMPARISONS = {"joint": "classes in turn, or all at once", "batches": "batches M", "classes": "classes C"}
"""What varies in each comparison of the evidence."""
MEASURED_METRICS = [
    Metric("seconds", "Seconds per epoch"),
    Metric("predicted", "Seconds of the passes"),
    Metric("peak_memory_mb", "Peak memory (MiB)", decimals=0),
]
MEASURED_COLUMNS = ["dataset", "model", "comparison", "variant", "setting", "metric", "mean", "sd", "n", "data"]


def time_frame(sources: Sources) -> pd.DataFrame:
    """Return time and memory of the runs of each model and of the stages of each dataset: columns `TIME_COLUMNS`.

    Of n runs: mean and sd of seconds, the largest peak_memory_mb (MiB), and the mean number of pairs. Of the n jobs of a stage:
    wall_seconds and peak_memory_mb of the longest and of the largest, cpu_seconds and disk_mb of all together; empty where a job
    recorded none. A dataset without evidence has one row, without metric. Studies have no stages.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        found = [*_of_models(evidence.runs(dataset)), *_of_stages(evidence, dataset)] or [{"n": 0}]
        rows += [{"dataset": dataset, "data": evidence.data(dataset)} | entry for entry in found]
    return pd.DataFrame(rows, columns=TIME_COLUMNS).astype({"n": "Int64"})


def _of_models(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for model in in_order(run_model(record) for record in records):
        of_devices = pd.DataFrame([record for record in records if run_model(record) == model])
        for _, own in of_devices.groupby("device"):
            machine = {key: ", ".join(sorted(set(own[key].astype(str)))) for key in ("hardware", "device", "threads")}
            mean, sd, n = spread(own["wall_seconds"])
            of_model = machine | {"model": model, "n": n}
            rows.append(of_model | {"metric": "seconds", "mean": mean, "sd": sd})
            rows.append(of_model | {"metric": "peak_memory_mb", "mean": own["peak_memory_mb"].max()})
            rows.append(of_model | {"metric": "pairs", "mean": own["pairs"].mean()})
    return rows


def _of_stages(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    if not evidence.has(dataset) or "cells" in evidence.expected[dataset]:
        return []
    records, single = evidence.runs(dataset), evidence.frame(dataset, "resources.csv")
    jobs = {stage: single[single["stage"] == stage] for stage in ("download", "prepare", "summarise")}
    jobs["train"] = pd.DataFrame(records)
    jobs["evaluate"] = pd.DataFrame([record["evaluation"] for record in records if "evaluation" in record])
    rows = []
    for stage in ("download", "prepare", "train", "evaluate", "summarise"):
        values = jobs[stage].reindex(columns=list(MEASURES)).astype(float)
        for name, of in MEASURES.items():
            mean = getattr(values[name], of)(skipna=False)
            rows.append({"stage": stage, "n": len(values), "metric": name, "mean": mean})
    return [entry for entry in rows if entry["n"]]


time_tex = results(
    Block(RUN_METRICS, {"model": "Model", "n": "Runs", "threads": "Threads", "device": "Device"}),
    Block(STAGE_METRICS, {"stage": "Stage", "n": "Jobs"}),
    label="tab:time",
)


def measured_frame(sources: Sources) -> pd.DataFrame:
    """Return seconds and peak memory of each schedule (`variant`) and size: mean and sd over n repetitions."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    measured = evidence.frame(dataset, "benchmark.csv").rename(columns={"repetition": "seed", "quantity": "metric"})
    settings = sorted(measured["setting"].unique(), key=lambda text: [int(n) for n in re.findall(r"\d+", text)])
    by: dict[str, Iterable[str]] = {"comparison": COMPARISONS, "variant": MEASURED_TITLES, "setting": settings}
    named = {"dataset": dataset, "model": "measurements", "data": evidence.data(dataset)}
    rows = layout.rows_by(measured.assign(fold=np.nan), MEASURED_METRICS, by, named)
    frame = pd.DataFrame(rows, columns=MEASURED_COLUMNS)
    return frame[frame["n"] > 0]


def measured_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S8: a row for each schedule and size."""
    shown = frame.replace({"comparison": COMPARISONS, "variant": MEASURED_TITLES})
    shown = shown.assign(setting=shown["setting"].str.replace(";", ", "))
    block = Block(MEASURED_METRICS, {"comparison": "Varied", "variant": "Schedule", "setting": "Size"})
    return layout.results_tex(shown, sources, text, [block], "tab:benchmark", title=_machine)


def _machine(evidence: Evidence, dataset: str) -> str:
    """Return the title with the device and the threads of the measurement."""
    of_runs = [f"{run['device']}, {run['threads']} thread(s)" for run in evidence.runs(dataset)]
    return ": ".join([evidence.title(dataset), *of_runs])
