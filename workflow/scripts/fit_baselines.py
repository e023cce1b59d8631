"""Fit models of rows or of embeddings on a run's training samples, one after another, and measure them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replication.experiments.evaluation import evaluate
from replication.models.base import create, embedded_splits
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.models import MODELS
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="samples_per_class of the models below `baselines`")
output, embedded = snakemake.output, snakemake.input.get("embedded")
first = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(output.record[0]))
splits = embedded_splits(first, load_embedded(embedded)) if embedded else first.splits
for i, name in enumerate(snakemake.params.models):
    run = replace(first, id=RunId.parse(output.record[i]))
    recorder, model = run.recorder(), create(name)
    model.fit(run, splits, None)
    evaluation = evaluate(run, model, splits)
    evaluation.save(output.metrics[i], output.reliability[i], output.predictions[i])
    if MODELS[name].latent:
        mean, sd = model.latent(run, splits.test)
        np.savez(Path(output.metrics[i]).with_name("latent.npz"), mean=mean, sd=sd)
    own = [files[i] for files in (output.metrics, output.reliability, output.predictions)]
    recorder.write(output.record[i], disk_mb=disk_mb(own), **model.choices, command=f"snakemake {output.metrics[i]}")
