"""Embed all samples with a trained model, infer, and measure."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.datasets import prepared
from clai.experiments.evaluation import class_similarity, evaluate_clai, utilities_of
from clai.experiments.training import (
    build_clai,
    choose_device,
    conditions_of,
    embed_splits,
    inputs_of,
    load_parameters,
    save_embedded,
)
from clai.runs.jobs import start_job, with_block
from clai.runs.record import Recorder

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="inference.block")
settings, run = snakemake.params.settings, snakemake.params.run
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
names = snakemake.wildcards
recorder = Recorder(f"{names.dataset}/{names.model}/{names.run}", settings, data.info, **run, device=device.type)
conditions = conditions_of(data.info)
inputs = inputs_of(data, settings)
trained = build_clai(settings, names.model, inputs, conditions, run["seed"])
load_parameters(snakemake.input.model, torch.nn.ModuleList(trained))
embedded = embed_splits(trained, data, settings, run["seed"], run["fold"], device)
save_embedded(snakemake.output.embedded, embedded)
utilities = utilities_of(data, settings, **run)
bounded = with_block(settings, snakemake.resources.inference_block)
found = evaluate_clai(trained.kernel, embedded, conditions, bounded, run["seed"], utilities)
found.metrics.to_csv(snakemake.output.metrics, index=False)
found.reliability.to_csv(snakemake.output.reliability, index=False)
np.savez(snakemake.output.predictions, **found.predictions)
similarity = class_similarity(
    trained.kernel,
    embedded["test"],
    len(data.info["classes"]),
    settings["evaluation"]["similarity_samples"],
    run["seed"],
)
similarity.to_csv(snakemake.output.similarity, index=False)
recorder.write(snakemake.output.record, command=f"snakemake {snakemake.output.metrics}")
