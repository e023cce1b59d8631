"""Round and gather the predictions of all runs of a model."""

from pathlib import Path

import numpy as np
import pandas as pd

from replication.experiments.predictions import save_predictions
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
predictions, temperatures = {}, {}
for path in snakemake.input.predictions:
    with np.load(path, allow_pickle=False) as arrays:
        predictions[RunId.parse(path)] = dict(arrays)
for path in snakemake.input.metrics:  # Two classes have no temperature.
    fitted = pd.read_csv(path, keep_default_na=False).query("metric == 'temperature' and rule in ['printed', '']")
    temperatures |= {RunId.parse(path): float(value) for value in fitted["value"]}
save_predictions(Path(snakemake.output[0]), predictions, temperatures)
