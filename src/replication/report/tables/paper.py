"""Tables 1 to 3 of the paper, and the table of a dataset of the user's own: what 1 and 3 show, in per cent."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import CLASS_COLOURS, MAJORITY, Metric, chosen, model_title
from replication.report.printed_values import printed_value
from replication.report.statistics import Interval, gap, interval, minus_printed, over_samples
from replication.report.tables import layout
from replication.report.tables.layout import Block, Sources
from replication.runs.registry import CLAI

TABLE1_METRICS = [
    *chosen("accuracy precision recall"),
    Metric("f1", "F1-score", percent=True),
    *chosen("roc_auc ece ece_scaled log_loss_scaled"),
]
TABLE1_MODELS = [*CLAI, "cross-entropy"]
"""The models that have a row for every dataset, run or not; others have one where they were run."""

PAIRS = [("clai-m", "clai-c"), ("clai-m", "cross-entropy")]
"""Models whose difference, the first minus the second, claims rest on."""
PAIR_METRICS = chosen("accuracy roc_auc ece ece_scaled")
GAP_METRICS = [replace(metric, key=f"gap_{metric.key}") for metric in PAIR_METRICS]

TABLE3_METRICS = chosen(
    "auroc auprc f1 f1_validation ece ece_calibrated log_loss_calibrated", f1_validation="F1, validation"
)
MIXTURE = "student-t-mixture"
TABLE3_MODELS = [*CLAI, MIXTURE]
SEPSIS_PAIRS = [("clai-m", "clai-c"), ("clai-m", MIXTURE), ("clai-c", MIXTURE)]
SEPSIS_GAP_METRICS = [replace(metric, key=f"gap_{metric.key}") for metric in TABLE3_METRICS]


def table1_frame(sources: Sources) -> pd.DataFrame:
    """Return results by dataset, model and metric. The paper's row names no model: its values stand beside both CLaI models.

    Rows without a model have the difference of two, or from the printed value, as `pair`, with the 95 % interval over seeds and
    test samples; that of a printed value counts its own sampling as well.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        models = layout.models_of(evidence, dataset, TABLE1_MODELS)
        results_of = _over_samples(evidence, dataset, layout.result_rows(evidence, dataset, models, TABLE1_METRICS))
        rows += with_printed(results_of, sources)
        rows += majority_rows(evidence, dataset)
        rows += _gap_rows(sources, dataset)
    return pd.DataFrame(rows, columns=[*layout.RESULT_COLUMNS, "pair", "low", "high"])


