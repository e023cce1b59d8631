"""Fit the Gaussian process on a run's embeddings and measure it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.baselines.evaluation import as_vectors, evaluate_baseline
from clai.baselines.gaussian_process import fit_gaussian_process
from clai.experiment import load_embedded
from clai.logs import log_to
from clai.provenance import Recorder

if TYPE_CHECKING:
    from snakemake.script import snakemake

log_to(snakemake.log[0])
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
description = json.loads(Path(snakemake.input.prepared).read_text())
recorder = Recorder(f"{names.dataset}/gp/{names.run}", settings, description, **run, device="cpu")
embedded = load_embedded(snakemake.input.embedded)
z, y = as_vectors(embedded["train"])
process = fit_gaussian_process(z, y, **settings["baselines"]["gp"], seed=run["seed"], device="cpu")
metrics, reliability = evaluate_baseline(process, embedded, settings)
metrics.to_csv(snakemake.output.metrics, index=False)
reliability.to_csv(snakemake.output.reliability, index=False)
mean, sd = process.latent(as_vectors(embedded["test"])[0])
np.savez(snakemake.output.latent, mean=mean, sd=sd)
recorder.write(snakemake.output.record, command=f"snakemake {snakemake.output.metrics}")
