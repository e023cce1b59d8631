"""Published numbers computed again: metrics and intervals from predictions, verdicts from these.

Published predictions are rounded (`experiments.predictions`), which leaves what depends on classes alone exact.
Every other number has one of the tolerances below.
What needs more than predictions stays as published: other decision rules of a vote, and what is fitted on validation samples.
A comparison is a frame with `COLUMNS`, a row for each number. That tables and figures follow to the byte from the published
evidence is a test, tests/reproduction.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from replication.experiments.predictions import (
    compare_runs,
    load_predictions,
    load_samples,
    measure_predictions,
)
from replication.report.claims.page import verdict_of
from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, Evidence, printed_reading
from replication.runs.run import COLUMNS as FILES
from replication.runs.run import SAMPLES, RunId, gather, predictions_of

COLUMNS = ["source", "name", "published", "here", "agreement"]
"""Where a number stands, such as `claims` or `pathmnist/metrics.csv`; which one it is; both values; an `Agreement`."""
EXACT = ("accuracy", "precision", "recall", "f1", "macro_f1", "kappa", "roc_auc_decisions", "prevalence")
"""Metrics that rounded predictions leave as they are."""
TOLERANCE = 5e-4
"""Tolerance of other metrics: half a unit of the last digit that most tables print."""
TOLERANCES = {"roc_auc": 5e-5, "log_loss_calibrated": 5e-5} | dict.fromkeys(
    ["ece_calibrated", "ece_positive_rate_calibrated"], 1e-4
)
"""Those of metrics with more digits. Rounding may move samples from a bin to the next, which changes a small ECE by more."""
LIMITS = 2
"""Factor for the limits of an interval: a limit is one of the ordered draws, and rounding may choose another."""
P_TOLERANCE = 5e-3
"""Tolerance of p-values."""
DIGITS = 1e-5
"""Relative tolerance: evidence and tables have six significant digits."""
ACROSS_PRECISIONS = 1e-3
"""Tolerance of the accuracy of a published model whose weights, or the computation here, are not in the precision of its run."""
KEYS = ["cell", "model", "other", "seed", "fold", "rule", "shares", "metric"]
VALUES = ["value", "low", "high", "p", "seeds", "samples"]
"""Columns that tell the rows of an evidence file apart, and those that are compared."""
EXPECTED = ("accuracy", "auroc")
"""Metrics that every run has, by which a run without predictions is found."""


class Agreement(StrEnum):
    """How a published number compares with the one computed here."""

    EQUAL = "equal"
    WITHIN = "within tolerance"
    DIFFERS = "differs"


def recompute(evidence: Evidence, dataset: str) -> dict[str, pd.DataFrame]:
    """Return evidence files of a dataset, by name, computed from its predictions; `metrics.csv` has the recomputed rows alone.

    The functions are those that made the evidence; the number of draws comes from the published file.

    Raises:
        InputError: a file is damaged, or does not belong to the samples.
    """
    description, published = evidence.description(dataset), evidence.frame(dataset, "metrics.csv")
    classes = len(description["classes"])
    samples = load_samples(evidence.path(dataset, SAMPLES))
    # In the order of the metrics; then models that these have lost
    own = evidence.path(dataset, SAMPLES).parent
    files = sorted(path.stem for path in evidence.files if path.parent == own and path.match(predictions_of("*")))
    models = dict.fromkeys([*published["cell"], *(file.removeprefix("predictions_") for file in files)])
    runs = {
        RunId.parse(f"{dataset}/{model}/{replicate}"): predictions
        for model in models
        if (path := evidence.path(dataset, predictions_of(model))).exists()
        for replicate, predictions in load_predictions(path, samples, classes)
    }
    voting = set(published.loc[published["rule"] == PRINTED_RULE, "cell"])
    tables = {}
    for run, predictions in runs.items():
        metrics = measure_predictions(samples.y[samples.rows(run.fold)], predictions, samples.recording is not None)
        rule, shares = (PRINTED_RULE, PRINTED_SHARES) if run.cell in voting else ("", "")
        rows = {"rule": rule, "shares": shares, "metric": list(metrics), "value": list(metrics.values())}
        tables[str(run)] = pd.DataFrame(rows)
    found = {"metrics.csv": gather(tables, FILES["metrics.csv"])}
    tracked = evidence.frame(dataset, "comparisons.csv")
    if not tracked.empty:
        found["comparisons.csv"] = compare_runs(samples, runs, int(tracked["draws"].iloc[0]))
    return found


def compare(published: float, here: float, tolerance: float) -> Agreement:
    """Compare two numbers; NaN agrees with NaN alone."""
    if np.isclose(here, published, rtol=DIGITS, atol=0, equal_nan=True):
        return Agreement.EQUAL
    return Agreement.WITHIN if abs(published - here) <= tolerance else Agreement.DIFFERS


def tolerance_of(metric: str, column: str) -> float:
    """Return the tolerance of a column of an evidence file."""
    if column == "p":
        return P_TOLERANCE
    tolerance = 0.0 if metric in EXACT else TOLERANCES.get(metric, TOLERANCE)
    return tolerance * (LIMITS if column in ("low", "high") else 1)


def compare_files(file: str, published: pd.DataFrame, here: pd.DataFrame) -> pd.DataFrame:
    """Compare two evidence files; a row that one of them lacks differs."""
    keys, values = ([name for name in names if name in here] for names in (KEYS, VALUES))
    sides = [frame.astype(dict.fromkeys(keys, object)).fillna(dict.fromkeys(keys, "")) for frame in (published, here)]
    rows = sides[0].merge(sides[1], "outer", keys, suffixes=(" published", " here"), indicator=True)
    numbers = []
    for row in rows.to_dict("records"):
        texts = [f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys]
        name = ", ".join(filter(None, texts))
        for column in values:
            one, other = row[f"{column} published"], row[f"{column} here"]
            shown, agreement = (f"{one:.6g}", f"{other:.6g}"), Agreement.DIFFERS
            if row["_merge"] == "both":
                agreement = compare(float(one), float(other), tolerance_of(row["metric"], column))
            else:
                shown = ("there", "missing") if row["_merge"] == "left_only" else ("missing", "there")
            numbers.append((file, name if len(values) == 1 else f"{name}: {column}", *shown, agreement))
    return pd.DataFrame(numbers, columns=COLUMNS)


def verify_dataset(evidence: Evidence, dataset: str) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return the comparison of each number, and the evidence files with recomputed numbers in place of published ones."""
    here, published = recompute(evidence, dataset), evidence.frame(dataset, "metrics.csv")
    keys = [name for name in KEYS if name in published]
    both = published.merge(here["metrics.csv"][[*keys, "value"]], "left", keys, suffixes=("", "_here"), indicator=True)
    computed = (both["_merge"] == "both").to_numpy()
    tracked = {file: evidence.frame(dataset, file) for file in here}
    tracked["metrics.csv"] = published[computed | (printed_reading(published) & published["metric"].isin(EXPECTED))]
    numbers = [compare_files(f"{dataset}/{file}", tracked[file], frame) for file, frame in here.items()]
    whole = published.assign(value=np.where(computed, both["value_here"], published["value"]))
    return pd.concat(numbers), {**here, "metrics.csv": whole[FILES["metrics.csv"]]}


