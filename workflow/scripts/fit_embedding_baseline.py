"""Fit a baseline on the embeddings of a trained model and measure it."""

from typing import TYPE_CHECKING

from replication.experiments.embedding_baselines import (
    evaluate_embedding_baseline,
    fit_embedding_baseline,
    settings_block,
)
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

inputs, output, params = snakemake.input, snakemake.output, snakemake.params
start_job(snakemake.log[0], lower=f"the sizes under baselines.{settings_block(snakemake.wildcards.model)}")
run = Run.open(inputs.prepared, params.settings, RunId.parse(output.metrics))
recorder = run.recorder()
embedded = load_embedded(inputs.embedded)
baseline, choices = fit_embedding_baseline(run, embedded)
evaluation = evaluate_embedding_baseline(run, baseline, embedded)
evaluation.save(output.metrics, output.reliability, output.predictions)
recorder.write(
    output.record,
    disk_mb=disk_mb(output),
    **choices,
    command=f"snakemake {output.metrics}",
)
