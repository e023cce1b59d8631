"""Published numbers computed again: metrics and intervals from predictions, and tables and verdicts from these.

Published predictions are rounded (`experiments.predictions`), which leaves what depends on classes and alarms alone exact.
The tolerance of every other number is half a unit of the last digit that tables print, of the limits of intervals a whole one.
What needs more than predictions stays as published: other decision rules of a vote, and what is fitted on validation samples.
A comparison is a frame with `COLUMNS`, a row for each number.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from replication.experiments.predictions import Samples, by_model, fold_of, folds_of, load_predictions, load_samples
from replication.metrics.bootstrap import Fold, Predictions, patient_intervals
from replication.metrics.challenge_utility import utility_score
from replication.metrics.classification import binary_metrics, sample_metrics
from replication.metrics.comparisons import compare_models
from replication.report.claims.page import verdict_of
from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, Evidence, printed_reading
from replication.report.tables.paper import TABLE1_METRICS
from replication.report.tables.supplement import FURTHER_METRICS
from replication.runs.run import COLUMNS as FILES
from replication.runs.run import SAMPLES, RunId, gather, predictions_of

COLUMNS = ["source", "name", "published", "here", "agreement"]
"""Where a number stands, such as `table1` or `pathmnist/metrics.csv`; which one it is; both values; an `Agreement`."""
EXACT = ("accuracy", "precision", "recall", "f1", "macro_f1", "kappa", "roc_auc_decisions", "utility", "prevalence")
"""Metrics that rounded predictions leave as they are."""
TOLERANCE, TOLERANCES = 5e-4, {"roc_auc": 5e-5}
"""Tolerance of other metrics: half a unit of the last digit that tables print, which is .001, or .01 % of the ROC-AUC."""
OF_LIMITS = 2
"""Factor for the limits of an interval: a limit is one of the ordered draws, and rounding may choose another."""
P_TOLERANCE = 5e-3
"""Tolerance of p-values."""
DIGITS = 1e-5
"""Relative tolerance: evidence and tables have six significant digits."""
ACROSS_PRECISIONS = 1e-3
"""Tolerance of the accuracy of a published model whose weights, or the computation here, are not in the precision of its run."""
PERCENT = {metric.key for metric in (*TABLE1_METRICS, *FURTHER_METRICS) if metric.percent}
KEYS, VALUES = ["cell", "model", "other", "seed", "fold", "rule", "shares", "metric"], ["value", "low", "high", "p"]
"""Columns that tell the rows of an evidence file apart, and those that are compared."""
EXPECTED = ("accuracy", "auroc")
"""Metrics that every run has, by which a run without predictions is found."""


class Agreement(StrEnum):
    """How a published number compares with the one computed here."""

    EQUAL = "equal"
    WITHIN = "within tolerance"
    DIFFERS = "differs"
    NOT_PUBLISHED = "no predictions published"


def recompute(evidence: Evidence, dataset: str) -> dict[str, pd.DataFrame]:
    """Return evidence files of a dataset, by name, computed from its predictions; `metrics.csv` has the recomputed rows alone.

    The functions are those that made the evidence; the number of draws comes from the published file.

    Raises:
        InputError: a file is damaged, or does not belong to the samples.
    """
    description, published = evidence.description(dataset), evidence.frame(dataset, "metrics.csv")
    classes = len(description["classes"])
    samples = load_samples(evidence.path(dataset, SAMPLES))
    runs = {
        RunId.parse(f"{dataset}/{model}/{replicate}"): predictions
        for model in published["cell"].unique()
        if (path := evidence.path(dataset, predictions_of(model))).exists()
        for replicate, predictions in load_predictions(path, samples, classes)
    }
    before = description.get("label_hours_before")
    folds = {run.fold: fold_of(samples, run.fold, before) for run in runs}
    voting = set(published.loc[published["rule"] == PRINTED_RULE, "cell"])
    tables = {}
    for run, predictions in runs.items():
        metrics = measure(folds[run.fold], predictions, recordings=samples.recording is not None)
        rule, shares = (PRINTED_RULE, PRINTED_SHARES) if run.cell in voting else ("", "")
        rows = {"rule": rule, "shares": shares, "metric": list(metrics), "value": list(metrics.values())}
        tables[str(run)] = pd.DataFrame(rows)
    found = {"metrics.csv": gather(tables, FILES["metrics.csv"])}
    if samples.fold is None:
        return found | _comparisons(evidence.frame(dataset, "comparisons.csv"), samples, runs)
    return found | _of_patients(evidence.frame(dataset, "intervals.csv"), folds_of(samples, runs, before))


def measure(tested: Fold, predictions: Predictions, recordings: bool) -> dict[str, float]:
    """Return the metrics of a run that need no validation samples."""
    probability, calibrated = predictions.probability, predictions.calibrated
    if predictions.score.ndim == 2:
        return sample_metrics(tested.y, probability, calibrated)
    of_two = binary_metrics(tested.y, predictions.score, probability, calibrated, threshold=np.nan)
    metrics = of_two if recordings else sample_metrics(tested.y, probability, calibrated) | of_two
    if tested.utility is not None and predictions.alarm is not None:
        metrics["utility"] = utility_score(tested.utility, predictions.alarm)
    return {name: value for name, value in metrics.items() if name != "f1_validation"}


def _comparisons(
    published: pd.DataFrame, samples: Samples, runs: Mapping[RunId, Predictions]
) -> dict[str, pd.DataFrame]:
    """Return the differences between models; nothing where none are published."""
    compared = by_model(runs, [*published["model"], *published["other"].dropna()])
    if not compared:
        return {}
    return {"comparisons.csv": compare_models(samples.y, samples.group, compared, int(published["draws"].iloc[0]))}


def _of_patients(published: pd.DataFrame, folds: Sequence[Fold]) -> dict[str, pd.DataFrame]:
    """Return intervals by patient; nothing where none are published."""
    if published.empty:
        return {}
    there = {model for fold in folds for model in fold.predictions}
    models = [model for model in published["model"].unique() if model in there]
    return {"intervals.csv": patient_intervals(folds, models, int(published["draws"].iloc[0]))}


def compare(published: float, here: float, tolerance: float) -> Agreement:
    """Compare two numbers; NaN agrees with NaN alone."""
    if np.isclose(here, published, rtol=DIGITS, atol=0, equal_nan=True):
        return Agreement.EQUAL
    return Agreement.WITHIN if abs(published - here) <= tolerance else Agreement.DIFFERS


def tolerance_of(metric: str, value: str) -> float:
    """Return the tolerance of a column of values, in the unit of evidence, and of tables for their columns mean and sd."""
    if value in ("p", "n"):
        return P_TOLERANCE if value == "p" else 0.0
    tolerance = 0.0 if metric in EXACT else TOLERANCES.get(metric, TOLERANCE)
    if value in ("mean", "sd") and metric in PERCENT:
        return 100 * tolerance
    return tolerance * (OF_LIMITS if value in ("low", "high") else 1)


def numbers_of(
    source: str, published: pd.DataFrame, here: pd.DataFrame, keys: Sequence[str], values: Sequence[str]
) -> pd.DataFrame:
    """Compare the columns `values` of two frames; a row that one of them lacks differs."""
    sides = []
    for frame in (published, here):
        named = frame[[*keys, *values]].astype(dict.fromkeys(keys, object)).fillna(dict.fromkeys(keys, ""))
        sides.append(named.melt(keys, var_name="column", value_name="number"))
    rows = sides[0].merge(sides[1], "outer", [*keys, "column"], suffixes=("_published", "_here"), indicator=True)
    numbers = []
    for entry in rows.astype(object).to_dict("records"):
        column, one, other = entry["column"], entry["number_published"], entry["number_here"]
        name = ", ".join(
            f"{entry[key]:g}" if isinstance(entry[key], float) else str(entry[key]) for key in keys if entry[key] != ""
        )
        texts, agreement = (f"{one:.6g}", f"{other:.6g}"), Agreement.DIFFERS
        if entry["_merge"] == "both":
            agreement = compare(float(one), float(other), tolerance_of(entry.get("metric", ""), column))
        else:
            texts = ("there", "missing") if entry["_merge"] == "left_only" else ("missing", "there")
        numbers.append((source, name if len(values) == 1 else f"{name}: {column}", *texts, agreement))
    return pd.DataFrame(numbers, columns=COLUMNS)


def of_dataset(evidence: Evidence, dataset: str) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Recompute a dataset from its predictions.

    Returns:
        The comparison of each number, and the evidence files with recomputed numbers in place of published ones.
    """
    here, published = recompute(evidence, dataset), evidence.frame(dataset, "metrics.csv")
    keys = [name for name in KEYS if name in published]
    both = published.merge(here["metrics.csv"][[*keys, "value"]], "left", keys, suffixes=("", "_here"), indicator=True)
    computed = (both["_merge"] == "both").to_numpy()
    covered = published[computed | (printed_reading(published) & published["metric"].isin(EXPECTED))]
    found = []
    for file, frame in here.items():
        tracked = covered if file == "metrics.csv" else evidence.frame(dataset, file)
        if file == "intervals.csv":  # Differences between models, which older evidence has, are shown nowhere.
            tracked = tracked[tracked["other"].isna()]
        keys, values = ([name for name in names if name in frame] for names in (KEYS, VALUES))
        found.append(numbers_of(f"{dataset}/{file}", tracked, frame, keys, values))
    whole = published.assign(value=np.where(computed, both["value_here"], published["value"]))
    return pd.concat(found), {**here, "metrics.csv": whole[FILES["metrics.csv"]]}


