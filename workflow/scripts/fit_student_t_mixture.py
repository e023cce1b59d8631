"""Fit the mixture of Student-t distributions on a run's embeddings and measure it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.baselines.student_t_mixture import choose_student_t_mixture
from clai.checkpoints import Checkpoint
from clai.datasets import prepared
from clai.experiments.baseline_evaluation import as_vectors, evaluate_baseline
from clai.experiments.evaluation import utilities_of
from clai.experiments.training import load_embedded
from clai.runs.jobs import start_job
from clai.runs.record import Recorder, digest, file_digest

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="baselines.student_t_mixture.samples_per_class")
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
recorder = Recorder(f"{names.dataset}/student-t-mixture/{names.run}", settings, data.info, **run, device="cpu")
embedded = load_embedded(snakemake.input.embedded)
z, y = as_vectors(embedded["train"])
own = settings["baselines"]["student_t_mixture"]
fingerprint = digest([own, run, file_digest([snakemake.input.embedded, *snakemake.input.library])])
with Checkpoint(Path(snakemake.params.checkpoint), fingerprint, snakemake.config["checkpoint_seconds"]) as checkpoint:
    mixture, chosen = choose_student_t_mixture(
        z, y, *as_vectors(embedded["val"]), **own, seed=run["seed"], checkpoint=checkpoint
    )
found = evaluate_baseline(mixture, embedded, settings, utilities_of(data, settings, **run))
found.metrics.to_csv(snakemake.output.metrics, index=False)
found.reliability.to_csv(snakemake.output.reliability, index=False)
np.savez(snakemake.output.predictions, **found.predictions)
recorder.write(
    snakemake.output.record,
    earlier_seconds=checkpoint.earlier,
    earlier_cpu_seconds=checkpoint.earlier_cpu,
    **chosen,
    command=f"snakemake {snakemake.output.metrics}",
)
