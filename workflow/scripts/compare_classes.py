"""Measure the similarity between classes in an embedding that is not CLaI's."""

from typing import TYPE_CHECKING

from replication.experiments.embeddings import embed_parts, open_view
from replication.experiments.evaluation import class_similarity
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
run = Run.open(inputs.prepared, snakemake.params.settings, RunId.parse(output[0]))
view = open_view(run, snakemake.wildcards.embedding, inputs.model or None)
(test,) = embed_parts(run, view, {"test": None}).values()
class_similarity(run, view.kernel.cpu(), test).to_csv(output[0], index=False)