def of_table(name: str, tracked: pd.DataFrame, here: pd.DataFrame, published: Collection[str]) -> pd.DataFrame:
    """Compare mean, deviation and number of runs in a tracked table with those rendered from recomputed evidence.

    Args:
        published: the datasets with published predictions. Rows of other ones follow from the tracked metrics of runs.
    """
    parts = []
    for dataset in dict.fromkeys([*tracked["dataset"], *here["dataset"]]):
        one, other = (frame[(frame["dataset"] == dataset) & frame["model"].notna()] for frame in (tracked, here))
        numbers = numbers_of(name, one, other, ["dataset", "model", "metric"], ["mean", "sd", "n"])
        if dataset not in published:
            agree = numbers["agreement"] != Agreement.DIFFERS
            numbers.loc[agree, "agreement"] = Agreement.NOT_PUBLISHED
        parts.append(numbers)
    return pd.concat(parts)


def of_claims(tracked: Iterable[Mapping[str, Any]], here: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Compare the verdicts of claims.json with those by recomputed evidence."""
    verdicts, judged = ({claim["id"]: verdict_of(claim) for claim in claims} for claims in (tracked, here))
    rows = []
    for name in dict.fromkeys([*verdicts, *judged]):
        one, other = (side.get(name, "missing") for side in (verdicts, judged))
        rows.append(("claims", f"verdict {name}", one, other, Agreement.EQUAL if one == other else Agreement.DIFFERS))
    return pd.DataFrame(rows, columns=COLUMNS)


def of_model(run: RunId, published: pd.DataFrame, here: pd.DataFrame, same_precision: bool) -> pd.DataFrame:
    """Compare the accuracy (AUROC for recordings) of a published model with that of an evaluation here.

    published: metrics of all runs in the main reading. here: those of the evaluation. Both have the columns of metrics.csv.
    """
    metric = "accuracy" if "accuracy" in set(here["metric"]) else "auroc"
    fold = published["fold"].isna() if run.fold is None else published["fold"] == run.fold
    rows = published[(published["cell"] == run.cell) & (published["seed"] == run.seed) & fold]
    main = here[printed_reading(here)]
    one, other = (float(frame.loc[frame["metric"] == metric, "value"].iloc[0]) for frame in (rows, main))
    agreement = compare(one, other, 0.0 if same_precision else ACROSS_PRECISIONS)
    return pd.DataFrame([("models", f"{run}, {metric}", f"{one:.6g}", f"{other:.6g}", agreement)], columns=COLUMNS)


def summary(numbers: pd.DataFrame) -> str:
    """Return every number of tables, verdicts and models as lines, and of other sources counts and what differs."""
    single = numbers[~numbers["source"].str.endswith(".csv") | (numbers["agreement"] == Agreement.DIFFERS)]
    counts = pd.crosstab(numbers["source"], numbers["agreement"])
    different = int((numbers["agreement"] == Agreement.DIFFERS).sum())
    return f"{single.to_string(index=False)}\n\n{counts.to_string()}\n{len(numbers)} numbers, {different} of which differ.\n"
