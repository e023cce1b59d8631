"""Round and gather the predictions of all runs of a model."""

from pathlib import Path

from replication.experiments.predictions import read_runs, save_predictions
from replication.runs.run import start_job

start_job(snakemake.log[0])
save_predictions(Path(snakemake.output[0]), read_runs(snakemake.input.predictions))
