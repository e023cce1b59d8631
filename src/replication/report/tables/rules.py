"""Table S4: the decision rules of Collaborative Inference on the same embeddings."""

from typing import Any

import pandas as pd

from replication.report.labels import RULES, model_title
from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.statistics import replicates, spread
from replication.report.tables.parts import Sources, number
from replication.runs.models import CLAI

METRICS = {"multiclass": ("accuracy", "roc_auc", "ece"), "binary": ("f1", "auroc", "ece")}
"""Metrics of the decision, of the ranking and of the calibration, by kind of task."""


def rules_frame(sources: Sources) -> pd.DataFrame:
    """Return metrics by decision rule, with the class shares of the data, as fractions.

    A dataset that was not run has one row, without model, rule and metric.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            rows.append({"dataset": dataset, "n": 0, "data": evidence.data(dataset)})
            continue
        everything = evidence.frame(dataset, "metrics.csv")
        metrics = METRICS["multiclass" if (everything["metric"] == "accuracy").any() else "binary"]
        for model in CLAI:
            for rule in RULES:
                measured = evidence.metrics(dataset, rule=rule)
                part = measured[measured["model"] == model]
                for metric in metrics:
                    mean, sd, n = spread(replicates(part[part["metric"] == metric]))
                    rows.append({
                        "dataset": dataset, "model": model, "rule": rule, "metric": metric,
                        "mean": mean, "sd": sd, "n": n, "data": evidence.data(dataset),
                    })  # fmt: skip
    return pd.DataFrame(rows, columns=["dataset", "model", "rule", "metric", "mean", "sd", "n", "data"])


def rules_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S4."""
    evidence = sources.evidence
    heads = ["Model", "Decision rule", "Accuracy, or F1 (sepsis)", "ROC-AUC", "ECE"]
    groups: list[str] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            groups.append(missing_group(evidence.title(dataset), len(heads), evidence.not_run(dataset)))
            continue
        lines = []
        for (model, rule), part in frame[frame["dataset"] == dataset].groupby(["model", "rule"], sort=False):
            numbers = [number(mean, sd, 3) for mean, sd in zip(part["mean"], part["sd"], strict=True)]
            lines.append(row(rf"\quad {escape(model_title(str(model)))}", str(rule), *numbers))
        groups.append(group(evidence.title(dataset), len(heads), lines))
    return grouped(row(*heads), groups, "llccc", text, "tab:rules", evidence.miniature)
