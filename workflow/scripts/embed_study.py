"""Train the model of CLaI whose embeddings the baselines on embeddings of a study share."""

from replication.models.base import create
from replication.models.embedding import embed_splits, save_embedded
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
output = snakemake.output
run = Run.for_job(snakemake, output.embedded)
with run.checkpoint(output.embedded, snakemake.input) as checkpoint:
    model = create(run.model)
    model.fit(run, checkpoint)
save_embedded(output.embedded, embed_splits(run, model.network))
