"""Train the deep-kernel Gaussian process on a run's training hours and measure it."""

from typing import TYPE_CHECKING

import numpy as np

from replication.experiments.deep_kernel_gp import evaluate, train
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="training.batch_size or baselines.gp.inducing_points")
inputs, output, params = snakemake.input, snakemake.output, snakemake.params
run = Run.open(inputs.prepared, params.settings, RunId.parse(output.metrics))
recorder = run.recorder()
with run.checkpoint(params.checkpoint, [inputs.prepared, *inputs.library]) as checkpoint:
    model, history = train(run, checkpoint)
evaluation, latent = evaluate(run, model)
evaluation.save(output.metrics, output.reliability, output.predictions)
np.savez(output.latent, mean=latent.mean.numpy(), sd=latent.sd.numpy())
recorder.write(
    output.record,
    disk_mb=disk_mb(output),
    earlier_seconds=checkpoint.earlier,
    earlier_cpu_seconds=checkpoint.earlier_cpu,
    **checkpoint.times,
    history=history,
    command=f"snakemake {output.metrics}",
)
