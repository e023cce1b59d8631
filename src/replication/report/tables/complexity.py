"""Supplementary table of time and memory of training by schedule and size."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import MEASURED_TITLES, Metric
from replication.report.tables import layout
from replication.report.tables.layout import Block, Sources

COMPARISONS = {"joint": "classes in turn, or all at once", "batches": "batches M", "classes": "classes C"}
"""What varies in each comparison of the evidence."""
MEASURED_METRICS = [
    Metric("seconds", "Seconds per epoch"),
    Metric("predicted", "Seconds of the passes"),
    Metric("peak_memory_mb", "Peak memory (MiB)", decimals=0),
]
MEASURED_COLUMNS = ["dataset", "model", "comparison", "variant", "setting", "metric", "mean", "sd", "n", "data"]


def measured_frame(sources: Sources) -> pd.DataFrame:
    """Return seconds and peak memory of each schedule (`variant`) and size: mean and sd over n repetitions."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    measured = evidence.frame(dataset, "benchmark.csv").rename(columns={"repetition": "seed", "quantity": "metric"})
    measured = measured.sort_values(["M", "C", "B"], kind="stable")
    sizes = [measured[size].astype(str) for size in ("M", "C", "B")]
    measured["setting"] = "M=" + sizes[0] + ";C=" + sizes[1] + ";B=" + sizes[2]
    settings = measured["setting"].unique()
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
