"""Compare all models of a dataset of samples from their predictions."""

from pathlib import Path

from replication.datasets import prepared
from replication.experiments.predictions import by_model, read_runs, samples_of
from replication.metrics.comparisons import compare_models
from replication.runs.run import start_job

start_job(snakemake.log[0])
# The epochs of a sleeper resemble each other; images stand for themselves.
samples = samples_of(prepared.load(Path(snakemake.input.prepared).parent))
runs = read_runs(snakemake.input.predictions)
compared = by_model(runs, [run.cell for run in runs])
compare_models(samples.y, samples.group, compared).to_csv(snakemake.output[0], index=False, float_format="%.6g")
