"""Comparison of published numbers with the same numbers computed here: runs, intervals, tables and verdicts.

Published predictions are rounded (`experiments.predictions`), which leaves what depends on classes and alarms alone exact.
The tolerance of every other number is half a unit of the last digit that tables print, of the limits of intervals a whole one.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from replication.report.claims.judge import judge
from replication.report.claims.page import claims_page, verdict_of
from replication.report.evidence import Evidence
from replication.report.recomputation import recompute
from replication.report.tables.layout import Sources
from replication.report.tables.paper import TABLE1_METRICS
from replication.report.tables.render import render
from replication.report.tables.supplement import FURTHER_METRICS
from replication.runs.columns import COLUMNS
from replication.runs.identity import RunId
from replication.runs.outputs import VERIFIED_TABLES

EXACT = ("accuracy", "precision", "recall", "f1", "macro_f1", "kappa", "utility", "prevalence", "brier_uncertainty")
"""Metrics that rounded predictions leave as they are."""
TOLERANCE, TOLERANCES = 5e-4, {"roc_auc": 5e-5}
"""Of other metrics: half a unit of the last digit that tables print, which is .001, or .01 % of the ROC-AUC."""
OF_LIMITS = 2
"""The same for the limits of an interval: times as much. A limit is one of the ordered draws, and rounding may choose another."""
P_TOLERANCE = 5e-3
"""Of p-values."""
DIGITS = 1e-5
"""Relative: evidence and tables have six significant digits."""
ACROSS_PRECISIONS = 1e-3
"""Of the accuracy of a published model whose weights, or the computation here, have another format than in its run."""
PERCENT = {metric.key for metric in (*TABLE1_METRICS, *FURTHER_METRICS) if metric.percent}
KEYS = {
    "metrics.csv": ["model", "seed", "fold", "rule", "shares", "metric"],
    "intervals.csv": ["model", "other", "metric"],
    "comparisons.csv": ["model", "other", "metric"],
    "decision.csv": ["model", "seed", "fold", "threshold"],
}
"""Columns that tell the rows of an evidence file apart."""
VALUES = {
    "metrics.csv": ["value"],
    "intervals.csv": ["value", "low", "high"],
    "comparisons.csv": ["value", "low", "high", "p"],
    "decision.csv": ["net_benefit"],
}


class Agreement(StrEnum):
    """How a published number compares with the one computed here."""

    EQUAL = "equal"
    WITHIN = "within tolerance"
    DIFFERS = "differs"
    NOT_PUBLISHED = "no predictions published"


class Number(NamedTuple):
    """A number or verdict, as published and as computed here.

    Attributes:
        source: what holds it, such as `table1` or `pathmnist/metrics.csv`.
        name: which one it is.
        seconds: time that computing all numbers of the source took.
    """

    source: str
    name: str
    published: str
    here: str
    agreement: Agreement
    seconds: float


def compare(published: float, here: float, tolerance: float) -> Agreement:
    """Compare two numbers; NaN agrees with NaN alone."""
    if np.isnan(published) or np.isnan(here):
        return Agreement.EQUAL if np.isnan(published) == np.isnan(here) else Agreement.DIFFERS
    difference = abs(published - here)
    if difference <= DIGITS * abs(published):
        return Agreement.EQUAL
    return Agreement.WITHIN if difference <= tolerance else Agreement.DIFFERS


def tolerance_of(metric: str) -> float:
    """Return the tolerance of a metric, in the unit of evidence."""
    return 0.0 if metric in EXACT else TOLERANCES.get(metric, TOLERANCE)


def numbers_of(
    source: str,
    published: pd.DataFrame,
    here: pd.DataFrame,
    keys: Sequence[str],
    values: Sequence[str],
    tolerance: Callable[[Mapping[str, Any], str], float],
    seconds: float,
) -> list[Number]:
    """Compare the columns `values` of two frames row by row; rows that one of them lacks differ."""
    first, second = (_indexed(frame, keys) for frame in (published, here))
    found = []
    for key in dict.fromkeys([*first, *second]):
        name = ", ".join(part for part in key if part)
        if key not in first or key not in second:
            published_state, here_state = ("there" if key in side else "missing" for side in (first, second))
            found.append(Number(source, name, published_state, here_state, Agreement.DIFFERS, seconds))
            continue
        for value in values:
            one, other = float(first[key][value]), float(second[key][value])
            agreement = compare(one, other, tolerance(dict(zip(keys, key, strict=True)), value))
            label = name if len(values) == 1 else f"{name}: {value}"
            found.append(Number(source, label, f"{one:.6g}", f"{other:.6g}", agreement, seconds))
    return found


def _indexed(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows by the text of their keys; the keys of a repeated row end in its number."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        key = tuple(
            "" if pd.isna(row[k]) else f"{row[k]:g}" if isinstance(row[k], float) else str(row[k]) for k in keys
        )
        while key in rows:
            key = (*key[:-1], f"{key[-1]} again")
        rows[key] = {str(name): value for name, value in row.items()}
    return rows


def of_dataset(evidence: Evidence, dataset: str) -> tuple[list[Number], dict[str, pd.DataFrame]]:
    """Recompute a dataset from its predictions.

    Returns:
        The comparison of each number, and the evidence files with recomputed numbers in place of published ones.
    """
    started = time.perf_counter()
    here = recompute(evidence, dataset)
    seconds = round(time.perf_counter() - started, 1)
    published = evidence.frame(dataset, "metrics.csv")
    keys = KEYS["metrics.csv"]
    measured = {
        tuple(key): value
        for *key, value in here["metrics.csv"][[*keys, "value"]].astype(object).fillna("").to_numpy().tolist()
    }
    given = [tuple(key) for key in published[keys].astype(object).fillna("").to_numpy().tolist()]
    covered = pd.Series([key in measured for key in given], index=published.index, dtype=bool)
    covered |= (
        published["metric"].isin(EXPECTED) & published["rule"].isin(MAIN_RULES) & published["shares"].isin(MAIN_SHARES)
    )
    whole = published.copy()
    whole["value"] = [measured.get(key, value) for key, value in zip(given, published["value"], strict=True)]
    found = []
    for file, frame in here.items():
        theirs = published[covered] if file == "metrics.csv" else evidence.frame(dataset, file)
        found += numbers_of(f"{dataset}/{file}", theirs, frame, KEYS[file], VALUES[file], _tolerance, seconds)
    return found, {**here, "metrics.csv": whole[COLUMNS["metrics.csv"]]}


EXPECTED = ("accuracy", "auroc")
"""Metrics that every run has: a run without predictions is found by them."""
MAIN_RULES, MAIN_SHARES = ("printed", ""), ("population", "")


def _tolerance(row: Mapping[str, Any], value: str) -> float:
    if value == "p":
        return P_TOLERANCE
    return tolerance_of(str(row.get("metric", "net_benefit"))) * (OF_LIMITS if value in ("low", "high") else 1)


def of_table(
    name: str, tracked: pd.DataFrame, here: pd.DataFrame, published: Iterable[str], seconds: float
) -> list[Number]:
    """Compare mean, deviation and number of runs in a tracked table with those rendered from recomputed evidence.

    Args:
        published: the datasets with published predictions. Rows of other ones follow from the tracked metrics of runs.
    """

    def tolerance(row: Mapping[str, Any], value: str) -> float:
        return 0.0 if value == "n" else tolerance_of(row["metric"]) * (100 if row["metric"] in PERCENT else 1)

    keys, values = ["dataset", "model", "metric"], ["mean", "sd", "n"]
    found = numbers_of(name, tracked, here, keys, values, tolerance, seconds)
    with_predictions = tuple(f"{dataset}, " for dataset in published)
    return [
        number
        if number.agreement == Agreement.DIFFERS or number.name.startswith(with_predictions)
        else number._replace(agreement=Agreement.NOT_PUBLISHED)
        for number in found
    ]


def of_claims(tracked: Iterable[Mapping[str, Any]], here: Iterable[Mapping[str, Any]], seconds: float) -> list[Number]:
    """Compare the verdicts of claims.json with those by recomputed evidence."""
    verdicts, judged = ({claim["id"]: verdict_of(claim) for claim in claims} for claims in (tracked, here))
    found = []
    for number in dict.fromkeys([*verdicts, *judged]):
        one, other = verdicts.get(number, "missing"), judged.get(number, "missing")
        agreement = Agreement.EQUAL if one == other else Agreement.DIFFERS
        found.append(Number("claims", f"verdict {number}", one, other, agreement, seconds))
    return found


def of_text(name: str, tracked: str, rendered: str) -> Number:
    """Compare a tracked page or table with its rendering from the published evidence."""
    same = tracked == rendered
    one, other = (f"{len(text.splitlines())} lines" for text in (tracked, rendered))
    return Number(name, "the whole text", one, other, Agreement.EQUAL if same else Agreement.DIFFERS, 0.0)


def of_outputs(
    published: Evidence,
    here: Evidence,
    shown: Mapping[str, Mapping[str, Mapping[str, str]]],
    sources_of: Callable[[Evidence], Sources],
    tracked: Mapping[str, Path],
    captions: Mapping[str, str],
    recomputed: Iterable[str],
) -> list[Number]:
    """Compare the tracked tables, their text, the verdicts of claims.json, and the page made of it.

    Args:
        published, here: the published evidence, and the same with recomputed files.
        shown: by table the datasets that it shows, with their descriptions.
        sources_of: gives what tables are made of, from evidence.
        tracked: the tracked files by name, such as `table1.csv`.
        captions: the fixed captions by name of the table.
        recomputed: the datasets with published predictions.
    """
    numbers = []
    for name in VERIFIED_TABLES:
        started = time.perf_counter()
        of_name = (Evidence(of.root, shown[name], of.available & {*shown[name]}) for of in (published, here))
        table, again = (render(name, sources_of(evidence), captions[name]) for evidence in of_name)
        seconds = round(time.perf_counter() - started, 1)
        numbers += of_table(name, pd.read_csv(tracked[f"{name}.csv"]), again.frame, recomputed, seconds)
        numbers.append(of_text(f"{name}.tex", tracked[f"{name}.tex"].read_text(), table.tex))
    content = json.loads(tracked["claims.json"].read_text())
    started = time.perf_counter()
    judged = judge(here, sources_of(here).printed_values)
    numbers += of_claims(content["claims"], judged, round(time.perf_counter() - started, 1))
    page = claims_page(content["claims"], content["caption"])
    return [*numbers, of_text("claims.md", tracked["claims.md"].read_text(), page)]


def of_model(run: RunId, published: pd.DataFrame, here: pd.DataFrame, same_precision: bool, seconds: float) -> Number:
    """Compare the accuracy (AUROC for two classes) of a published model with that of an evaluation here.

    published: metrics of all runs in the main reading. here: those of the evaluation. Both have the columns of metrics.csv.
    """
    metric = "accuracy" if "accuracy" in set(here["metric"]) else "auroc"
    fold = published["fold"].isna() if run.fold is None else published["fold"] == run.fold
    rows = published[(published["model"] == run.model) & (published["seed"] == run.seed) & fold]
    one = float(rows.loc[rows["metric"] == metric, "value"].iloc[0])
    main = here[here["rule"].fillna("").isin(MAIN_RULES) & here["shares"].fillna("").isin(MAIN_SHARES)]
    other = float(main.loc[main["metric"] == metric, "value"].iloc[0])
    tolerance = 0.0 if same_precision else ACROSS_PRECISIONS
    agreement = compare(one, other, tolerance)
    return Number("models", f"{run}, {metric}", f"{one:.6g}", f"{other:.6g}", agreement, seconds)


def frame_of(numbers: Iterable[Number]) -> pd.DataFrame:
    """Return numbers as rows."""
    return pd.DataFrame(list(numbers), columns=list(Number._fields))


def summary(numbers: pd.DataFrame) -> str:
    """Return every number of tables, verdicts and models as lines, and of other sources counts and what differs."""
    single = numbers[~numbers["source"].str.endswith(".csv") | (numbers["agreement"] == Agreement.DIFFERS)]
    lines = [_line("number", "published", "here", "verdict")]
    for row in single.astype(str).to_dict("records"):
        lines.append(_line(f"{row['source']}: {row['name']}", row["published"], row["here"], row["agreement"]))
    lines += [
        "",
        f"{'source':<40}{'numbers':>9}{'equal':>9}{'within':>9}{'differs':>9}{'none published':>16}{'seconds':>9}",
    ]
    for source, part in numbers.groupby("source", sort=False):
        counts = [int((part["agreement"] == agreement).sum()) for agreement in Agreement]
        lines.append(
            f"{source:<40}{len(part):>9}{counts[0]:>9}{counts[1]:>9}{counts[2]:>9}{counts[3]:>16}{part['seconds'].max():>9}"
        )
    different = int((numbers["agreement"] == Agreement.DIFFERS).sum())
    lines.append(f"{len(numbers)} numbers, {different} of which differ.")
    return "\n".join(lines) + "\n"


def _line(name: str, published: str, here: str, agreement: str) -> str:
    return f"{name:<70} {published:>24} {here:>24}  {agreement}"


def recomputed_evidence(evidence: Evidence, folder: Path, files: Mapping[str, Mapping[str, pd.DataFrame]]) -> Evidence:
    """Lay out evidence in an empty `folder` with recomputed files in place of published ones, and return it.

    files: by dataset and name. Other files are links to the published ones.
    """
    root = folder / evidence.name
    for key in evidence.available:
        place = root / key / "evidence"
        place.mkdir(parents=True)
        for path in evidence.path(key, "").iterdir():
            if path.name not in files.get(key, {}):
                (place / path.name).symlink_to(path.resolve())
        for name, frame in files.get(key, {}).items():
            frame.to_csv(place / name, index=False)
    return Evidence(root, evidence.expected, evidence.available)
