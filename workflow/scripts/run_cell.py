"""Train and measure one cell of a study."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clai.checkpoints import Checkpoint
from clai.datasets import prepared
from clai.experiments.studies import run_cell
from clai.experiments.training import choose_device
from clai.runs.jobs import start_job, with_block
from clai.runs.record import Recorder, digest, file_digest

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="training.batch_size, training.references or encoder.width")
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
recorder = Recorder(f"{names.study}/{names.cell}/{names.run}", settings, data.info, **run, device=device.type)
# The state is one of the training: what is measured afterwards may change.
read = {key: value for key, value in settings.items() if key != "evaluation"}
own = [read, names.cell, run, file_digest([snakemake.input.prepared, *snakemake.input.library]), device.type]
with Checkpoint(Path(snakemake.params.checkpoint), digest(own), snakemake.config["checkpoint_seconds"]) as checkpoint:
    bounded = with_block(settings, snakemake.resources.inference_block)
    cell = run_cell(data, bounded, run["seed"], device, checkpoint)
cell.metrics.to_csv(snakemake.output.metrics, index=False)
cell.history.to_csv(snakemake.output.history, index=False)
recorder.write(
    snakemake.output.record,
    earlier_seconds=checkpoint.earlier,
    earlier_cpu_seconds=checkpoint.earlier_cpu,
    **cell.figures,
    command=f"snakemake {snakemake.output.metrics}",
)
