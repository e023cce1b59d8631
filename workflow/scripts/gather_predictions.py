"""Round and gather the predictions of all runs of a model."""

from pathlib import Path

import pandas as pd

from replication.experiments.predictions import read_runs, save_predictions
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
temperatures: dict[RunId, float] = {}
for path in snakemake.input.metrics:  # Two classes have no temperature.
    fitted = pd.read_csv(path, keep_default_na=False).query("metric == 'temperature' and rule in ['printed', '']")
    temperatures |= {RunId.parse(path): float(value) for value in fitted["value"]}
save_predictions(Path(snakemake.output[0]), read_runs(snakemake.input.predictions), temperatures)
