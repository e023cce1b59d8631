"""Table S15: CLaI-M against CLaI-C in intensive care, under every reading of the loss, the class shares and the decision rule."""

from typing import Any

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.labels import SHARES
from replication.report.latex import escape, floating, group, row
from replication.report.statistics import interval, paired_difference, replicates, spread
from replication.report.tables.parts import Metric, Sources, number
from replication.runs.models import CLAI, MODELS

METRICS = [
    Metric("auroc", "AUROC"), Metric("auprc", "AUPRC"), Metric("f1", "F1"), Metric("ece", "ECE"),
    Metric("ece_calibrated", "calibrated", decimals=5), Metric("ece_positive_rate", "Positive-rate ECE"),
    Metric("ece_positive_rate_calibrated", "calibrated", decimals=5),
]  # fmt: skip
RULES = ("printed", "parzen")
PRINTED_LOSS = {"challenge2019": "printed-loss", "challenge2019-septic": "printed-loss-septic"}
"""By cohort the study that trains its models with the printed loss, which weights all pairs alike."""
CELLS = {"clai-m": "full_unweighted", "clai-c": "cosine_unweighted"}
"""The cells of these studies by model."""
COLUMNS = ["dataset", "cohort", "loss", "shares", "rule", "model", "metric", "mean", "sd", "n", "low", "high", "data"]


def readings_frame(sources: Sources) -> pd.DataFrame:
    """Return the figures of both kernels by cohort and reading, as fractions, with limits low and high of their 95 % intervals.

    `dataset` is the dataset or study whose runs were measured. Below the two models stands their paired difference, CLaI-M
    minus CLaI-C, without a spread.
    """
    rows: list[dict[str, Any]] = []
    for cohort in cohorts(sources.evidence):
        own = ("balanced", cohort, {model: model for model in CLAI})
        for loss, dataset, names in (own, ("printed", PRINTED_LOSS.get(cohort, ""), CELLS)):
            if sources.evidence.has(dataset):
                rows += _rows(sources.evidence, cohort, loss, dataset, names)
    return pd.DataFrame(rows, columns=COLUMNS)


def cohorts(evidence: Evidence) -> list[str]:
    """Return the cohorts at hand, in the order of tables."""
    return [key for key in evidence.at_hand() if key not in PRINTED_LOSS.values()]


def _rows(evidence: Evidence, cohort: str, loss: str, dataset: str, names: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for shares in SHARES:
        for rule in RULES:
            measured = evidence.metrics(dataset, rule=rule, shares=shares)
            reading = {"dataset": dataset, "cohort": cohort, "loss": loss, "shares": shares, "rule": rule}
            for metric in METRICS:
                of_metric = measured[measured["metric"] == metric.key]
                for name in names.values():
                    values = replicates(of_metric[of_metric["model"] == name])
                    mean, sd, n = spread(values)
                    around = interval(values)
                    rows.append(
                        reading
                        | {"model": name, "metric": metric.key, "mean": mean, "sd": sd, "n": n}
                        | {"low": around.low, "high": around.high, "data": evidence.data(dataset)}
                    )
                gap = paired_difference(measured, metric.key, names["clai-m"], names["clai-c"])
                rows.append(
                    reading
                    | {
                        "model": difference(names),
                        "metric": metric.key,
                        "mean": gap.mean,
                        "sd": float("nan"),
                        "n": gap.n,
                    }
                    | {"low": gap.low, "high": gap.high, "data": evidence.data(dataset)}
                )
    return rows


def difference(names: dict[str, str]) -> str:
    """Return the key of the rows that hold the first model minus the second."""
    return f"{names['clai-m']} minus {names['clai-c']}"


def readings_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S15, in one part a cohort; a star marks a difference whose interval excludes 0."""
    evidence = sources.evidence
    titles = {names[model]: MODELS[model].title for names in ({m: m for m in CLAI}, CELLS) for model in CLAI}
    heads = ["Loss", "Shares", "Rule", "Model", *(metric.title for metric in METRICS)]
    parts: list[str] = []
    for cohort in cohorts(evidence):
        lines = []
        for key, of_reading in frame[frame["cohort"] == cohort].groupby(["loss", "shares", "rule"], sort=False):
            names = [str(name) for name in key]
            for model, part in of_reading.groupby("model", sort=False):
                numbers = [_cell(part[part["metric"] == metric.key].iloc[0], metric) for metric in METRICS]
                lines.append(row(*names, escape(titles.get(str(model), "Difference")), *numbers))
                names = [""] * len(names)
        body = "\\toprule\n" + row(*heads) + group(evidence.title(cohort), len(heads), lines) + "\\bottomrule\n"
        columns = "llll" + "c" * len(METRICS)
        continued = "(continued)" if parts else ""
        parts.append(floating(body, columns, text, "tab:readings", evidence.miniature, continued))
    return "\n".join(parts)


def _cell(values: pd.Series, metric: Metric) -> str:
    """Return a mean without its spread; a star behind a difference whose interval excludes 0."""
    text = number(values["mean"], float("nan"), metric.digits)
    differs = " minus " in values["model"] and (values["low"] > 0 or values["high"] < 0)
    return f"{text}$^*$" if differs else text
