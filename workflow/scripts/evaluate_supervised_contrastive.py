"""Read out the trunk of supervised contrastive learning and measure."""

from typing import TYPE_CHECKING

from replication.experiments.evaluation import evaluate_supervised_contrastive
from replication.models.run import Run
from replication.models.training import load_contrastive
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="encoder.width")
output = snakemake.output
run = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(output.metrics))
recorder = run.recorder()
evaluation = evaluate_supervised_contrastive(run, load_contrastive(run, snakemake.input.model))
evaluation.save(output.metrics, output.reliability, output.predictions)
recorder.write(output.record, disk_mb=disk_mb(output), command=f"snakemake {output.metrics}")
