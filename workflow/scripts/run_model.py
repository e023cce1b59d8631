"""Train a model with one seed, evaluate it on test samples, or do both, by the outputs of the rule."""

import time

import numpy as np
import pandas as pd

from replication.models.base import create
from replication.models.embedding import save_embedded
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
inputs, output, params = snakemake.input, snakemake.output, snakemake.params
run = Run.for_job(snakemake, output[0])
if output.get("training"):
    recorder = run.recorder()
    with run.checkpoint(output.model, inputs) as checkpoint:
        model = create(run.model)
        history = model.fit(run, checkpoint)
    model.save(output.model)
    pd.DataFrame(history).to_csv(output.history, index=False)
    recorder.write(output.training, earlier=checkpoint.earlier, command=f"snakemake {output.model}")
if output.get("evaluation"):
    from replication.experiments.evaluation import measure  # a training does not rest on it

    recorder, before = run.recorder(), time.process_time() if output.get("training") else 0.0
    trained = output.get("model", inputs.get("model"))
    evaluation, embedded, process, controls = measure(run, trained, params.parts)
    evaluation.save(output.metrics, output.reliability, output.predictions)
    save_embedded(output.embedded, embedded)
    np.savez(output.process, mean=process[0], sd=process[1])
    for name, table in controls.items():
        table.to_csv(output[name], index=False, float_format="%.5g" if name == "areas" else None)
    recorder.write(output.evaluation, earlier=(0.0, -before), command=f"snakemake {output.metrics}")
