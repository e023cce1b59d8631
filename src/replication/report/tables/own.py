"""The table of a dataset of the user's own: what tables 1 and 3 show, in per cent."""

from dataclasses import replace
from typing import Any

import pandas as pd

from replication.report.tables.layout import RESULT_COLUMNS, Block, Sources, chosen, models_of, result_rows, results
from replication.report.tables.paper import TABLE1_METRICS, majority_rows

BINARY_METRICS = [
    replace(metric, percent=metric.key != "ece") for metric in chosen("auroc auprc f1 ece prevalence", f1="F1-score")
]


def accuracy_frame(sources: Sources) -> pd.DataFrame:
    """Return the metrics of table 1 of samples, and those of table 3 of two classes, by model."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.at_hand():
        measured = set(evidence.frame(dataset, "metrics.csv")["metric"])
        metrics = {metric.key: metric for metric in [*TABLE1_METRICS, *BINARY_METRICS] if metric.key in measured}
        rows += result_rows(evidence, dataset, models_of(evidence, dataset), list(metrics.values()))
        rows += majority_rows(evidence, dataset) if "accuracy" in measured else []
    return pd.DataFrame(rows, columns=[column for column in RESULT_COLUMNS if column != "printed"])


accuracy_tex = results(Block(TABLE1_METRICS), Block(BINARY_METRICS), label="tab:accuracy")
