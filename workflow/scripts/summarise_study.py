"""Gather metrics, histories and records of all cells of a study."""

from pathlib import Path

from replication.runs.gather import gather_study
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
runs = [Path(path).parent for path in snakemake.input.metrics]
gather_study(runs, Path(snakemake.input.prepared), snakemake.params.samples, Path(snakemake.output.metrics).parent)
