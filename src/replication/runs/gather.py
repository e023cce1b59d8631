"""Gather the tables of single runs into the evidence of a dataset or study."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.runs.columns import COLUMNS, STUDY_HISTORY
from replication.runs.identity import RunId
from replication.runs.record import write_records


def gather(tables: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Join the tables of runs into one, with each run's dataset, model, seed and fold.

    tables: by the path of a file of the run. columns: to keep, in this order. A table that lacks one has it empty.
    """
    if not tables:  # such as the histories of a dataset whose models are all fitted at once
        return pd.DataFrame(columns=list(columns))
    frames = [
        table.assign(**asdict(RunId.parse(path))).astype({"fold": "Int64"}).reindex(columns=list(columns))
        for path, table in tables.items()
    ]
    known = [frame.dropna(axis=1, how="all") for frame in frames]
    return pd.concat(known, ignore_index=True).reindex(columns=list(columns))


def predictions_of_runs(
    predictions: Iterable[str | Path], metrics: Iterable[str | Path]
) -> tuple[dict[RunId, dict[str, Any]], dict[RunId, float]]:
    """Return by run the arrays of its `predictions.npz`, and the temperature among its metrics, which two classes lack."""
    scores: dict[RunId, dict[str, Any]] = {}
    temperatures: dict[RunId, float] = {}
    for path in predictions:
        with np.load(path, allow_pickle=False) as arrays:
            scores[RunId.parse(path)] = dict(arrays)
    for path in metrics:
        fitted = pd.read_csv(path, keep_default_na=False).query("metric == 'temperature' and rule in ['printed', '']")
        temperatures |= {RunId.parse(path): float(value) for value in fitted["value"]}
    return scores, temperatures


def gather_study(runs: Sequence[Path], prepared: Path, samples: int | None, folder: Path) -> None:
    """Write the metrics, histories and records of a study's runs to an evidence folder, and what its data are.

    runs: their folders. prepared: `dataset.json` of the data. samples: training samples that the study uses; None for all.
    """
    records = {run: json.loads((run / "run.json").read_text()) for run in runs}
    metrics = {str(run): pd.read_csv(run / "metrics.csv") for run in runs}
    seconds = {run: pd.Series(records[run]["epoch_seconds"], dtype=float).cumsum() for run in runs}
    histories = {str(run): pd.read_csv(run / "history.csv").assign(seconds=seconds[run]) for run in runs}
    gather(metrics, COLUMNS["metrics.csv"]).to_csv(folder / "metrics.csv", index=False)
    gather(histories, STUDY_HISTORY).to_csv(folder / "history.csv", index=False)
    write_records(folder, records.values())
    description = json.loads(prepared.read_text())
    if samples is not None:
        description["title"] += f", {samples:,} of {description['splits']['train']['n']:,} training samples"
    (folder / "dataset.json").write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
