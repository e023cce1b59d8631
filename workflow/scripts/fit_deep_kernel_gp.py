"""Train the deep-kernel Gaussian process on a run's training hours and measure it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from clai.baselines.deep_kernel_gp import evaluate_deep_kernel_gp, train_deep_kernel_gp
from clai.checkpoints import Checkpoint
from clai.datasets import prepared
from clai.experiments.evaluation import utilities_of
from clai.experiments.training import choose_device, splits_of
from clai.runs.jobs import start_job
from clai.runs.record import Recorder, digest, file_digest

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="training.batch_size or baselines.gp.inducing_points")
settings, run, names, made = snakemake.params.settings, snakemake.params.run, snakemake.wildcards, snakemake.output
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
name = f"{names.dataset}/deep-kernel-gp/{names.run}"
recorder = Recorder(name, settings, data.info, **run, device=device.type)
# The state is one of the training: what is measured afterwards may change.
read = {key: value for key, value in settings.items() if key != "evaluation"}
own = [read, run, file_digest([snakemake.input.prepared, *snakemake.input.library]), device.type]
split = splits_of(data, settings, device=device, **run)
with Checkpoint(Path(snakemake.params.checkpoint), digest(own), snakemake.config["checkpoint_seconds"]) as checkpoint:
    model, history = train_deep_kernel_gp(split, settings, run["seed"], device, checkpoint)
found, latent = evaluate_deep_kernel_gp(model, split, settings, run["seed"], utilities_of(data, settings, **run))
found.metrics.to_csv(made.metrics, index=False)
found.reliability.to_csv(made.reliability, index=False)
np.savez(made.predictions, **found.predictions)
np.savez(made.latent, mean=latent.mean.numpy(), sd=latent.sd.numpy())
recorder.write(
    made.record,
    earlier_seconds=checkpoint.earlier,
    earlier_cpu_seconds=checkpoint.earlier_cpu,
    history=history,
    command=f"snakemake {made.metrics}",
)
