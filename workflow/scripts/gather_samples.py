"""Keep the labels of a dataset's test samples, with their patients, recordings and folds by number."""

from pathlib import Path

from replication.datasets import prepared
from replication.experiments.predictions import samples_of, save_samples
from replication.runs.run import start_job

start_job(snakemake.log[0])
save_samples(Path(snakemake.output[0]), samples_of(prepared.load(Path(snakemake.input.prepared).parent)))
