"""Train one model on one dataset with one seed."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch

from clai.checkpoints import Checkpoint
from clai.datasets import prepared
from clai.experiments.training import choose_device, save_parameters, train_clai, train_cross_entropy
from clai.runs.jobs import start_job, with_block
from clai.runs.record import Recorder, digest, file_digest

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="training.batch_size, training.references or encoder.width")
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
recorder = Recorder(f"{names.dataset}/{names.model}/{names.run}", settings, data.info, **run, device=device.type)
own = [settings, names.model, run, file_digest([snakemake.input.prepared, *snakemake.input.library]), device.type]
with Checkpoint(Path(snakemake.params.checkpoint), digest(own), snakemake.config["checkpoint_seconds"]) as checkpoint:
    bounded = with_block(settings, snakemake.resources.inference_block)
    arguments = (data, bounded, run["seed"], run["fold"], device, checkpoint)
    if names.model == "cross-entropy":
        classifier, history = train_cross_entropy(*arguments)
        model: torch.nn.Module = classifier
    else:
        trained, history = train_clai(names.model, *arguments)
        model = torch.nn.ModuleList(trained)
save_parameters(snakemake.output.model, model)
pd.DataFrame(history).to_csv(snakemake.output.history, index=False)
pairs = sum(row.get("pairs", 0) for row in history)
recorder.write(
    snakemake.output.record,
    earlier_seconds=checkpoint.earlier,
    earlier_cpu_seconds=checkpoint.earlier_cpu,
    pairs=pairs,
    command=f"snakemake {snakemake.output.model}",
)
