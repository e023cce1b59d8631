"""Gather metrics, histories and records of all cells of a study."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.runs.columns import COLUMNS, STUDY_HISTORY
from replication.runs.gather import gather, with_times
from replication.runs.jobs import start_job
from replication.runs.record import write_records

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
files, output = snakemake.input, snakemake.output
records = [json.loads(Path(path).read_text()) for path in files.records]
metrics = {path: pd.read_csv(path) for path in files.metrics}
gather(metrics, COLUMNS["metrics.csv"]).to_csv(output.metrics, index=False)
histories = {path: with_times(pd.read_csv(path), record) for path, record in zip(files.history, records, strict=True)}
gather(histories, STUDY_HISTORY).to_csv(output.history, index=False)
write_records(Path(output.records).parent, records)
description = json.loads(Path(files.prepared).read_text())
if snakemake.params.samples is not None:
    description["title"] += (
        f", {snakemake.params.samples:,} of {description['splits']['train']['n']:,} training samples"
    )
Path(output.description).write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
