"""Measure the similarity between classes in the inputs of the encoder and in an untrained network."""

from replication.experiments.evaluation import class_similarity
from replication.experiments.objectives import open_space
from replication.models.embedding import embed
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
for name, path in snakemake.output.items():
    run = Run.for_job(snakemake, path)
    space = open_space(run, name, None)
    class_similarity(run, space.kernel.cpu(), embed(run, space.module, run.splits.test)).to_csv(path, index=False)
