"""Supplementary tables of time and memory: of runs, of stages of the workflow, and of variants side by side."""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence, by_setting, run_model
from replication.report.labels import MEASURED_TITLES, model_title
from replication.report.statistics import spread
from replication.report.tables.layout import (
    Sources,
    by_dataset,
    escape,
    group,
    grouped,
    in_order,
    named,
    number,
    row,
    scientific,
    spanning,
)
from replication.runs.resources import MIB

RESOURCE_COLUMNS = [
    "dataset", "model", "hardware", "device", "threads", "n", "seconds", "seconds_sd", "peak_memory_mb", "pairs", "data",
]  # fmt: skip

STAGES = {
    "download": "Download",
    "prepare": "Prepare",
    "train": "Train",
    "evaluate": "Evaluate",
    "summarise": "Summarise",
}
MEASURES = {
    "wall_seconds": "Longest job (s)",
    "cpu_seconds": "Processor time of all jobs (s)",
    "peak_memory_mb": "Peak memory of a job (MiB)",
    "disk_mb": "Disk of all jobs (MiB)",
}

COMPARISONS = [
    ("exact", "printed", "sequential", "Algorithm 3, the same gradient"),
    ("joint", "sequential", "joint", "All classes in one pass"),
    ("batches", "joint", "linear", "Sampled references"),
    ("epoch", "clai-c", "cross-entropy", "An epoch and one of cross-entropy"),
    ("epoch", "clai-m", "cross-entropy", "An epoch and one of cross-entropy"),
    ("epoch", "clai-c", "supervised-contrastive", "An epoch and one of supervised contrastive learning"),
    ("epoch", "clai-m", "supervised-contrastive", "An epoch and one of supervised contrastive learning"),
    ("epoch", "clai-c", "bare", "An epoch and its trunk alone"),
    ("epoch", "clai-m", "bare", "An epoch and its trunk alone"),
    ("precision", "auto", "bfloat16", "The default precision and a fixed one"),
    ("precision", "auto", "float32", "The default precision and a fixed one"),
    ("inference", "printed", "streamed", "Algorithm 4, the same vote"),
    ("classifiers", "k-neighbours", "clai-c", "Classifiers of the same embeddings"),
    ("classifiers", "k-neighbours", "clai-m", "Classifiers of the same embeddings"),
    ("classifiers", "svm", "clai-c", "Classifiers of the same embeddings"),
    ("classifiers", "svm", "clai-m", "Classifiers of the same embeddings"),
]
"""The comparison in the evidence, its two variants, and the title of the rows that compare them."""
QUANTITIES = {
    "seconds": "Seconds",
    "peak_memory_mb": "Peak memory (MiB)",
    "difference": "Largest difference of results that should be equal",
}


def resources_frame(sources: Sources) -> pd.DataFrame:
    """Return time and memory by dataset and model, from the run records: columns `RESOURCE_COLUMNS`.

    Seconds and pairs are means over n runs, seconds_sd the standard deviation, peak_memory_mb the largest, in MiB.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        records = evidence.runs(dataset)
        for model in in_order(run_model(record) for record in records):
            own = pd.DataFrame([record for record in records if run_model(record) == model])
            mean, sd, n = spread(own["wall_seconds"])
            machine = {key: ", ".join(sorted(set(own[key].astype(str)))) for key in ("hardware", "device", "threads")}
            measured = {"n": n, "seconds": mean, "seconds_sd": sd, "peak_memory_mb": own["peak_memory_mb"].max()}
            rows.append({"dataset": dataset, "model": model, **machine, **measured, "pairs": own["pairs"].mean()})
        if not records:
            rows.append({"dataset": dataset, "n": 0})
    frame = pd.DataFrame(rows, columns=RESOURCE_COLUMNS)
    return frame.assign(data=frame["dataset"].map(evidence.data))


def resources_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S3."""

    def lines(part: pd.DataFrame) -> list[str]:
        return [
            named(
                model_title(str(entry["model"])),
                str(entry["n"]),
                number(entry["seconds"], entry["seconds_sd"], 1),
                number(entry["peak_memory_mb"], digits=0),
                scientific(entry["pairs"]),
                escape(str(entry["threads"])),
                escape(str(entry["device"])),
            )
            for entry in part.to_dict("records")
        ]

    heads = ["Model", "Runs", "Seconds per run", "Peak memory (MiB)", "Pairs per run", "Threads", "Device"]
    return by_dataset(frame, sources, heads, lines, text, "tab:resources")


def stages_frame(sources: Sources) -> pd.DataFrame:
    """Return a row for each dataset and stage: columns dataset, stage, jobs, `MEASURES` and data.

    wall_seconds is that of the longest job, cpu_seconds (processor time) and disk_mb are sums over jobs, peak_memory_mb is the
    largest of any job; an empty cell was not recorded. A dataset without evidence has one row without a stage.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        data = {"dataset": dataset, "data": evidence.data(dataset)}
        rows += [data | measured for measured in _stages(evidence, dataset)] if evidence.has(dataset) else [data]
    return pd.DataFrame(rows, columns=["dataset", "stage", "jobs", *MEASURES, "data"]).astype({"jobs": "Int64"})


def _stages(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    records, description = evidence.runs(dataset), evidence.description(dataset)
    measured = evidence.frame(dataset, "resources.csv").to_dict("records")
    single: dict[str, dict[Any, Any]] = {str(entry["stage"]): dict(entry) for entry in measured}
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
    return [{"stage": stage, "jobs": len(jobs[stage]), **_together(jobs[stage])} for stage in STAGES if jobs[stage]]


def _together(jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the measures of a stage; nan for one that a job lacks."""
    values = pd.DataFrame(jobs).reindex(columns=list(MEASURES)).astype(float)
    how = {"wall_seconds": "max", "cpu_seconds": "sum", "peak_memory_mb": "max", "disk_mb": "sum"}
    return {name: float(getattr(values[name], of)(skipna=False)) for name, of in how.items()}


