"""Tables S5 and S11: kernels and metrics M against targets, their decisions, and their calibration and alignment."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from replication.report.evidence import PRINTED_RULE
from replication.report.labels import RULES, VARIANT_TITLES
from replication.report.latex import escape, floating, missing_group, row, spanning
from replication.report.statistics import interval, replicates, spread
from replication.report.tables.parts import Metric, Sources, cells

DECISION_METRICS = [
    Metric("accuracy", "Accuracy", percent=True), Metric("macro_f1", "Macro F1", percent=True),
    Metric("roc_auc", "ROC-AUC", percent=True),
]  # fmt: skip
CALIBRATION_METRICS = [Metric("ece", "ECE"), Metric("ece_scaled", "ECE, scaled")]
TRAINING_METRICS = [
    Metric("alignment", "Alignment"), Metric("centred_alignment", "Centred alignment"), Metric("above_floor", "Loss $-$ floor"),
]  # fmt: skip

Column = tuple[str, str, Metric]
"""Heading, rule (empty for how training ended) and metric of a column."""

DECISION_COLUMNS: list[Column] = [
    *((rule, rule, DECISION_METRICS[0]) for rule in RULES),
    *((metric.title, PRINTED_RULE, metric) for metric in DECISION_METRICS[1:]),
]
TRAINING_COLUMNS: list[Column] = [
    *((metric.title, PRINTED_RULE, metric) for metric in CALIBRATION_METRICS),
    *((metric.title, "", metric) for metric in TRAINING_METRICS),
]


def decisions_frame(sources: Sources) -> pd.DataFrame:
    """Return accuracy, macro F1 and ROC-AUC in per cent by study, cell and decision rule.

    Columns: dataset (the study), model (the cell), kernel, target, rule, metric, mean, sd, n, low, high (95 % t-interval of the
    mean over seeds), data.
    """
    return _frame(sources, DECISION_METRICS, [])


def training_frame(sources: Sources) -> pd.DataFrame:
    """Return calibration errors by decision rule and how training ended (rule empty); columns as of `decisions_frame`."""
    return _frame(sources, CALIBRATION_METRICS, TRAINING_METRICS)


def _frame(sources: Sources, metrics: Sequence[Metric], of_training: Sequence[Metric]) -> pd.DataFrame:
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        measured, history = evidence.frame(study, "metrics.csv"), evidence.frame(study, "history.csv")
        last = history.sort_values("epoch").groupby(["model", "seed"], as_index=False).last()
        last["above_floor"] = last["loss"] - last["floor"]
        for cell in sorted(set(measured["model"]), key=_cell_order):
            kernel, target = cell.split("_")
            of_cell, end = measured[measured["model"] == cell], last[last["model"] == cell].set_index("seed")
            parts = [
                (rule, metric, replicates(_part(of_cell, rule, metric.key)) * metric.scale)
                for rule in RULES
                for metric in metrics
            ]
            parts += [("", metric, end[metric.key]) for metric in of_training]
            for rule, metric, values in parts:
                around, (mean, sd, n) = interval(values), spread(values)
                rows.append({
                    "dataset": study, "model": cell, "kernel": kernel, "target": target, "rule": rule,
                    "metric": metric.key, "mean": mean, "sd": sd, "n": n, "low": around.low, "high": around.high,
                    "data": evidence.data(study),
                })  # fmt: skip
    columns = ["dataset", "model", "kernel", "target", "rule", "metric", "mean", "sd", "n", "low", "high", "data"]
    return pd.DataFrame(rows, columns=columns)


def _part(measured: pd.DataFrame, rule: str, metric: str) -> pd.DataFrame:
    return measured[(measured["rule"] == rule) & (measured["metric"] == metric)]


def _cell_order(cell: str) -> list[int]:
    known = list(VARIANT_TITLES)
    return [known.index(part) if part in known else len(known) for part in cell.split("_")]


def decisions_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S5."""
    rules = len(RULES)
    above = rf" & & \multicolumn{{{rules}}}{{c}}{{Accuracy by decision rule}} \\ \cmidrule(lr){{3-{2 + rules}}}" + "\n"
    return _tex(frame, sources, DECISION_COLUMNS, text, "tab:ablation", above)


def training_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S11."""
    return _tex(frame, sources, TRAINING_COLUMNS, text, "tab:ablation_training")


def _tex(
    frame: pd.DataFrame, sources: Sources, columns: Sequence[Column], text: str, label: str, above: str = ""
) -> str:
    evidence, span = sources.evidence, len(columns) + 2
    body = f"\\toprule\n{above}" + row("Kernel", "Target", *(heading for heading, _, _ in columns))
    for study in evidence.expected:
        if not evidence.has(study):
            body += missing_group(f"Study {study}", span, evidence.not_run(study))
            continue
        epochs = int(evidence.frame(study, "history.csv")["epoch"].max())
        widths = sorted({run["settings"]["encoder"]["width"] for run in evidence.runs(study)})
        title = f"{evidence.data(study)}: encoder width {', '.join(map(str, widths))}, {epochs} epochs"
        body += "\\midrule\n" + spanning(rf"\textbf{{{escape(title)}}}", span)
        of_study = frame[frame["dataset"] == study]
        for cell, part in of_study.groupby("model", sort=False):
            kernel, target = str(cell).split("_")
            numbers = [cells(part[part["rule"] == rule], [metric])[0] for _, rule, metric in columns]
            body += row(rf"\quad {escape(VARIANT_TITLES.get(kernel, kernel))}", target, *numbers)
    return floating(body + "\\bottomrule\n", "ll" + "c" * len(columns), text, label, evidence.miniature)
