"""Predict with the cross-entropy baseline and measure."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.datasets import prepared
from clai.experiments.evaluation import evaluate_cross_entropy
from clai.experiments.training import build_classifier, choose_device, inputs_of, load_parameters
from clai.runs.jobs import start_job
from clai.runs.record import Recorder

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="encoder.width")
settings, run = snakemake.params.settings, snakemake.params.run
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
names = snakemake.wildcards
recorder = Recorder(f"{names.dataset}/cross-entropy/{names.run}", settings, data.info, **run, device=device.type)
inputs = inputs_of(data, settings)
classifier = build_classifier(settings, inputs, len(data.info["classes"]), run["seed"])
load_parameters(snakemake.input.model, classifier)
found = evaluate_cross_entropy(classifier, data, settings, run["seed"], run["fold"], device)
found.metrics.to_csv(snakemake.output.metrics, index=False)
found.reliability.to_csv(snakemake.output.reliability, index=False)
np.savez(snakemake.output.predictions, **found.predictions)
recorder.write(snakemake.output.record, command=f"snakemake {snakemake.output.metrics}")
