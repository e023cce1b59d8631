"""Gather the tables of single runs into the evidence of a dataset or study."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from replication.runs.columns import COLUMNS, STUDY_HISTORY
from replication.runs.identity import RunId
from replication.runs.record import write_records


def gather(tables: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Join the tables of runs, by the path of a file of the run, into one with these columns, empty where a table lacks one."""
    if not tables:  # such as the histories of a dataset whose models are all fitted at once
        return pd.DataFrame(columns=list(columns))
    frames = [
        table.assign(**asdict(RunId.parse(path))).astype({"fold": "Int64"}).dropna(axis=1, how="all")
        for path, table in tables.items()
    ]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(columns))


def gather_study(runs: Sequence[Path], prepared: Path, samples: int | None, folder: Path) -> None:
    """Write metrics, histories, records and data of a study's runs to an evidence folder; `samples` of training, or None."""
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
