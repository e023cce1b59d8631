"""Gather the files of single runs into the evidence of a dataset or study."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from replication.runs.columns import COLUMNS, STUDY_HISTORY
from replication.runs.controls import TRACED_ONLY, compared_runs, traced_runs, voting_runs
from replication.runs.identity import RunId
from replication.runs.models import CLAI, MODELS, fitted_on
from replication.runs.record import EVALUATIONS, RUNS
from replication.runs.settings import has_recordings, runs_of_model, runs_of_study

TABLES = ("metrics", "history", "reliability", "similarity", "alignment", "agreement")
"""Files of evidence, without their ending, that put tables of single runs together."""
RECORDS = {RUNS: "run.json", EVALUATIONS: "evaluation.json"}
"""Files of evidence that put records of single runs together, with the file of a run."""


def files_behind(settings: Mapping[str, Any], name: str, file: str) -> list[str]:
    """Return the files of single runs, below the results, behind a file of evidence; none if a dataset has no such file."""
    of_run = RECORDS.get(file, file)
    if name in settings["studies"]:
        return [f"{run}/{of_run}" for run in runs_of_study(settings, name)]
    every, trained = (_runs_of(settings, name, models) for models in (MODELS, fitted_on("samples")))
    compared = [] if has_recordings(settings, name) else compared_runs(settings, name)
    behind = {
        "metrics.csv": every,
        "reliability.csv": every,
        RUNS: every,
        "history.csv": trained,
        EVALUATIONS: trained,
        "similarity.csv": [*(_runs_of(settings, name, CLAI) if compared else []), *compared],
        "agreement.csv": voting_runs(settings, name),
    }
    traced = {"alignment.csv": traced_runs(settings, name), RUNS: traced_runs(settings, name, TRACED_ONLY)}
    return [
        *(f"{run}/{of_run}" for run in behind.get(file, [])),
        *(f"{run}/traced/{of_run}" for run in traced.get(file, [])),
    ]


def _runs_of(settings: Mapping[str, Any], dataset: str, models: Iterable[str]) -> list[RunId]:
    own = [model for model in settings["datasets"][dataset]["models"] if model in models]
    return [run for model in own for run in runs_of_model(settings, dataset, model)]


def gather(tables: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Join the tables of runs, by the path of a file of the run, into one with these columns, empty where a table lacks one."""
    if not tables:  # such as the histories of a dataset whose models are all fitted at once
        return pd.DataFrame(columns=list(columns))
    frames = [
        table.assign(**asdict(run), model=run.cell).astype({"fold": "Int64"}).dropna(axis=1, how="all")
        for run, table in ((RunId.parse(path), table) for path, table in tables.items())
    ]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(columns))


def gather_files(paths: Iterable[str | Path], file: str, of_study: bool) -> pd.DataFrame:
    """Read the tables of runs, and join them with the columns of a file of evidence."""
    columns = STUDY_HISTORY if of_study and file == "history.csv" else COLUMNS[file]
    return gather({str(path): pd.read_csv(path) for path in paths}, columns)


def describe(prepared: Path, samples: int | None) -> str:
    """Return the description of the data of a dataset or study as JSON; a study may train on so many `samples` alone."""
    description = json.loads(prepared.read_text())
    if samples is not None:
        description["title"] += f", {samples:,} of {description['splits']['train']['n']:,} training samples"
    return json.dumps(description, indent=1, sort_keys=True) + "\n"
