"""Project the test embeddings of a dataset of samples; of a user's own dataset, gather all other evidence as well."""

from pathlib import Path

from replication.experiments.latent import write_projections
from replication.runs.run import describe, start_job, write_gathered

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
if output.get("description"):
    Path(output.description).write_text(describe(Path(inputs.prepared), None), encoding="utf-8")
    for name in ("metrics", "history", "reliability", "runs"):
        write_gathered(Path(output[name]), inputs[name], study=False)
write_projections(snakemake)
