"""Embed all samples with a trained model, infer, and measure."""

from typing import TYPE_CHECKING

from replication.experiments.evaluation import class_similarity, evaluate_clai
from replication.models.embedding import embed_splits, save_embedded
from replication.models.run import Run
from replication.models.training import load_clai
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
output, settings = snakemake.output, snakemake.params.settings
run = Run.open(snakemake.input.prepared, settings, RunId.parse(output.metrics))
recorder = run.recorder()
encoder, kernel = load_clai(run, snakemake.input.model)
embedded = embed_splits(run, encoder)
save_embedded(output.embedded, embedded)
evaluate_clai(run, kernel, embedded).save(output.metrics, output.reliability, output.predictions)
class_similarity(run, kernel, embedded["test"]).to_csv(output.similarity, index=False)
recorder.write(output.record, disk_mb=disk_mb(output), command=f"snakemake {output.metrics}")
