"""Measure the similarity between classes in the inputs of the encoder and in an untrained network."""

from replication.experiments.embeddings import embed_parts, open_view
from replication.experiments.evaluation import class_similarity
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
for name, path in snakemake.output.items():
    run = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(path))
    view = open_view(run, name, None)
    (test,) = embed_parts(run, view, {"test": None}).values()
    class_similarity(run, view.kernel.cpu(), test).to_csv(path, index=False)
