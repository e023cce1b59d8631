"""Fit the classifiers of rows of features, or of hours of recordings, on a run's training rows and measure them."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from replication.experiments.evaluation import evaluate_rows
from replication.models.row_classifiers import fit_row_classifier
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(
    snakemake.log[0],
    lower="baselines.gradient_boosting.samples_per_class or baselines.logistic_regression.samples_per_class",
)
output = snakemake.output
run = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(output.record[0]))
train, val, test = ((items.x.numpy(), items.labels.numpy()) for items in run.splits)
for i, model in enumerate(snakemake.params.models):
    recorder = replace(run, id=RunId.parse(output.record[i])).recorder()
    classifier, choices = fit_row_classifier(model, train, val, run.settings["baselines"], run.id.seed)
    evaluation = evaluate_rows(run, classifier.scores(test[0]), classifier.scores(val[0]))
    evaluation.save(output.metrics[i], output.reliability[i], output.predictions[i])
    if model == "gp":
        mean, sd = classifier.process.latent(test[0])
        np.savez(output.latent, mean=mean, sd=sd)
    own = [files[i] for files in (output.metrics, output.reliability, output.predictions)]
    recorder.write(output.record[i], disk_mb=disk_mb(own), **choices, command=f"snakemake {output.metrics[i]}")
