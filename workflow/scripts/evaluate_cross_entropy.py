"""Predict with the cross-entropy baseline and measure."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clai.datasets import prepared
from clai.experiment import build_classifier, choose_device, evaluate_cross_entropy, load_parameters, splits_of
from clai.logs import log_to

if TYPE_CHECKING:
    from snakemake.script import snakemake

log_to(snakemake.log[0])
settings, run = snakemake.params.settings, snakemake.params.run
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
inputs = splits_of(data, settings, run["fold"], run["seed"], torch.device("cpu")).train.inputs
classifier = build_classifier(settings, inputs, len(data.info["classes"]), run["seed"])
load_parameters(snakemake.input.model, classifier)
device = choose_device(settings["device"])
metrics, reliability = evaluate_cross_entropy(classifier, data, settings, run["seed"], run["fold"], device)
metrics.to_csv(snakemake.output.metrics, index=False)
reliability.to_csv(snakemake.output.reliability, index=False)
