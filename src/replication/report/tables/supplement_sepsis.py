"""Supplementary tables of intensive care: all cohorts, models and metrics, and every reading of the paper."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import SHARES
from replication.report.statistics import replicates
from replication.report.tables.layout import Sources, cells, chosen, escape, group, grouped, results_frame, row, summary
from replication.runs.models import CLAI, MODELS

DETECTION_METRICS = chosen("auroc auprc utility f1_validation")
CALIBRATION_METRICS = chosen("ece ece_calibrated ece_positive_rate ece_positive_rate_calibrated")
BRIER_METRICS = chosen("brier brier_reliability brier_resolution brier_calibrated prevalence")
TRUNK_METRICS = chosen("auroc auprc ece")
READING_METRICS = chosen(
    "auroc auprc f1 ece ece_calibrated ece_positive_rate ece_positive_rate_calibrated",
    ece_calibrated="calibrated",
    ece_positive_rate_calibrated="calibrated",
)
RULES = ("printed", "parzen")
PRINTED_LOSS = {"challenge2019": "printed-loss", "challenge2019-septic": "printed-loss-septic"}
"""By cohort the study that trains its models with the printed loss, which weights all pairs alike."""
CELLS = {"clai-m": "full_unweighted", "clai-c": "cosine_unweighted"}
"""The cells of these studies by model."""
READING_COLUMNS = [
    "dataset", "cohort", "loss", "shares", "rule", "model", "metric", "mean", "sd", "n", "low", "high", "data",
]  # fmt: skip


def detection_frame(sources: Sources) -> pd.DataFrame:
    """Return how well all models tell hours apart, by cohort, with limits low and high of the 95 % interval by patient."""
    evidence = sources.evidence
    frame = results_frame(sources, DETECTION_METRICS)
    drawn = [evidence.frame(dataset, "intervals.csv").assign(dataset=dataset) for dataset in evidence.at_hand()]
    if not drawn:
        return frame.assign(low=[], high=[])
    limits = pd.concat(drawn)
    of_models = limits[limits["other"].isna()][["dataset", "model", "metric", "low", "high"]]
    return frame.merge(of_models, how="left", on=["dataset", "model", "metric"])


def readings_frame(sources: Sources) -> pd.DataFrame:
    """Return the figures of both kernels by cohort and reading, as fractions, with limits low and high of their 95 % intervals.

    `dataset` is the dataset or study whose runs were measured. Below the two models stands their paired difference, CLaI-M
    minus CLaI-C, without a spread.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for cohort in [key for key in evidence.at_hand() if key not in PRINTED_LOSS.values()]:
        for loss, dataset, names in (
            ("balanced", cohort, {model: model for model in CLAI}),
            ("printed", PRINTED_LOSS.get(cohort, ""), CELLS),
        ):
            for shares in SHARES if evidence.has(dataset) else ():
                for rule in RULES:
                    reading = {"cohort": cohort, "loss": loss, "shares": shares, "rule": rule}
                    rows += [reading | measured for measured in _reading(evidence, dataset, names, rule, shares)]
    return pd.DataFrame(rows, columns=READING_COLUMNS)


def _reading(
    evidence: Evidence, dataset: str, names: Mapping[str, str], rule: str, shares: str
) -> list[dict[str, Any]]:
    """Return the rows of one reading: for each metric CLaI-M, CLaI-C and their difference."""
    measured = evidence.metrics(dataset, rule=rule, shares=shares)
    m, c = names["clai-m"], names["clai-c"]
    rows = []
    for metric in READING_METRICS:
        of_metric = measured[measured["metric"] == metric.key]
        values = {name: replicates(of_metric[of_metric["model"] == name]) for name in (m, c)}
        found = {name: summary(of_model) for name, of_model in values.items()}
        found[f"{m} minus {c}"] = summary((values[m] - values[c]).dropna()) | {"sd": np.nan}
        shared = {"dataset": dataset, "metric": metric.key, "data": evidence.data(dataset)}
        rows += [shared | {"model": name} | numbers for name, numbers in found.items()]
    return rows


def readings_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S15, in one part a cohort; a star marks a difference whose interval excludes 0."""
    evidence = sources.evidence
    titles = {names[model]: MODELS[model].title for names in ({m: m for m in CLAI}, CELLS) for model in CLAI}
    heads = ["Loss", "Shares", "Rule", "Model", *(metric.title for metric in READING_METRICS)]
    groups = []
    for cohort, of_cohort in frame.groupby("cohort", sort=False):
        lines = []
        for key, of_reading in of_cohort.groupby(["loss", "shares", "rule"], sort=False):
            names = [str(name) for name in key]
            for model, part in of_reading.groupby("model", sort=False):
                numbers = _starred(part, cells(part, READING_METRICS, sd=None))
                lines.append(row(*names, escape(titles.get(str(model), "Difference")), *numbers))
                names = [""] * len(names)
        groups.append(group(evidence.title(str(cohort)), len(heads), lines))
    columns = "llll" + "c" * len(READING_METRICS)
    return grouped(row(*heads), groups, columns, text, "tab:readings", evidence.miniature, height=2)


def _starred(part: pd.DataFrame, texts: list[str]) -> list[str]:
    """Return the cells of a model, with a star behind each difference whose interval excludes 0."""
    differs = part["model"].str.contains(" minus ") & ((part["low"] > 0) | (part["high"] < 0))
    return [f"{text}$^*$" if star else text for text, star in zip(texts, differs, strict=True)]
