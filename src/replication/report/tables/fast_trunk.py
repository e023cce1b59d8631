"""Tables S12 and S13: methods on the convolutional trunk, and trials of its recipe on validation images."""

from typing import Any

import pandas as pd

from replication.report.evidence import Evidence, run_model
from replication.report.labels import model_title
from replication.report.latex import escape, floating, missing_group, row, spanning
from replication.report.statistics import interval, replicates, spread
from replication.report.tables.parts import Metric, Sources, cells

METHOD_METRICS = [
    Metric("validation_accuracy", "Validation", percent=True), Metric("accuracy", "Accuracy", percent=True),
    Metric("macro_f1", "Macro F1", percent=True), Metric("roc_auc", "ROC-AUC", percent=True), Metric("ece", "ECE"),
    Metric("training_minutes", "Train (min)", decimals=1), Metric("cpu_minutes", "CPU (min)", decimals=1),
]  # fmt: skip
OF_LAST_EPOCH = {"validation_accuracy": ("validation_accuracy", 100.0), "training_minutes": ("seconds", 1 / 60)}
"""By metric its column of the history, and the factor to its unit."""
TRIAL_METRICS = [METHOD_METRICS[1], METHOD_METRICS[-1]]
COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "low", "high", "data"]


def methods_frame(sources: Sources) -> pd.DataFrame:
    """Return the results by method: columns `COLUMNS`, accuracies in per cent, low and high a 95 % t-interval over seeds.

    Accuracy and what follows it are of test images, validation_accuracy is that after the last epoch. training_minutes are wall
    time of the steps alone; cpu_minutes are processor time of the whole run, evaluation included.
    """
    return _frame(sources.evidence, METHOD_METRICS)


def trials_frame(sources: Sources) -> pd.DataFrame:
    """Return accuracy on validation images and CPU minutes by trial; columns as of `methods_frame`."""
    frame = _frame(sources.evidence, TRIAL_METRICS)
    best = frame[frame["metric"] == "accuracy"].sort_values("mean", ascending=False)["model"]
    return frame.set_index("model").loc[list(dict.fromkeys(best))].reset_index()[COLUMNS]


def _frame(evidence: Evidence, metrics: list[Metric]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        measured, history = evidence.metrics(study), evidence.frame(study, "history.csv")
        last = history.sort_values("epoch").groupby(["model", "seed"], as_index=False).last()
        records = evidence.runs(study)
        for cell in measured["model"].unique():
            of_cell = measured[measured["model"] == cell]
            minutes = {run["seed"]: run["cpu_seconds"] / 60 for run in records if run_model(run) == cell}
            for metric in metrics:
                if metric.key == "cpu_minutes":
                    values = pd.Series(minutes, dtype=float).rename_axis("seed")
                elif metric.key in OF_LAST_EPOCH:
                    column, factor = OF_LAST_EPOCH[metric.key]
                    values = last[last["model"] == cell].set_index("seed")[column] * factor
                else:
                    values = replicates(of_cell[of_cell["metric"] == metric.key]) * metric.scale
                around, (mean, sd, n) = interval(values), spread(values)
                rows.append({
                    "dataset": study, "model": cell, "metric": metric.key, "mean": mean, "sd": sd, "n": n,
                    "low": around.low, "high": around.high, "data": evidence.data(study),
                })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def methods_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S12."""
    return _tex(frame, sources.evidence, METHOD_METRICS, text, "tab:fast_trunk", "Method")


def trials_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S13."""
    return _tex(frame, sources.evidence, TRIAL_METRICS, text, "tab:trials", "Trial")


def _tex(frame: pd.DataFrame, evidence: Evidence, metrics: list[Metric], text: str, label: str, kind: str) -> str:
    span = len(metrics) + 1
    body = "\\toprule\n" + row(kind, *(metric.title for metric in metrics))
    for study in evidence.expected:
        if not evidence.has(study):
            body += missing_group(f"Study {study}", span, evidence.not_run(study))
            continue
        runs = evidence.runs(study)
        epochs = evidence.frame(study, "history.csv").groupby("model")["epoch"].max()
        widths, lengths, threads = (
            " or ".join(map(str, sorted(set(values))))
            for values in (
                [run["settings"]["encoder"]["width"] for run in runs],
                epochs.astype(int),
                [run["threads"] for run in runs],
            )
        )
        title = f"{evidence.data(study)}: trunk of width {widths}, {lengths} epochs, {threads} thread(s)"
        body += "\\midrule\n" + spanning(rf"\textbf{{{escape(title)}}}", span)
        for cell, part in frame[frame["dataset"] == study].groupby("model", sort=False):
            body += row(rf"\quad {escape(model_title(str(cell)))}", *cells(part, metrics))
    return floating(body + "\\bottomrule\n", "l" + "c" * len(metrics), text, label, evidence.miniature)
