"""Evidence computed again from published predictions: metrics of each run, intervals, decision curves and comparisons.

The functions are those that made the evidence. Settings that decide a file, such as the number of draws, come from that file.
What needs more than predictions stays as published: other decision rules of a vote, and what is fitted on validation samples.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from replication.experiments.predictions import Predictions, Samples, load_predictions, load_samples
from replication.metrics.bootstrap import Fold, net_benefit, patient_intervals
from replication.metrics.challenge_utility import HourlyUtility, hourly_utility, utility_score
from replication.metrics.classification import binary_metrics, sample_metrics
from replication.metrics.comparisons import Predicted, compare_models
from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, Evidence
from replication.runs.columns import COLUMNS
from replication.runs.gather import gather
from replication.runs.identity import RunId
from replication.runs.outputs import SAMPLES, predictions_of

NOT_RECOMPUTED = ("f1_validation", "temperature", "standard_error")
"""Metrics that need validation samples, or the references of a vote."""


class Tested(NamedTuple):
    """The test samples of a run: labels, groups and, if any, recordings (N,), and the utilities of alarms, if there are any."""

    y: np.ndarray
    group: np.ndarray
    utility: HourlyUtility | None
    recording: np.ndarray | None = None


def recompute(evidence: Evidence, dataset: str) -> dict[str, pd.DataFrame]:
    """Return evidence files of a dataset, by name, computed from its predictions; `metrics.csv` has the recomputed rows alone.

    Raises:
        InputError: a file is damaged, or does not belong to the samples.
    """
    description = evidence.description(dataset)
    classes, before = len(description["classes"]), description.get("label_hours_before")
    samples = load_samples(evidence.path(dataset, SAMPLES), classes)
    runs = dict(_predicted(evidence, dataset, samples, classes))
    tested = {run.fold: _tested(samples, run.fold, before) for run in runs}
    published = evidence.frame(dataset, "metrics.csv")
    voting = set(published.loc[published["rule"] == PRINTED_RULE, "model"])
    tables = {}
    for run, predictions in runs.items():
        measured = measure(tested[run.fold], predictions)
        rule, shares = (PRINTED_RULE, PRINTED_SHARES) if run.model in voting else ("", "")
        tables[str(run)] = pd.DataFrame(
            {"rule": rule, "shares": shares, "metric": list(measured), "value": list(measured.values())}
        )
    found = {"metrics.csv": gather(tables, COLUMNS["metrics.csv"])}
    if samples.fold is None:
        return found | _comparisons(evidence, dataset, samples, runs)
    return found | _of_patients(evidence, dataset, runs, tested)


def _predicted(evidence: Evidence, dataset: str, samples: Samples, classes: int) -> Iterator[tuple[RunId, Predictions]]:
    for model in evidence.frame(dataset, "metrics.csv")["model"].unique():
        path = evidence.path(dataset, predictions_of(model))
        if path.exists():
            for replicate, predictions in load_predictions(path, samples, classes):
                yield RunId.parse(f"{dataset}/{model}/{replicate}"), predictions


def _tested(samples: Samples, fold: int | None, before: float | None) -> Tested:
    rows = samples.rows(fold)
    y, utility = samples.y[rows], None
    recording = None if samples.recording is None else samples.recording[rows]
    if recording is not None and before is not None:
        utility = hourly_utility(y, recording, before)
    return Tested(y, samples.group[rows], utility, recording)


def measure(tested: Tested, predictions: Predictions) -> dict[str, float]:
    """Return the metrics of a run, without `NOT_RECOMPUTED`."""
    if predictions.score.ndim == 2:
        return sample_metrics(tested.y, predictions.probability, predictions.calibrated)
    metrics = binary_metrics(
        tested.y,
        predictions.score,
        predictions.probability,
        predictions.calibrated,
        threshold=0.0,
        threshold_validation=float("nan"),
    )
    if tested.recording is None:
        metrics = sample_metrics(tested.y, predictions.probability, predictions.calibrated) | metrics
    if tested.utility is not None and predictions.alarm is not None:
        metrics["utility"] = utility_score(tested.utility, predictions.alarm)
    return {name: value for name, value in metrics.items() if name not in NOT_RECOMPUTED}


def _comparisons(
    evidence: Evidence, dataset: str, samples: Samples, runs: dict[RunId, Predictions]
) -> dict[str, pd.DataFrame]:
    """Return the differences between models, as `compare_models` makes them; nothing where none are published."""
    published = evidence.frame(dataset, "comparisons.csv")
    if published.empty:
        return {}
    by_model: dict[str, dict[int, Predicted]] = {}
    for model in dict.fromkeys([*published["model"], *published["other"].dropna()]):
        of_model = {run.seed: part for run, part in runs.items() if run.model == model}
        if of_model:
            by_model[model] = {seed: Predicted(part.probability, part.calibrated) for seed, part in of_model.items()}
    draws = int(published["draws"].iloc[0])
    return {"comparisons.csv": compare_models(samples.y, samples.group, by_model, draws, seed=0)}


def _of_patients(
    evidence: Evidence, dataset: str, runs: dict[RunId, Predictions], tested: dict[int | None, Tested]
) -> dict[str, pd.DataFrame]:
    """Return intervals by patient and decision curves, as `summarise_predictions` makes them."""
    published, curves = evidence.frame(dataset, "intervals.csv"), evidence.frame(dataset, "decision.csv")
    units = sorted({(run.seed, run.fold) for run in runs}, key=lambda unit: (unit[0], unit[1] or 0))
    folds = []
    for seed, number in units:
        of_unit = {run.model: part for run, part in runs.items() if (run.seed, run.fold) == (seed, number)}
        folds.append(
            Fold(
                number=number,
                y=tested[number].y,
                patient=tested[number].group,
                scores={model: part.score for model, part in of_unit.items()},  # type: ignore[misc]
                alarms={model: part.alarm for model, part in of_unit.items() if part.alarm is not None},
                calibrated={model: part.calibrated for model, part in of_unit.items()},  # type: ignore[misc]
                utility=tested[number].utility,
            )
        )
    found = {}
    models = [model for model in dict.fromkeys(published["model"]) if any(model in fold.scores for fold in folds)]
    against = [other for other in published["other"].dropna().unique() if other in models]
    if len(published):
        found["intervals.csv"] = patient_intervals(folds, models, against, int(published["draws"].iloc[0]), seed=0)
    if len(curves):
        thresholds = list(dict.fromkeys(curves["threshold"]))
        benefits = {
            str(run): net_benefit(tested[run.fold].y, part.calibrated, thresholds) for run, part in runs.items()
        }
        found["decision.csv"] = gather(benefits, COLUMNS["decision.csv"])
    return found
