"""Table S16: differences between models of several classes, over seeds and test samples together."""

from typing import Any

import numpy as np
import pandas as pd

from replication.report.labels import model_title
from replication.report.latex import escape, floating, group, missing_group, row, spanning
from replication.report.statistics import holm
from replication.report.tables.parts import Metric, Sources

PAIRS = [("clai-m", "clai-c"), ("clai-m", "cross-entropy")]
COMPARED_METRICS = [
    Metric("accuracy", "Accuracy", percent=True), Metric("macro_f1", "Macro F1", percent=True),
    Metric("roc_auc", "ROC-AUC", percent=True), Metric("ece", "ECE"), Metric("ece_scaled", "ECE, scaled"),
]  # fmt: skip
COLUMNS = ["dataset", "model", "other", "metric", "value", "low", "high", "p", "p_holm", "samples", "seeds", "data"]
LEAST_P = 0.001
NOT_COMPUTED = "not computed: its evidence has no comparisons.csv"


def comparisons_frame(sources: Sources) -> pd.DataFrame:
    """Return the differences of `PAIRS` by dataset, model minus other, in the table's units; `p_holm` is p, adjusted.

    A dataset without comparisons has one row, without models.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        compared = evidence.frame(dataset, "comparisons.csv").to_dict("records")
        found = {(entry["model"], entry["other"], entry["metric"]): entry for entry in compared}
        if not found:
            data = NOT_COMPUTED if evidence.has(dataset) else evidence.data(dataset)
            rows.append({"dataset": dataset, "data": data})
        for model, other in PAIRS:
            for metric in COMPARED_METRICS:
                if (model, other, metric.key) in found:
                    entry = found[model, other, metric.key]
                    scaled = {name: entry[name] * metric.scale for name in ("value", "low", "high")}
                    rows.append({
                        "dataset": dataset, "model": model, "other": other, "metric": metric.key, **scaled,
                        "p": entry["p"], "samples": int(entry["samples"]), "seeds": int(entry["seeds"]),
                        "data": evidence.data(dataset),
                    })  # fmt: skip
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["p_holm"] = holm(frame["p"].to_numpy(dtype=np.float64))
    return frame.astype({"samples": "Int64", "seeds": "Int64"})


def _p(value: float) -> str:
    """Write a p-value; one below `LEAST_P` by this bound: the far tails of t are approximate."""
    if pd.isna(value):
        return "--"
    return f"$<${LEAST_P:g}" if value < LEAST_P else f"{value:.2g}"


def comparisons_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S16, whose last line names the number of comparisons."""
    evidence = sources.evidence
    heads = ["Metric", "Difference [95 \\% interval]", "$p$", "$p$, adjusted", "Samples", "Seeds"]
    metrics = {metric.key: metric for metric in COMPARED_METRICS}
    body = "\\toprule\n" + row(*heads)
    for dataset in evidence.expected:
        of_dataset = frame[(frame["dataset"] == dataset) & frame["model"].notna()]
        if of_dataset.empty:
            reason = NOT_COMPUTED if evidence.has(dataset) else evidence.not_run(dataset)
            body += missing_group(evidence.title(dataset), len(heads), reason)
        for (model, other), part in of_dataset.groupby(["model", "other"], sort=False):
            lines = []
            for entry in part.to_dict("records"):
                metric = metrics[entry["metric"]]
                value, low, high = (f"{entry[name]:+.{metric.digits}f}" for name in ("value", "low", "high"))
                interval = f"${value}$ [${low}$, ${high}$]" if pd.notna(entry["low"]) else f"${value}$"
                tests = (_p(entry[name]) for name in ("p", "p_holm"))
                line = [rf"\quad {escape(metric.title)}", interval, *tests, str(entry["samples"]), str(entry["seeds"])]
                lines.append(row(*line))
            title = f"{evidence.title(dataset)}: {model_title(str(model))} minus {model_title(str(other))}"
            body += group(title, len(heads), lines)
    count = int(frame["p"].notna().sum())
    body += "\\midrule\n" + spanning(f"$p$ is adjusted for the {count} comparisons of this table.", len(heads))
    return floating(body + "\\bottomrule\n", "lccccc", text, "tab:comparisons", evidence.miniature)
