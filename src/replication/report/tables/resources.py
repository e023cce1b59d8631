"""Table S3: time and memory that runs took."""

import pandas as pd

from replication.report.evidence import run_model
from replication.report.labels import model_title
from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.statistics import spread
from replication.report.tables.parts import Sources, in_order, number, scientific

COLUMNS = [
    "dataset", "model", "hardware", "device", "threads", "n", "seconds", "seconds_sd", "peak_memory_mb", "pairs", "data",
]  # fmt: skip
HEADS = ["Runs", "Seconds per run", "Peak memory (MiB)", "Pairs per run", "Threads", "Device"]


def resources_frame(sources: Sources) -> pd.DataFrame:
    """Return time and memory by dataset and model, from the run records: columns `COLUMNS`.

    Seconds and pairs are means over n runs, seconds_sd the standard deviation, peak_memory_mb the largest, in MiB.
    """
    evidence = sources.evidence
    rows: list[list[object]] = []
    for dataset in evidence.expected:
        records = evidence.runs(dataset)
        for model in in_order(run_model(record) for record in records):
            of_model = [record for record in records if run_model(record) == model]
            seconds, sd, n = spread(record["wall_seconds"] for record in of_model)
            memory = [record["peak_memory_mb"] for record in of_model if record["peak_memory_mb"] is not None]
            pairs = [record["pairs"] for record in of_model if record["pairs"] is not None]
            machine = [
                ", ".join(sorted({str(record[key]) for record in of_model}))
                for key in ("hardware", "device", "threads")
            ]
            measured = [n, seconds, sd, max(memory, default=None), spread(pairs)[0] if pairs else None]
            rows.append([dataset, model, *machine, *measured, evidence.data(dataset)])
        if not records:
            rows.append([dataset, None, "", "", "", 0, None, None, None, None, evidence.data(dataset)])
    return pd.DataFrame(rows, columns=COLUMNS)


def resources_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S3."""
    evidence = sources.evidence
    groups: list[str] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            groups.append(missing_group(evidence.title(dataset), len(HEADS) + 1, evidence.not_run(dataset)))
            continue
        lines = []
        for entry in frame[frame["dataset"] == dataset].to_dict("records"):
            numbers = [
                str(entry["n"]), number(entry["seconds"], entry["seconds_sd"], 1),
                number(entry["peak_memory_mb"], float("nan"), 0), scientific(entry["pairs"]),
            ]  # fmt: skip
            machine = [escape(str(entry[key])) for key in ("threads", "device")]
            lines.append(row(rf"\quad {escape(model_title(str(entry['model'])))}", *numbers, *machine))
        groups.append(group(evidence.title(dataset), len(HEADS) + 1, lines))
    return grouped(row("Model", *HEADS), groups, "lcccccc", text, "tab:resources", evidence.miniature)