def verify_claims(tracked: Iterable[Mapping[str, Any]], here: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Compare the verdicts of claims.json with those by recomputed evidence."""
    one, other = ({claim["id"]: verdict_of(claim) for claim in claims} for claims in (tracked, here))
    agreements, rows = {True: Agreement.EQUAL, False: Agreement.DIFFERS}, []
    for name in {**one, **other}:
        both = [claims.get(name, "missing") for claims in (one, other)]
        rows.append(("claims", f"verdict {name}", *both, agreements[both[0] == both[1]]))
    return pd.DataFrame(rows, columns=COLUMNS)


def verify_model(run: RunId, published: pd.DataFrame, here: pd.DataFrame, same_precision: bool) -> pd.DataFrame:
    """Compare the accuracy (AUROC for recordings) of a published model, by the metrics of all runs, with an evaluation here."""
    metric = "accuracy" if "accuracy" in set(here["metric"]) else "auroc"
    fold = published["fold"].isna() if run.fold is None else published["fold"] == run.fold
    rows = published[(published["cell"] == run.cell) & (published["seed"] == run.seed) & fold]
    main = here[printed_reading(here)]
    one, other = (float(frame.loc[frame["metric"] == metric, "value"].iloc[0]) for frame in (rows, main))
    agreement = compare(one, other, 0.0 if same_precision else ACROSS_PRECISIONS)
    return pd.DataFrame([("models", f"{run}, {metric}", f"{one:.6g}", f"{other:.6g}", agreement)], columns=COLUMNS)


def summary(numbers: pd.DataFrame) -> str:
    """Return every verdict and model as a line, and of other sources counts and what differs."""
    single = numbers[~numbers["source"].str.endswith(".csv") | (numbers["agreement"] == Agreement.DIFFERS)]
    counts = pd.crosstab(numbers["source"], numbers["agreement"])
    different = int((numbers["agreement"] == Agreement.DIFFERS).sum())
    return f"{single.to_string(index=False)}\n\n{counts.to_string()}\n{len(numbers)} numbers, {different} of which differ.\n"
