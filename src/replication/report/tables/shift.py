"""Table S14: accuracy on validation and on test data, beside what the paper prints and what others report on the same data."""

from pathlib import Path
from typing import Any

import pandas as pd

from clai.errors import InputError
from replication.report.evidence import Evidence
from replication.report.labels import model_title
from replication.report.latex import escape, floating, group, row
from replication.report.statistics import replicates, spread
from replication.report.tables.multiclass import MODELS_SHOWN, printed_for
from replication.report.tables.parts import RESULT_COLUMNS, Metric, Sources, cells, result_rows
from replication.runs.models import CLAI

TEST_METRICS = [
    Metric("accuracy", "Test accuracy", percent=True),
    Metric("roc_auc", "Test ROC-AUC", percent=True),
]
VALIDATION, SHIFT = (
    Metric("validation_accuracy", "Validation accuracy", percent=True),
    Metric("shift", "Validation minus test", percent=True),
)
SHIFT_METRICS = [VALIDATION, TEST_METRICS[0], SHIFT, TEST_METRICS[1]]
REPORTED_COLUMNS = ["dataset", "model", "metric", "value", "unit", "source"]


def read_reported_values(path: Path) -> pd.DataFrame:
    """Return the values that others report on the datasets, in per cent, each with its source."""
    frame = pd.read_csv(path)
    if list(frame) != REPORTED_COLUMNS or set(frame["unit"]) != {"per cent"}:
        raise InputError(
            f"{path}: found the columns {list(frame)} and the units {sorted(set(frame.get('unit', [])))}, expected "
            f"{REPORTED_COLUMNS} and values in per cent. Correct the file"
        )
    return frame


def shift_frame(sources: Sources) -> pd.DataFrame:
    """Return validation and test results by dataset and model, then the reported values, whose `data` is their source."""
    rows: list[dict[str, Any]] = []
    for dataset in sources.evidence.expected:
        rows += result_rows(sources.evidence, dataset, MODELS_SHOWN, TEST_METRICS, printed_for(sources, dataset))
        rows += _validation_rows(sources.evidence, dataset)
        for value in sources.reported_values.query("dataset == @dataset").to_dict("records"):
            rows.append({
                "dataset": dataset, "model": value["model"], "metric": value["metric"], "mean": value["value"],
                "sd": float("nan"), "n": 0, "printed": float("nan"), "data": value["source"],
            })  # fmt: skip
    return pd.DataFrame(rows, columns=RESULT_COLUMNS)


def _validation_rows(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    """Return the validation accuracy after the last epoch, and what it exceeds the test accuracy by, over seeds."""
    history, metrics = evidence.frame(dataset, "history.csv"), evidence.metrics(dataset)
    rows: list[dict[str, Any]] = []
    for model in MODELS_SHOWN:
        own = history[history["model"] == model].sort_values("epoch")
        last = own.groupby("seed", as_index=False).tail(1)
        validation = replicates(last, "validation_accuracy")
        test = replicates(metrics[(metrics["model"] == model) & (metrics["metric"] == "accuracy")])
        for metric, values in ((VALIDATION, validation), (SHIFT, (validation - test).dropna())):
            mean, sd, n = spread(values * metric.scale)
            rows.append({
                "dataset": dataset, "model": model, "metric": metric.key, "mean": mean, "sd": sd, "n": n,
                "printed": float("nan"), "data": evidence.data(dataset),
            })  # fmt: skip
    return rows


def shift_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S14: of each dataset the paper's row, those of others, then ours."""
    evidence = sources.evidence
    body = "\\toprule\n" + row("Model", *(metric.title for metric in SHIFT_METRICS))
    for dataset in evidence.expected:
        of_dataset = frame[frame["dataset"] == dataset]
        by_model = {str(model): part for model, part in of_dataset.groupby("model", sort=False)}
        intended, title = evidence.expected[dataset]["title"], evidence.title(dataset)
        paper = "Paper" if title == intended else f"Paper, on {intended}"
        lines = [row(rf"\quad {escape(paper)}", *cells(by_model[CLAI[0]], SHIFT_METRICS, "printed", None))]
        lines += [
            row(rf"\quad {escape(f'{model}, reported by others')}", *cells(part, SHIFT_METRICS))
            for model, part in by_model.items()
            if model not in MODELS_SHOWN
        ]
        if evidence.has(dataset):
            lines += [
                row(rf"\quad {escape(model_title(model))}", *cells(by_model[model], SHIFT_METRICS))
                for model in MODELS_SHOWN
            ]
        else:
            reason = rf"\multicolumn{{{len(SHIFT_METRICS)}}}{{l}}{{\emph{{{escape(evidence.not_run(dataset))}}}}}"
            lines.append(row(r"\quad This work", reason))
        body += group(title, len(SHIFT_METRICS) + 1, lines)
    columns = "l" + "c" * len(SHIFT_METRICS)
    return floating(body + "\\bottomrule\n", columns, text, "tab:shift", evidence.miniature)
