"""Fit and measure one cell of a study."""

from pathlib import Path

import pandas as pd

from replication.experiments.evaluation import run_cell
from replication.experiments.predictions import save_predictions
from replication.models.base import on_embeddings
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
run = Run.for_job(snakemake, output.metrics)
recorder = run.recorder()
with run.checkpoint(output.metrics, inputs) as checkpoint:
    model, evaluation, history = run_cell(
        on_embeddings(run, load_embedded(inputs.embedded)) if inputs.embedded else run, checkpoint
    )
evaluation.metrics.to_csv(output.metrics, index=False)
save_predictions(Path(output.predictions), {run.id: evaluation.predictions})
seconds = pd.Series(checkpoint.epoch_seconds, dtype=float).cumsum()
history.assign(seconds=seconds).to_csv(output.history, index=False)
recorder.write(output.record, earlier=checkpoint.earlier, **model.choices, command=f"snakemake {output.metrics}")
