"""Round and gather the predictions of all runs of a model."""

from pathlib import Path
from typing import TYPE_CHECKING

from replication.experiments.predictions import save_predictions
from replication.runs.gather import predictions_of_runs
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
predictions, temperatures = predictions_of_runs(snakemake.input.predictions, snakemake.input.metrics)
save_predictions(Path(snakemake.output[0]), predictions, temperatures)