def _size(array: Mapping[str, Any]) -> int:
    """Return the bytes of an array of a prepared dataset."""
    return math.prod(array["shape"]) * np.dtype(array["dtype"]).itemsize


def stages_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S20."""

    def lines(part: pd.DataFrame) -> list[str]:
        return [
            named(STAGES[str(entry["stage"])], str(entry["jobs"]), *(_recorded(entry[name]) for name in MEASURES))
            for entry in part.to_dict("records")
        ]

    return by_dataset(frame, sources, ["Stage", "Jobs", *MEASURES.values()], lines, text, "tab:stages")


def _recorded(value: float) -> str:
    """Return a number with one digit behind the point, a small one with two that count."""
    if pd.isna(value):
        return "not recorded"
    return f"{value:,.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def benchmark_frame(sources: Sources) -> pd.DataFrame:
    """Return the columns of `comparisons`, and dataset, model, data."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    frame = comparisons(evidence.frame(dataset, "benchmark.csv"))
    return frame.assign(dataset=dataset, model="measurements", data=evidence.data(dataset))


def comparisons(measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each comparison and setting: times first, then memory, then differences.

    Columns: quantity; comparison (title); setting; first, second (variants); first_value, second_value (medians over
    repetitions); ratio (median over repetitions of first / second); low, high (range of the ratio); n (repetitions);
    counted (the ratio of the predicted times, NaN without a prediction).
    """
    rows: list[dict[str, Any]] = []
    for quantity, (name, first, second, title) in product(QUANTITIES, COMPARISONS):
        part = measured[(measured["comparison"] == name) & measured["quantity"].isin([quantity, "predicted"])]
        if name == "batches" and len(part):
            sizes = by_setting(part)["M"]
            part = part[sizes == sizes.max()]
        for setting, own in part.groupby("setting", sort=False):
            # A variant that was too large to be measured has no column.
            table = own.pivot_table(index="repetition", columns=["quantity", "variant"], values="value")
            table = table.reindex(columns=list(product((quantity, "predicted"), (first, second))))
            values = table[quantity]
            if values[second].isna().all():
                continue
            ratio, predicted = (values[first] / values[second]).dropna(), table["predicted"]
            rows.append({
                "quantity": quantity, "comparison": title, "setting": setting, "first": first, "second": second,
                "first_value": values[first].median(), "second_value": values[second].median(), "ratio": ratio.median(),
                "low": ratio.min(), "high": ratio.max(), "n": None if quantity == "difference" else len(ratio),
                "counted": (predicted[first] / predicted[second]).median() if quantity == "seconds" else None,
            })  # fmt: skip
    columns = ["quantity", "comparison", "setting", "first", "second", "first_value", "second_value", "ratio", "low",
               "high", "n", "counted"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def benchmark_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S7: a group of rows for each comparison, with its pairs of variants above the sizes of each."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    heads = ["Size", "First", "Second", "Ratio (range)", "Counted"]
    missing = [] if evidence.has(dataset) else [dataset]
    groups = [group(evidence.title(key), len(heads), evidence.not_run(key)) for key in missing]
    for (quantity, comparison), compared in frame.groupby(["quantity", "comparison"], sort=False):
        lines = []
        for (first, second), part in compared.groupby(["first", "second"], sort=False):
            variants = f"{MEASURED_TITLES[str(first)]} against {MEASURED_TITLES[str(second)]}"
            lines.append(spanning(rf"\quad {escape(variants)}", len(heads)))
            lines += [_timed(entry) for entry in part.to_dict("records")]
        groups.append(group(f"{QUANTITIES[str(quantity)]}: {comparison}", len(heads), lines))
    for record in evidence.runs(dataset):
        machine = escape(f"Device: {record['device']}; threads: {record['threads']}")
        groups.append("\\midrule\n" + spanning(machine, len(heads)))
    return grouped(row(*heads), groups, "lrrrr", text, "tab:benchmark", evidence.miniature)


def _timed(entry: Mapping[Hashable, Any]) -> str:
    """Return the row of a size: both values, the ratio with its range over repetitions, and what counting gives."""
    ratio = number(entry["ratio"], digits=2)
    if pd.notna(entry["n"]) and entry["n"] > 1:
        ratio += f" ({entry['low']:.2f}--{entry['high']:.2f})"
    values = (_significant(entry[side]) for side in ("first_value", "second_value"))
    size = escape(str(entry["setting"]).replace(";", ", "))
    return row(rf"\quad\quad {size}", *values, ratio, number(entry["counted"], digits=2))


def _significant(value: float) -> str:
    if pd.notna(value) and abs(value) >= 1e-3:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"
    return scientific(value)
