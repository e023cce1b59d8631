"""Table 3, sepsis detection beside the printed values, and tables S6, S9 and S10: all cohorts, models and metrics."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from replication.report.labels import model_title
from replication.report.latex import escape, floating, group, missing_group, row
from replication.report.printed_values import printed_value
from replication.report.tables.parts import RESULT_COLUMNS, Metric, Sources, cells, models_of, result_rows, results_tex
from replication.runs.models import CLAI

PAPERS_COHORT = "mimic-iv"
"""The dataset that the printed values of table 3 belong to. They stand in its rows alone: no other cohort compares with them."""

PREVALENCE = Metric("prevalence", "Positive share")
TABLE3_METRICS = [
    Metric("auroc", "AUROC"), Metric("auprc", "AUPRC"), Metric("f1", "F1"), Metric("ece", "ECE"), PREVALENCE,
]  # fmt: skip
DETECTION_METRICS = [
    Metric("auroc", "AUROC"), Metric("auprc", "AUPRC"), Metric("utility", "Utility"), Metric("f1_validation", "F1"),
]  # fmt: skip
CALIBRATION_METRICS = [
    Metric("ece", "ECE"), Metric("ece_calibrated", "ECE, calibrated", decimals=5),
    Metric("ece_positive_rate", "Positive-rate ECE"),
    Metric("ece_positive_rate_calibrated", "Positive-rate ECE, calibrated", decimals=5),
]  # fmt: skip
BRIER_METRICS = [
    Metric("brier", "Brier score"), Metric("brier_reliability", "Reliability", decimals=5),
    Metric("brier_resolution", "Resolution", decimals=5), Metric("brier_calibrated", "Brier score, calibrated"), PREVALENCE,
]  # fmt: skip
TABLE3_MODELS = [*CLAI, "student-t-mixture"]


def table3_frame(sources: Sources) -> pd.DataFrame:
    """Return results by cohort, model and metric; `printed_sd` is the spread that the paper prints."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        further = [model for model in models_of(evidence, dataset) if model not in TABLE3_MODELS]
        rows += result_rows(evidence, dataset, TABLE3_MODELS + further, TABLE3_METRICS)
    frame = pd.DataFrame(rows, columns=[*RESULT_COLUMNS, "printed_sd"])
    for index in frame.index[frame["dataset"] == PAPERS_COHORT]:
        model, metric = frame.loc[index, ["model", "metric"]]
        frame.loc[index, ["printed", "printed_sd"]] = printed_value(
            sources.printed_values, "table3", str(model), str(metric)
        )
    return frame.astype({"printed": float, "printed_sd": float})


def table3_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table 3: the printed values first, then a group of rows for each cohort."""
    evidence, span = sources.evidence, len(TABLE3_METRICS) + 1
    printed = frame[frame["printed"].notna()]
    lines = [
        row(rf"\quad {escape(model_title(str(model)))}", *cells(part, TABLE3_METRICS, "printed", "printed_sd"))
        for model, part in printed.groupby("model", sort=False)
    ]
    body = "\\toprule\n" + row("Model", *(metric.title for metric in TABLE3_METRICS))
    body += group("MIMIC-IV, the paper's values", span, lines)
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            body += missing_group(f"{evidence.title(dataset)}, this work", span, evidence.not_run(dataset))
            continue
        lines = [
            row(rf"\quad {escape(model_title(str(model)))}", *cells(part, TABLE3_METRICS))
            for model, part in frame[frame["dataset"] == dataset].groupby("model", sort=False)
        ]
        body += group(f"{evidence.title(dataset)}, this work", span, lines)
    columns = "l" + "c" * len(TABLE3_METRICS)
    return floating(body + "\\bottomrule\n", columns, text, "tab:detection_UQ_experiments", evidence.miniature)


def detection_frame(sources: Sources) -> pd.DataFrame:
    """Return how well all models tell hours apart, by cohort, with limits low and high of the 95 % interval by patient."""
    evidence = sources.evidence
    frame = _all_models(sources, DETECTION_METRICS)
    drawn = [evidence.frame(dataset, "intervals.csv").assign(dataset=dataset) for dataset in evidence.at_hand()]
    if not drawn:
        return frame.assign(low=[], high=[])
    limits = pd.concat(drawn)
    of_models = limits[limits["other"].isna()][["dataset", "model", "metric", "low", "high"]]
    return frame.merge(of_models, how="left", on=["dataset", "model", "metric"])


def detection_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S6."""
    return results_tex(frame, sources.evidence, DETECTION_METRICS, model_title, text, "tab:sepsis")


def calibration_frame(sources: Sources) -> pd.DataFrame:
    """Return calibration errors of all models, by cohort."""
    return _all_models(sources, CALIBRATION_METRICS)


def calibration_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S9."""
    return results_tex(frame, sources.evidence, CALIBRATION_METRICS, model_title, text, "tab:sepsis_calibration")


def brier_frame(sources: Sources) -> pd.DataFrame:
    """Return Brier scores of all models and their parts, by cohort."""
    return _all_models(sources, BRIER_METRICS)


def brier_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S10."""
    return results_tex(frame, sources.evidence, BRIER_METRICS, model_title, text, "tab:sepsis_brier")


def _all_models(sources: Sources, metrics: Sequence[Metric]) -> pd.DataFrame:
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.at_hand():
        rows += result_rows(evidence, dataset, models_of(evidence, dataset), metrics)
    return pd.DataFrame(rows, columns=[name for name in RESULT_COLUMNS if name != "printed"])
