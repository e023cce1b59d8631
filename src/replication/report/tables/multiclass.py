"""Table 1, multiclass classification, and table S8, the metrics of it that the paper does not print."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import MAJORITY, model_title
from replication.report.latex import escape, floating, group, row
from replication.report.printed_values import printed_value
from replication.report.tables.parts import RESULT_COLUMNS, Metric, Sources, cells, models_of, result_rows, results_tex
from replication.runs.models import CLAI

TABLE1_METRICS = [
    Metric("accuracy", "Accuracy", percent=True),
    Metric("precision", "Precision", percent=True),
    Metric("recall", "Recall", percent=True),
    Metric("f1", "F1-score", percent=True),
    Metric("roc_auc", "ROC-AUC", percent=True),
    Metric("ece", "ECE"),
]
FURTHER_METRICS = [
    Metric("macro_f1", "Macro F1", percent=True), Metric("kappa", "Cohen's kappa"),
    Metric("ece_scaled", "ECE after temperature scaling"),
]  # fmt: skip
MODELS_SHOWN = [*CLAI, "cross-entropy"]
"""The models that have a row for every dataset, run or not; others have one where they were run."""


def table1_frame(sources: Sources) -> pd.DataFrame:
    """Return results by dataset, model and metric. The paper's row names no model: its values stand beside both CLaI models."""
    rows: list[dict[str, Any]] = []
    for dataset in sources.evidence.expected:
        rows += result_rows(
            sources.evidence, dataset, _models(sources.evidence, dataset), TABLE1_METRICS, printed_for(sources, dataset)
        )
        rows += _majority_rows(sources.evidence, dataset)
    return pd.DataFrame(rows, columns=RESULT_COLUMNS)


def printed_for(sources: Sources, dataset: str) -> Callable[[str, str], float]:
    """Return the function of model and metric that gives the paper's value in table 1; nan for models that it does not have."""

    def printed(model: str, metric: str) -> float:
        if model not in CLAI:
            return float("nan")
        return printed_value(sources.printed_values, "table1", dataset, metric)[0]

    return printed


def _models(evidence: Evidence, dataset: str) -> list[str]:
    return [*MODELS_SHOWN, *(model for model in models_of(evidence, dataset) if model not in MODELS_SHOWN)]


def _majority_rows(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    """Return accuracy, and recall, its equal, of naming always the class that is most frequent in training."""
    if not evidence.has(dataset):
        return []
    splits = evidence.description(dataset)["splits"]
    train, test = (splits[name]["counts"] for name in ("train", "test"))
    accuracy = 100 * test[train.index(max(train))] / sum(test)
    return [
        {"dataset": dataset, "model": MAJORITY, "metric": metric, "mean": accuracy, "sd": float("nan"), "n": 1,
         "printed": float("nan"), "data": evidence.data(dataset)}
        for metric in ("accuracy", "recall")
    ]  # fmt: skip


def table1_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table 1; the first row of each dataset that the paper has is the paper's."""
    evidence = sources.evidence
    body = "\\toprule\n" + row("Model", *(metric.title for metric in TABLE1_METRICS))
    for dataset in evidence.expected:
        of_dataset = frame[frame["dataset"] == dataset]
        by_model = {str(model): part for model, part in of_dataset.groupby("model", sort=False)}
        intended, title = evidence.expected[dataset]["title"], evidence.title(dataset)
        paper = "Paper" if title == intended else f"Paper, on {intended}"
        lines = []
        if of_dataset["printed"].notna().any():
            lines.append(row(rf"\quad {escape(paper)}", *cells(by_model[CLAI[0]], TABLE1_METRICS, "printed", None)))
        if evidence.has(dataset):
            lines += [
                row(rf"\quad {escape(model_title(model))}", *cells(part, TABLE1_METRICS))
                for model, part in by_model.items()
            ]
        else:
            reason = rf"\multicolumn{{{len(TABLE1_METRICS)}}}{{l}}{{\emph{{{escape(evidence.not_run(dataset))}}}}}"
            lines.append(row(r"\quad This work", reason))
        body += group(title, len(TABLE1_METRICS) + 1, lines)
    columns = "l" + "c" * len(TABLE1_METRICS)
    return floating(body + "\\bottomrule\n", columns, text, "tab:results", evidence.miniature)


def further_frame(sources: Sources) -> pd.DataFrame:
    """Return the columns of table 1 for the metrics that the paper does not print."""
    rows: list[dict[str, Any]] = []
    for dataset in sources.evidence.expected:
        rows += result_rows(sources.evidence, dataset, _models(sources.evidence, dataset), FURTHER_METRICS)
    return pd.DataFrame(rows, columns=RESULT_COLUMNS)


def further_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S8."""
    return results_tex(frame, sources.evidence, FURTHER_METRICS, model_title, text, "tab:further")
