"""Gather metrics, reliability curves, histories, similarities, controls and records of all runs on a dataset."""

import json
import shutil
from pathlib import Path

import pandas as pd

from replication.runs.columns import COLUMNS
from replication.runs.controls import CONTROLS
from replication.runs.gather import gather
from replication.runs.jobs import start_job
from replication.runs.record import with_evaluation, write_records

start_job(snakemake.log[0])
for name in ("metrics", "reliability", "history", "similarity", *CONTROLS):
    tables = {path: pd.read_csv(path) for path in snakemake.input[name]}
    gather(tables, COLUMNS[f"{name}.csv"]).to_csv(snakemake.output[name], index=False)
records, evaluations = (
    {Path(path).parent: json.loads(Path(path).read_text()) for path in paths}
    for paths in ([*snakemake.input.records, *snakemake.input.traced], snakemake.input.evaluations)
)
records |= {run: with_evaluation(records[run], evaluation) for run, evaluation in evaluations.items()}
write_records(Path(snakemake.output.records).parent, records.values())
shutil.copyfile(snakemake.input.prepared, snakemake.output.description)
