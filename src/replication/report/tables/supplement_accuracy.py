"""Supplementary tables of classification: decision rules, shift, comparisons, read-outs and widths of the Parzen window."""

from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import PRINTED_SHARES, Evidence
from replication.report.labels import RULES, model_title
from replication.report.statistics import holm, replicates
from replication.report.tables.layout import (
    RESULT_COLUMNS,
    Metric,
    Sources,
    by_dataset,
    cells,
    chosen,
    escape,
    group,
    grouped,
    in_order,
    lacking,
    model_lines,
    named,
    result_rows,
    row,
    rows_by,
    spanning,
    summary,
)
from replication.report.tables.paper import TABLE1_MODELS, own_lines, paper_line, with_printed
from replication.runs.controls import EMBEDDINGS, READ_OUTS
from replication.runs.models import CLAI

FURTHER_METRICS = chosen("macro_f1 kappa ece_scaled", ece_scaled="ECE after temperature scaling")

RULE_METRICS = {
    "multiclass": [Metric("accuracy", ""), Metric("roc_auc", ""), Metric("ece", "")],
    "binary": [Metric("f1", ""), Metric("auroc", ""), Metric("ece", "")],
}
"""Metrics of the decision, of the ranking and of the calibration, by kind of task."""

SHIFT_METRICS = chosen(
    "validation_accuracy accuracy shift roc_auc",
    validation_accuracy="Validation accuracy",
    accuracy="Test accuracy",
    roc_auc="Test ROC-AUC",
)

PAIRS = [("clai-m", "clai-c"), ("clai-m", "cross-entropy")]
COMPARED_METRICS = chosen("accuracy macro_f1 roc_auc ece ece_scaled")
COMPARED_COLUMNS = [
    "dataset", "model", "other", "metric", "value", "low", "high", "p", "p_holm", "samples", "seeds", "data",
]  # fmt: skip
LEAST_P = 0.001

READ_OUT_COLUMNS = ["dataset", "model", "read_out", "metric", "mean", "sd", "n", "with_seeds", "data"]

READINGS = {
    "parzen": "Parzen",
    "parzen-temperature": "Parzen, temperature",
    "parzen-power": "Parzen, power",
    "parzen-power-temperature": "Parzen, power and temperature",
    "softmax": "Softmax of f",
    "softmax-temperature": "Softmax of f, temperature",
    "f": "f",
    "f-rounded": "f, rounded",
    "decisions": "Decisions f > 0",
    "label": "Predicted class",
}
"""The readings that table S21 shows with their names, in order; the CSV file has those of single conditions as well."""
BANDWIDTH_METRICS = chosen(
    "power temperature accuracy ece log_loss roc_auc", accuracy=r"Accuracy (\%)", roc_auc=r"ROC-AUC (\%)"
)


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
        measured = evidence.frame(dataset, "metrics.csv")
        named = {"dataset": dataset, "data": evidence.data(dataset)}
        of_shares = measured[measured["shares"] == PRINTED_SHARES]
        rows += rows_by(of_shares, _rule_metrics(measured), {"model": CLAI, "rule": RULES}, named)
    return pd.DataFrame(rows, columns=["dataset", "model", "rule", "metric", "mean", "sd", "n", "data"])


def _rule_metrics(frame: pd.DataFrame) -> list[Metric]:
    return RULE_METRICS["multiclass" if (frame["metric"] == "accuracy").any() else "binary"]


def rules_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S4."""

    def lines(part: pd.DataFrame) -> list[str]:
        by_rule = part.groupby(["model", "rule"], sort=False)
        return [
            named(model_title(str(model)), str(rule), *cells(own, _rule_metrics(own))) for (model, rule), own in by_rule
        ]

    heads = ["Model", "Decision rule", "Accuracy, or F1 (sepsis)", "ROC-AUC", "ECE"]
    return by_dataset(frame, sources, heads, lines, text, "tab:rules", columns="llccc")


def shift_frame(sources: Sources) -> pd.DataFrame:
    """Return validation and test results by dataset and model, then the reported values, whose `data` is their source."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        rows += with_printed(result_rows(evidence, dataset, TABLE1_MODELS, chosen("accuracy roc_auc")), sources)
        rows += _validation_rows(evidence, dataset)
        for value in sources.reported_values.query("dataset == @dataset").to_dict("records"):
            reported = {"model": value["model"], "metric": value["metric"], "mean": value["value"], "n": 0}
            rows.append({"dataset": dataset, **reported, "data": value["source"]})
    return pd.DataFrame(rows, columns=RESULT_COLUMNS)


