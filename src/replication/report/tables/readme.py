"""The README's block of results."""

from collections.abc import Mapping, Sequence

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import MAJORITY, model_title
from replication.report.tables import multiclass, sepsis
from replication.report.tables.parts import Metric, Sources, cells, number

MULTICLASS_DATASETS, SEPSIS_COHORTS = (
    ("pathmnist", "cifar10", "sleepedf", "sleepedf-bands"),
    ("mimic-iv", "challenge2019"),
)
MULTICLASS_METRICS = [metric for metric in multiclass.TABLE1_METRICS if metric.key in ("accuracy", "roc_auc")]
SEPSIS_METRICS = [metric for metric in sepsis.TABLE3_METRICS if metric.key in ("auroc", "auprc")]


def readme_results(evidence: Evidence, printed_values: pd.DataFrame) -> str:
    """Return two narrow Markdown tables, printed -> ours as mean (sd) over n seeds or folds: rows of tables 1 and 3.

    A dataset that was not run has one line, with the printed values and what it needs.
    """
    tables = []
    for datasets, make_frame, metrics in (
        (MULTICLASS_DATASETS, multiclass.table1_frame, MULTICLASS_METRICS),
        (SEPSIS_COHORTS, sepsis.table3_frame, SEPSIS_METRICS),
    ):
        part = Evidence(evidence.root, {key: evidence.expected[key] for key in datasets}, evidence.available)
        frame = make_frame(Sources(part, printed_values, pd.DataFrame(), pd.DataFrame(), {}))
        unit = " (%)" if metrics[0].percent else ""
        lines = [f"| Data | Model | {' | '.join(f'{metric.title}{unit}, printed → ours' for metric in metrics)} | n |"]
        lines.append("| --- | --- |" + " ---: |" * (len(metrics) + 1))
        for dataset in datasets:
            lines += _rows(part, frame[frame["dataset"] == dataset], dataset, metrics)
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _rows(evidence: Evidence, frame: pd.DataFrame, dataset: str, metrics: Sequence[Metric]) -> list[str]:
    by_model = {str(model): part for model, part in frame.groupby("model", sort=False)}
    if not evidence.has(dataset):
        return [_line(evidence.title(dataset), evidence.not_run(dataset), _printed(by_model, metrics), "0")]
    lines = []
    for model, part in by_model.items():
        ours = cells(part, metrics)
        printed = cells(part, metrics, "printed", None)
        pairs = [value if p == "--" else f"{p} → {value}" for p, value in zip(printed, ours, strict=True)]
        n = "--" if model == MAJORITY else str(part["n"].max())
        lines.append(_line(evidence.title(dataset), model_title(model), pairs, n))
    return lines


def _printed(by_model: Mapping[str, pd.DataFrame], metrics: Sequence[Metric]) -> list[str]:
    """Return the printed values of all models as one cell a metric: their range where they differ."""
    texts = []
    for metric in metrics:
        values = [part.loc[part["metric"] == metric.key, "printed"] for part in by_model.values()]
        known = pd.concat(values).dropna()
        if known.empty:
            texts.append("--")
            continue
        low, high = (number(value, float("nan"), metric.digits) for value in (known.min(), known.max()))
        texts.append(f"{low} → --" if low == high else f"{low} to {high} → --")
    return texts


def _line(data: str, model: str, texts: Sequence[str], n: str) -> str:
    return "| " + " | ".join([data, model, *texts, n]) + " |"
