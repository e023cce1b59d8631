"""Pieces that tables share: metrics as columns, results as rows of a tidy frame, numbers as cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence
from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.statistics import replicates, spread
from replication.runs.models import MODELS


@dataclass(frozen=True)
class Metric:
    """A metric as a column of a table.

    Args:
        key: its name in the evidence.
        percent: whether tables show it in per cent, not as a fraction.
        decimals: digits behind the point of what is not in per cent: 5 where values are mostly below 0.001.
    """

    key: str
    title: str
    percent: bool = False
    decimals: int = 3

    @property
    def scale(self) -> float:
        """Factor from the evidence, where all metrics are fractions, to the table's unit."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Digits behind the point."""
        return 2 if self.percent else self.decimals


@dataclass(frozen=True)
class Sources:
    """What tables are made of.

    Evidence, the values that the paper prints and that others report, and for table S1 the open choices and the settings.
    """

    evidence: Evidence
    printed_values: pd.DataFrame
    reported_values: pd.DataFrame
    choices: pd.DataFrame
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A rendered table: its tidy frame, LaTeX source, full caption and the records of the runs behind it."""

    frame: pd.DataFrame
    tex: str
    caption: str
    runs: list[dict[str, Any]]


RESULT_COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "printed", "data"]


def result_rows(
    evidence: Evidence,
    dataset: str,
    models: Iterable[str],
    metrics: Sequence[Metric],
    printed: Callable[[str, str], float] = lambda model, metric: float("nan"),
) -> list[dict[str, Any]]:
    """Return rows with the columns `RESULT_COLUMNS`, one for each model and metric of a dataset.

    mean and sd are in the table's unit; n is the number of seeds, or of folds where there are any, and 0 for what was not run.

    Args:
        printed: gives the value that the paper prints for a model and a metric, nan where it prints none.
    """
    measured = evidence.metrics(dataset)
    rows = []
    for model in models:
        for metric in metrics:
            part = measured[(measured["model"] == model) & (measured["metric"] == metric.key)]
            mean, sd, n = spread(replicates(part) * metric.scale)
            rows.append({
                "dataset": dataset, "model": model, "metric": metric.key, "mean": mean, "sd": sd, "n": n,
                "printed": printed(model, metric.key), "data": evidence.data(dataset),
            })  # fmt: skip
    return rows


def results_tex(
    frame: pd.DataFrame,
    evidence: Evidence,
    metrics: Sequence[Metric],
    title: Callable[[str], str],
    text: str,
    label: str,
) -> str:
    """Return a table of results: datasets as groups, models as rows, metrics as columns.

    Args:
        frame: columns dataset, model, metric, mean, sd; low and high, where there are any, are shown as an interval.
        title: gives the name of a model.
    """
    groups: list[str] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            groups.append(missing_group(evidence.title(dataset), len(metrics) + 1, evidence.not_run(dataset)))
            continue
        models = frame[frame["dataset"] == dataset].groupby("model", sort=False)
        lines = [
            row(rf"\quad {escape(title(str(model)))}", *cells(part, metrics, limits="low" in part))
            for model, part in models
        ]
        groups.append(group(evidence.title(dataset), len(metrics) + 1, lines))
    head = row("Model", *(metric.title for metric in metrics))
    return grouped(head, groups, "l" + "c" * len(metrics), text, label, evidence.miniature)


def cells(
    rows: pd.DataFrame, metrics: Sequence[Metric], mean: str = "mean", sd: str | None = "sd", limits: bool = False
) -> list[str]:
    """Return one model's numbers as cells, one a metric: `mean (sd) [low, high]`, without the parts that it lacks.

    Args:
        rows: a row for each metric.
        mean, sd: names of the columns to show.
        limits: whether to show the columns low and high.
    """
    by_metric = {str(entry["metric"]): entry for entry in rows.to_dict("records")}
    texts = []
    for metric in metrics:
        if metric.key not in by_metric:
            texts.append("--")
            continue
        values = by_metric[metric.key]
        text = number(values[mean], values[sd] if sd else np.nan, metric.digits)
        if limits and pd.notna(values[mean]) and pd.notna(values["low"]):
            text += f" [{values['low']:.{metric.digits}f}, {values['high']:.{metric.digits}f}]"
        texts.append(text)
    return texts


def number(mean: float, sd: float, digits: int) -> str:
    """Return `mean (sd)`; the mean alone without a spread; a dash without a mean."""
    if pd.isna(mean):
        return "--"
    return f"{mean:.{digits}f}" if pd.isna(sd) else f"{mean:.{digits}f} ({sd:.{digits}f})"


def scientific(value: float) -> str:
    """Return 1.23 x 10^4 as LaTeX; a dash for 0 and nan."""
    if pd.isna(value) or value == 0:
        return "--"
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa}\times 10^{{{int(exponent)}}}$"


def models_of(evidence: Evidence, dataset: str) -> list[str]:
    """Return the models that have metrics on a dataset, in the order of tables."""
    return in_order(evidence.frame(dataset, "metrics.csv")["model"])


def in_order(models: Iterable[str]) -> list[str]:
    """Return each model once, in the order of the registry; others behind, by name."""
    known = list(MODELS)
    return sorted(set(models), key=lambda model: (known.index(model) if model in known else len(known), model))
