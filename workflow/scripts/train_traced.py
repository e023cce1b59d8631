"""Train by one objective and trace the alignment of its embedding."""

from replication.experiments.objectives import train_traced
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
inputs, output, params = snakemake.input, snakemake.output, snakemake.params
run = Run.for_job(snakemake, output.alignment)
recorder = run.recorder()
with run.checkpoint(params.checkpoint, [inputs.prepared, *inputs.library]) as checkpoint:
    _, trace = train_traced(run, snakemake.wildcards.embedding, checkpoint)
trace.to_csv(output.alignment, index=False)
recorder.write(output.record, earlier=checkpoint.earlier, command=f"snakemake {output.alignment}")
