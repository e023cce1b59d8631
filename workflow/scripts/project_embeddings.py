"""Project the test embeddings of a dataset of samples; of a user's own dataset, gather all other evidence as well."""

from pathlib import Path

from replication.experiments.latent import write_projections
from replication.runs.run import start_job, write_gathered

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
for name in ("description", "metrics", "history", "reliability", "runs"):
    if path := output.get(name):
        files = [inputs.prepared] if name == "description" else inputs[name]
        write_gathered(Path(path), files, study=False, samples=snakemake.params.samples)
write_projections(snakemake)
