"""Fit a model of rows or of embeddings on a run's training samples, and measure it."""

import numpy as np

from replication.experiments.evaluation import evaluate
from replication.models.base import create, on_embeddings
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.registry import MODELS
from replication.runs.run import start_job

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
run = Run.for_job(snakemake, output.metrics)
if inputs.embedded:
    run = on_embeddings(run, load_embedded(inputs.embedded))
recorder, model = run.recorder(), create(run.model)
model.fit(run, None)
evaluate(run, model)[0].save(output.metrics, output.reliability, output.predictions)
mean, sd = model.latent(run, run.splits.test) if MODELS[run.model].latent else ((), ())
np.savez(output.process, mean=mean, sd=sd)
recorder.write(output.record, **model.choices, command=f"snakemake {output.metrics}")
