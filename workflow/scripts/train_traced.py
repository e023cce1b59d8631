"""Train by one objective and trace the alignment of its embedding."""

from replication.experiments.objectives import train_traced
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
output = snakemake.output
run = Run.for_job(snakemake, output.alignment)
recorder = run.recorder()
with run.checkpoint(output.alignment, snakemake.input) as checkpoint:
    alignment, history = train_traced(run, checkpoint)
alignment.to_csv(output.alignment, index=False)
history.to_csv(output.history, index=False)
recorder.write(output.record, earlier=checkpoint.earlier, command=f"snakemake {output.alignment}")
