"""Compare all models of a dataset from their predictions, over seeds and samples."""

from pathlib import Path

from replication.datasets import prepared
from replication.experiments.predictions import compare_runs, load_predictions, samples_of
from replication.runs.run import RunId, start_job

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
samples, classes = samples_of(data), len(data.info["classes"])
runs = {
    RunId.parse(path): predictions
    for path in snakemake.input.predictions
    for _, predictions in load_predictions(Path(path), samples, classes)
}
compare_runs(samples, runs).to_csv(snakemake.output[0], index=False, float_format="%.6g")
