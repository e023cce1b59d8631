"""Fit the mixture of Student-t distributions on a run's embeddings and measure it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clai.baselines.evaluation import as_vectors, evaluate_baseline
from clai.baselines.student_t_mixture import fit_student_t_mixture
from clai.experiment import load_embedded
from clai.logs import log_to
from clai.provenance import Recorder

if TYPE_CHECKING:
    from snakemake.script import snakemake

log_to(snakemake.log[0])
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
description = json.loads(Path(snakemake.input.prepared).read_text())
recorder = Recorder(f"{names.dataset}/student-t-mixture/{names.run}", settings, description, **run, device="cpu")
embedded = load_embedded(snakemake.input.embedded)
z, y = as_vectors(embedded["train"])
mixture = fit_student_t_mixture(z, y, **settings["baselines"]["student_t_mixture"], seed=run["seed"])
metrics, reliability = evaluate_baseline(mixture, embedded, settings)
metrics.to_csv(snakemake.output.metrics, index=False)
reliability.to_csv(snakemake.output.reliability, index=False)
recorder.write(snakemake.output.record, command=f"snakemake {snakemake.output.metrics}")
