"""Supplementary tables of time and memory: of runs and stages, from their records, and of variants side by side."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence, by_setting, run_model
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
    ("inference", "printed", "streamed", "Algorithm 4, the same vote"),
]
"""The comparison in the evidence, its two variants, and the title of the rows that compare them."""
QUANTITIES = {
    "seconds": "Seconds",
    "peak_memory_mb": "Peak memory (MiB)",
    "difference": "Largest difference of results that should be equal",
}

COMPARISON_COLUMNS = [
    "quantity", "comparison", "setting", "first", "second", "first_value", "second_value", "ratio", "low", "high", "n", "counted",
]  # fmt: skip


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


def comparisons_frame(sources: Sources) -> pd.DataFrame:
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
    return pd.DataFrame(rows, columns=COMPARISON_COLUMNS)


def comparisons_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S8: a group of rows for each comparison, with its pairs of variants above the sizes of each."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    heads = ["Size", "First", "Second", "Ratio (range)", "Counted"]
    groups = []
    if not evidence.has(dataset):
        groups.append(layout.group(evidence.title(dataset), len(heads), evidence.not_run(dataset)))
    for (quantity, comparison), compared in frame.groupby(["quantity", "comparison"], sort=False):
        lines = []
        for (first, second), part in compared.groupby(["first", "second"], sort=False):
            variants = " against ".join(MEASURED_TITLES.get(str(name), str(name)) for name in (first, second))
            lines.append(layout.spanning(rf"\quad {layout.escape(variants)}", len(heads)))
            lines += [_timed(entry) for entry in part.to_dict("records")]
        groups.append(layout.group(f"{QUANTITIES[str(quantity)]}: {comparison}", len(heads), lines))
    for record in evidence.runs(dataset):
        machine = layout.escape(f"Device: {record['device']}; threads: {record['threads']}")
        groups.append("\\midrule\n" + layout.spanning(machine, len(heads)))
    return layout.floats(layout.row(*heads), groups, "lrrrr", text, "tab:benchmark", evidence.miniature)


def _timed(entry: Mapping[Hashable, Any]) -> str:
    """Return the row of a size: both values, the ratio with its range over repetitions, and what counting gives."""
    ratio = layout.number(entry["ratio"], digits=2)
    if pd.notna(entry["n"]) and entry["n"] > 1:
        ratio += f" ({entry['low']:.2f}--{entry['high']:.2f})"
    values = (_significant(entry[side]) for side in ("first_value", "second_value"))
    size = layout.escape(str(entry["setting"]).replace(";", ", "))
    return layout.row(rf"\quad\quad {size}", *values, ratio, layout.number(entry["counted"], digits=2))


def _significant(value: float) -> str:
    if pd.notna(value) and abs(value) >= 1e-3:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"
    return layout.scientific(value)
