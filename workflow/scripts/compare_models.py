"""Compare all models of a dataset, or cells of a study, from their predictions, over seeds and samples."""

from pathlib import Path

from replication.experiments.predictions import compare_predictions
from replication.runs.run import start_job

start_job(snakemake.log[0])
compared = compare_predictions(Path(snakemake.input.prepared), map(Path, snakemake.input.predictions))
compared.to_csv(snakemake.output[0], index=False, float_format="%.6g")
