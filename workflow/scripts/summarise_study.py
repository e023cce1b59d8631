"""Gather metrics, histories and records of all cells of a study."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.runs.columns import COLUMNS, STUDY_HISTORY
from clai.runs.gather import gather
from clai.runs.jobs import start_job
from clai.runs.record import write_records

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
for name, columns in (("metrics", COLUMNS["metrics.csv"]), ("history", STUDY_HISTORY)):
    tables = {path: pd.read_csv(path) for path in snakemake.input[name]}
    gather(tables, columns).to_csv(snakemake.output[name], index=False)
records = [json.loads(Path(path).read_text()) for path in snakemake.input.records]
write_records(Path(snakemake.output.records).parent, records)
description = json.loads(Path(snakemake.input.prepared).read_text())
if snakemake.params.samples is not None:
    description["title"] += (
        f", {snakemake.params.samples:,} of {description['splits']['train']['n']:,} training samples"
    )
Path(snakemake.output.description).write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
