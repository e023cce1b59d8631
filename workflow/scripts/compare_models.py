"""Compare all models of a dataset from their predictions: over seeds and samples, or on recordings by intervals over patients."""

from pathlib import Path

from replication.datasets import prepared
from replication.experiments.predictions import compare_runs, read_runs, samples_of
from replication.runs.run import start_job

start_job(snakemake.log[0])
data, runs = prepared.load(Path(snakemake.input.prepared).parent), read_runs(snakemake.input.predictions)
compared = compare_runs(samples_of(data), runs, data.info.get("label_hours_before"))
compared.to_csv(snakemake.output[0], index=False, float_format="%.6g")
