"""Gather the predictions of all runs of a model."""

from pathlib import Path

from replication.experiments.predictions import gather_predictions
from replication.runs.run import start_job

start_job(snakemake.log[0])
gather_predictions(Path(snakemake.output[0]), map(Path, snakemake.input.predictions))
