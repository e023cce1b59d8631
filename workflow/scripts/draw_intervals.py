"""Draw intervals by patient from the predictions of all runs on recordings."""

from pathlib import Path

from replication.datasets import prepared
from replication.experiments.predictions import folds_of, read_runs, samples_of
from replication.metrics.bootstrap import patient_intervals
from replication.runs.run import start_job

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
folds = folds_of(samples_of(data), read_runs(snakemake.input.predictions), data.info.get("label_hours_before"))
models = list(dict.fromkeys(model for fold in folds for model in fold.predictions))  # seeds may differ by model
patient_intervals(folds, models).to_csv(snakemake.output[0], index=False, float_format="%.6g")