def _over_samples(evidence: Evidence, dataset: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with intervals over seeds and test samples where there are such, as claims have them."""
    comparisons = evidence.frame(dataset, "comparisons.csv")
    scales = {metric.key: metric.scale for metric in TABLE1_METRICS}
    for row in rows:
        if around := over_samples(comparisons, row["metric"], row["model"]):
            row |= {"low": scales[row["metric"]] * around.low, "high": scales[row["metric"]] * around.high}
    return rows


def _gap_rows(sources: Sources, dataset: str) -> list[dict[str, Any]]:
    """Return rows of the differences of `PAIRS`, and of CLaI's models from the paper's values where it prints one."""
    evidence, rows = sources.evidence, []
    comparisons = evidence.frame(dataset, "comparisons.csv")
    for pair, metric in product(PAIRS, PAIR_METRICS):
        if around := over_samples(comparisons, metric.key, *pair):
            rows.append(_gap_row(evidence, dataset, pair, metric, around))
    for model, metric in product(CLAI, PAIR_METRICS):
        value = printed_value(sources.printed_values, "table1", dataset, metric.key)[0] / metric.scale
        around = over_samples(comparisons, metric.key, model)
        if around and metric.percent and not np.isnan(value):
            samples = sum(evidence.description(dataset)["splits"]["test"]["counts"])
            difference = minus_printed(around, value, samples)
            rows.append(_gap_row(evidence, dataset, (model, "printed"), metric, difference))
    return rows


def _gap_row(
    evidence: Evidence, dataset: str, pair: tuple[str, str], metric: Metric, around: Interval
) -> dict[str, Any]:
    """Return the row of a difference, in the table's unit, of the first of a pair minus the second."""
    limits = {name: metric.scale * getattr(around, name) for name in ("mean", "low", "high")}
    named = {"dataset": dataset, "pair": " minus ".join(map(model_title, pair)), "data": evidence.data(dataset)}
    return {**named, "metric": f"gap_{metric.key}", **limits, "n": around.n}


def with_printed(rows: list[dict[str, Any]], sources: Sources) -> list[dict[str, Any]]:
    """Return rows, those of CLaI's models with the paper's values in table 1."""
    for row in rows:
        if row["model"] in CLAI:
            row["printed"] = printed_value(sources.printed_values, "table1", row["dataset"], row["metric"])[0]
    return rows


def majority_rows(evidence: Evidence, dataset: str) -> list[dict[str, Any]]:
    """Return accuracy and recall of always naming the class most frequent in training; they differ for two classes alone."""
    if not evidence.has(dataset):
        return []
    splits = evidence.description(dataset)["splits"]
    train, test = (splits[name]["counts"] for name in ("train", "test"))
    named = train.index(max(train))
    accuracy = 100 * test[named] / sum(test)
    recall = accuracy if len(test) > 2 else 100 * named  # of the positive class
    shared = {"dataset": dataset, "model": MAJORITY, "n": 1, "data": evidence.data(dataset)}
    return [shared | {"metric": "accuracy", "mean": accuracy}, shared | {"metric": "recall", "mean": recall}]


table1_tex = layout.results(
    Block(TABLE1_METRICS),
    Block(GAP_METRICS, {"pair": r"Difference [95 \% interval]"}, limits=True),
    label="tab:results",
)


def table2_frame(sources: Sources) -> pd.DataFrame:
    """Return the paper's class indices, labels and colours: columns dataset, index, label, colour."""
    rows = [
        {"dataset": key, "index": index, "label": label, "colour": CLASS_COLOURS[index]}
        for key, dataset in sources.settings["datasets"].items()
        for index, label in enumerate(dataset.get("class_labels", []))
    ]
    return pd.DataFrame(rows)


def table2_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table 2, a block of columns for each dataset."""
    datasets = list(frame["dataset"].unique())
    titles = [layout.escape(sources.settings["datasets"][key]["title"]) for key in datasets]
    heads = [rf"\multicolumn{{3}}{{c}}{{{title}}}" for title in titles]
    trims = ["r", *["lr"] * (len(heads) - 2), "l"]
    rules = " ".join(rf"\cmidrule({trim}){{{3 * i + 1}-{3 * i + 3}}}" for i, trim in enumerate(trims))
    head = layout.row(*heads) + rules + "\n" + layout.row(*["Index", "Label", "Colour"] * len(heads)) + "\\midrule\n"
    swatches = r"\textcolor[HTML]{" + frame["colour"].str.lstrip("#").str.upper() + r"}{\rule{0.8em}{0.8em}}"
    shown = frame.assign(number=frame["index"].astype(str), label=frame["label"].map(layout.escape), colour=swatches)
    wide = shown.pivot_table(index="index", columns="dataset", aggfunc="first", fill_value="")
    order = [(column, key) for key in datasets for column in ("number", "label", "colour")]
    body = "".join(layout.row(*cells) for cells in wide[order].itertuples(index=False))
    return layout.floats(head, [body], "clc" * len(heads), text, "tab:class_mappings", sources.evidence.miniature)


def table3_frame(sources: Sources) -> pd.DataFrame:
    """Return results by cohort or study, model and metric; `printed_sd` is the spread that the paper prints.

    Rows without a model have the difference of two as `pair`, with its 95 % interval over folds: those of a study, and of the
    mixture on the study's cohort.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        study = "cells" in evidence.expected[dataset]
        always = list(evidence.cells(dataset).values()) if study else TABLE3_MODELS
        of_models = layout.result_rows(evidence, dataset, layout.models_of(evidence, dataset, always), TABLE3_METRICS)
        # The printed values stand in rows of the paper's cohort alone: no other one compares with them.
        for entry in [] if study or "substitute_for" in evidence.expected[dataset] else of_models:
            printed = printed_value(sources.printed_values, "table3", entry["model"], entry["metric"])
            entry["printed"], entry["printed_sd"] = printed
        rows += [*of_models, *(_sepsis_gap_rows(evidence, dataset) if study and evidence.has(dataset) else [])]
    return pd.DataFrame(rows, columns=[*layout.RESULT_COLUMNS, "printed_sd", "pair", "low", "high"])


def _sepsis_gap_rows(evidence: Evidence, study: str) -> list[dict[str, Any]]:
    ours = evidence.metrics(study).replace({"cell": {cell: model for model, cell in evidence.cells(study).items()}})
    others = evidence.metrics(evidence.dataset_of(study)).query("cell not in @CLAI")
    measured = pd.concat([ours, others])
    return [
        _gap_row(evidence, study, pair, metric, interval(gap(measured, metric.key, *pair)))
        for pair, metric in product(SEPSIS_PAIRS, TABLE3_METRICS)
    ]


def table3_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table 3: the printed values first, then a group of rows for each cohort."""
    printed = frame[frame["printed"].notna()].groupby("model", sort=False)
    lines = [
        layout.indented(model_title(str(model)), *layout.cells(part, TABLE3_METRICS, "printed", "printed_sd"))
        for model, part in printed
    ]
    gaps = Block(SEPSIS_GAP_METRICS, {"pair": r"Difference [95 \% interval]"}, limits=True)
    return layout.results_tex(
        frame, sources, text, [Block(TABLE3_METRICS), gaps], "tab:detection_UQ_experiments",
        title=lambda evidence, dataset: f"{evidence.title(dataset)}, this work",
        first=[layout.group("MIMIC-IV, the paper's values", len(TABLE3_METRICS) + 1, lines)],
    )  # fmt: skip


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
        rows += layout.result_rows(evidence, dataset, layout.models_of(evidence, dataset), list(metrics.values()))
        rows += majority_rows(evidence, dataset) if "accuracy" in measured else []
    return pd.DataFrame(rows, columns=[column for column in layout.RESULT_COLUMNS if column != "printed"])


accuracy_tex = layout.results(Block(TABLE1_METRICS), Block(BINARY_METRICS), label="tab:accuracy")
