"""Evaluate a trained model on test samples, and measure what the controls of claims ask of its run."""

import numpy as np

from replication.experiments.evaluation import measure
from replication.models.embedding import save_embedded
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
output = snakemake.output
run = Run.for_job(snakemake, output.metrics)
recorder = run.recorder()
evaluation, embedded, process, controls = measure(run, snakemake.input.model, snakemake.params.parts)
evaluation.save(output.metrics, output.reliability, output.predictions)
save_embedded(output.embedded, embedded)
np.savez(output.process, mean=process[0], sd=process[1])
for name, table in controls.items():
    table.to_csv(output[name], index=False, float_format="%.5g" if name == "areas" else None)
recorder.write(output.record, command=f"snakemake {output.metrics}")
