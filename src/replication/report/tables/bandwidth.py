"""Table S21: the Bayes rule by Parzen windows of two widths, beside a temperature, and ROC-AUC of coarser scores."""

from typing import Any

import pandas as pd

from replication.report.labels import model_title
from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.tables.parts import Metric, Sources, cells, in_order

COLUMNS = ["dataset", "model", "seed", "reading", "metric", "value", "n", "data"]
NOT_COMPUTED = "not computed: its evidence has no bandwidth.csv"
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
"""The readings that the table shows with their names, in order; the CSV file has those of single conditions as well."""
METRICS = (
    Metric("power", "Power"),
    Metric("temperature", "Temperature"),
    Metric("accuracy", r"Accuracy (\%)", percent=True),
    Metric("ece", "ECE"),
    Metric("log_loss", "Log loss"),
    Metric("roc_auc", r"ROC-AUC (\%)", percent=True),
)


def bandwidth_frame(sources: Sources) -> pd.DataFrame:
    """Return the figures of merit of each reading of a model; one row for a dataset without.

    Accuracy and ROC-AUC are in per cent, log loss in nats; the others are fractions or have no unit.
    """
    evidence = sources.evidence
    rows: list[dict[Any, Any]] = []
    for dataset in evidence.expected:
        measured = evidence.frame(dataset, "bandwidth.csv")
        if measured.empty:
            data = NOT_COMPUTED if evidence.has(dataset) else evidence.data(dataset)
            rows.append({"dataset": dataset, "n": 0, "data": data})
            continue
        scale = {metric.key: metric.scale for metric in METRICS}
        rows += [
            {**entry, "dataset": dataset, "value": scale.get(entry["metric"], 1) * entry["value"], "n": 1,
             "data": evidence.data(dataset)}
            for model in in_order(measured["model"])
            for entry in measured[measured["model"] == model].to_dict("records")
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).astype({"seed": "Int64"})


def bandwidth_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S21: datasets as groups, models and readings as rows."""
    evidence = sources.evidence
    heads = ["Model", "Reading", *(metric.title for metric in METRICS)]
    groups: list[str] = []
    for dataset in evidence.expected:
        of_dataset = frame[(frame["dataset"] == dataset) & frame["model"].notna()]
        if of_dataset.empty:
            reason = NOT_COMPUTED if evidence.has(dataset) else evidence.not_run(dataset)
            groups.append(missing_group(evidence.title(dataset), len(heads), reason))
            continue
        lines = []
        for model, of_model in of_dataset.groupby("model", sort=False):
            for reading, title in READINGS.items():
                of_reading = of_model[of_model["reading"] == reading]
                numbers = cells(of_reading, METRICS, mean="value", sd=None)
                lines.append(row(rf"\quad {escape(model_title(str(model)))}", escape(title), *numbers))
        groups.append(group(evidence.title(dataset), len(heads), lines))
    return grouped(row(*heads), groups, "ll" + "c" * len(METRICS), text, "tab:bandwidth", evidence.miniature)
