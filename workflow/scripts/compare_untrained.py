"""Measure the similarity between classes in the inputs of the encoder and in an untrained network."""

from replication.experiments.embeddings import open_view
from replication.experiments.evaluation import class_similarity
from replication.models.embedding import embed
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
for name, path in snakemake.output.items():
    run = Run.for_job(snakemake, path)
    view = open_view(run, name, None)
    class_similarity(run, view.kernel.cpu(), embed(run, view.module, run.splits.test)).to_csv(path, index=False)
