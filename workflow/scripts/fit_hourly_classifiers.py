"""Fit the classifiers of single hours on a run's training hours and measure them."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.baselines.hourly_classifiers import fit_hourly_classifier
from clai.datasets import prepared
from clai.experiments.baseline_evaluation import evaluate_log_odds
from clai.experiments.evaluation import utilities_of
from clai.experiments.training import splits_of
from clai.runs.jobs import start_job
from clai.runs.record import Recorder

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(
    snakemake.log[0],
    lower="baselines.gradient_boosting.samples_per_class or baselines.logistic_regression.samples_per_class",
)
settings, run, names, made = snakemake.params.settings, snakemake.params.run, snakemake.wildcards, snakemake.output
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
split = splits_of(data, settings, device=torch.device("cpu"), **run)
train, val, test = ((part.x.numpy(), part.labels.numpy()) for part in split)
utilities = utilities_of(data, settings, **run)
for i, model in enumerate(snakemake.params.models):
    name = f"{names.dataset}/{model}/{names.run}"
    recorder = Recorder(name, settings, data.info, **run, device="cpu")
    classifier, chosen = fit_hourly_classifier(model, train, val, settings, run["seed"])
    found = evaluate_log_odds(
        classifier.log_odds(test[0]), test[1], classifier.log_odds(val[0]), val[1], settings, utilities
    )
    found.metrics.to_csv(made.metrics[i], index=False)
    found.reliability.to_csv(made.reliability[i], index=False)
    np.savez(made.predictions[i], **found.predictions)
    if model == "gp":
        mean, sd = classifier.process.latent(test[0])
        np.savez(made.latent, mean=mean, sd=sd)
    recorder.write(made.record[i], **chosen, command=f"snakemake {made.metrics[i]}")