def _validation_rows(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    """Return the validation accuracy after the last epoch, and what it exceeds the test accuracy by, over seeds."""
    history, metrics = evidence.frame(dataset, "history.csv"), evidence.metrics(dataset)
    rows: list[dict[str, Any]] = []
    for model in TABLE1_MODELS:
        own = history[history["model"] == model].sort_values("epoch")
        validation = replicates(own.groupby("seed", as_index=False).tail(1), "validation_accuracy")
        test = replicates(metrics[(metrics["model"] == model) & (metrics["metric"] == "accuracy")])
        for metric, values in (("validation_accuracy", validation), ("shift", (validation - test).dropna())):
            of_model = {"dataset": dataset, "model": model, "metric": metric, "data": evidence.data(dataset)}
            rows.append(of_model | summary(100 * values))
    return rows


def shift_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S14: of each dataset the paper's row, those of others, then ours."""
    evidence = sources.evidence
    groups = []
    for dataset in evidence.expected:
        part = frame[frame["dataset"] == dataset]
        ours = part["model"].isin(TABLE1_MODELS)
        lines = [paper_line(part, evidence, dataset, SHIFT_METRICS)]
        lines += model_lines(part[~ours], SHIFT_METRICS, "{}, reported by others".format)
        lines += own_lines(part[ours], evidence, dataset, SHIFT_METRICS)
        groups.append(group(evidence.title(dataset), len(SHIFT_METRICS) + 1, lines))
    head = row("Model", *(metric.title for metric in SHIFT_METRICS))
    return grouped(head, groups, "l" + "c" * len(SHIFT_METRICS), text, "tab:shift", evidence.miniature)


def comparisons_frame(sources: Sources) -> pd.DataFrame:
    """Return the differences of `PAIRS` by dataset, model minus other, in the table's units; `p_holm` is p, adjusted.

    A dataset without comparisons has one row, without models.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        compared: list[dict[Any, Any]] = evidence.frame(dataset, "comparisons.csv").to_dict("records")
        found = {(entry["model"], entry["other"], entry["metric"]): entry for entry in compared}
        if not found:
            rows.append({"dataset": dataset, "data": lacking(evidence, dataset, "comparisons.csv")})
        for model, other in PAIRS:
            for metric in COMPARED_METRICS:
                if (model, other, metric.key) in found:
                    entry = found[model, other, metric.key]
                    scaled = {name: entry[name] * metric.scale for name in ("value", "low", "high")}
                    rows.append(entry | scaled | {"dataset": dataset, "data": evidence.data(dataset)})
    frame = pd.DataFrame(rows, columns=COMPARED_COLUMNS)
    frame["p_holm"] = holm(frame["p"].to_numpy(dtype=np.float64))
    return frame.astype({"samples": "Int64", "seeds": "Int64"})


def comparisons_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S16, whose last line names the number of comparisons."""
    evidence = sources.evidence
    heads = ["Metric", "Difference [95 \\% interval]", "$p$", "$p$, adjusted", "Samples", "Seeds"]
    groups = []
    for dataset in evidence.expected:
        of_dataset = frame[(frame["dataset"] == dataset) & frame["model"].notna()]
        if of_dataset.empty:
            reason = lacking(evidence, dataset, "comparisons.csv")
            groups.append(group(evidence.title(dataset), len(heads), reason))
        for (model, other), part in of_dataset.groupby(["model", "other"], sort=False):
            title = f"{evidence.title(dataset)}: {model_title(str(model))} minus {model_title(str(other))}"
            groups.append(group(title, len(heads), [_comparison(entry) for entry in part.to_dict("records")]))
    count = int(frame["p"].notna().sum())
    note = spanning(f"$p$ is adjusted for the {count} comparisons of this table.", len(heads))
    groups.append(f"\\midrule\n{note}")
    return grouped(row(*heads), groups, "lccccc", text, "tab:comparisons", evidence.miniature)


def _comparison(entry: dict[Any, Any]) -> str:
    metric = next(metric for metric in COMPARED_METRICS if metric.key == entry["metric"])
    value, low, high = (f"{entry[name]:+.{metric.digits}f}" for name in ("value", "low", "high"))
    interval = f"${value}$ [${low}$, ${high}$]" if pd.notna(entry["low"]) else f"${value}$"
    tests = (_p(entry[name]) for name in ("p", "p_holm"))
    return named(metric.title, interval, *tests, str(entry["samples"]), str(entry["seeds"]))


def _p(value: float) -> str:
    """Write a p-value; one below `LEAST_P` by this bound: the far tails of t are approximate."""
    if pd.isna(value):
        return "--"
    return f"$<${LEAST_P:g}" if value < LEAST_P else f"{value:.2g}"


def read_outs_frame(sources: Sources) -> pd.DataFrame:
    """Return the accuracy (per cent) of each embedding (`model`) and read-out over seeds; one row for a dataset without.

    `with_seeds` lists them with spaces between: a model may have runs with further ones.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        measured = evidence.frame(dataset, "read_outs.csv").assign(fold=np.nan)
        measured = measured[measured["metric"] == "accuracy"]
        if measured.empty:
            rows.append({"dataset": dataset, "n": 0, "data": lacking(evidence, dataset, "read_outs.csv")})
        models = [name for name in EMBEDDINGS if name in set(measured["model"])]
        named = {"dataset": dataset, "data": evidence.data(dataset)}
        rows += rows_by(measured, chosen("accuracy"), {"model": models, "read_out": READ_OUTS}, named)
    return pd.DataFrame(rows).rename(columns={"of": "with_seeds"}).reindex(columns=READ_OUT_COLUMNS)


def read_outs_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S19: a row shows what the read-out adds to an embedding, a column what the loss adds."""
    columns = [Metric(key, title, percent=True) for key, title in READ_OUTS.items()]

    def lines(part: pd.DataFrame) -> list[str]:
        return model_lines(part, columns, lambda name: EMBEDDINGS[name].title, key="read_out")

    heads = ["Embedding", *READ_OUTS.values()]
    return by_dataset(frame, sources, heads, lines, text, "tab:read-outs", file="read_outs.csv")


def bandwidth_frame(sources: Sources) -> pd.DataFrame:
    """Return the figures of merit of each reading of a model; one row for a dataset without.

    Accuracy and ROC-AUC are in per cent, log loss in nats; the others are fractions or have no unit.
    """
    evidence = sources.evidence
    scale = {metric.key: metric.scale for metric in BANDWIDTH_METRICS}
    parts = []
    for dataset in evidence.expected:
        measured = evidence.frame(dataset, "bandwidth.csv")
        measured = measured.sort_values("model", key=lambda models: models.map(in_order(models).index), kind="stable")
        measured["value"] *= measured["metric"].map(scale).fillna(1)
        parts.append(measured.assign(dataset=dataset, n=1, data=evidence.data(dataset)))
        if measured.empty:
            data = lacking(evidence, dataset, "bandwidth.csv")
            parts.append(pd.DataFrame([{"dataset": dataset, "n": 0, "data": data}]))
    columns = ["dataset", "model", "seed", "reading", "metric", "value", "n", "data"]
    return pd.concat(parts, ignore_index=True)[columns].astype({"seed": "Int64", "value": float})


def bandwidth_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S21: the Bayes rule by Parzen windows of two widths, and ROC-AUC of coarser scores."""

    def lines(part: pd.DataFrame) -> list[str]:
        return [
            named(
                model_title(str(model)),
                escape(title),
                *cells(own[own["reading"] == reading], BANDWIDTH_METRICS, mean="value", sd=None),
            )
            for model, own in part.groupby("model", sort=False)
            for reading, title in READINGS.items()
        ]

    heads = ["Model", "Reading", *(metric.title for metric in BANDWIDTH_METRICS)]
    columns = "ll" + "c" * len(BANDWIDTH_METRICS)
    return by_dataset(frame, sources, heads, lines, text, "tab:bandwidth", columns=columns, file="bandwidth.csv")
