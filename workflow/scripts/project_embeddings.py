"""Project the test embeddings of a dataset of samples: t-SNE and stages of a model of CLaI."""

from replication.experiments.latent import write_projections
from replication.runs.run import start_job

start_job(snakemake.log[0])
write_projections(snakemake)
