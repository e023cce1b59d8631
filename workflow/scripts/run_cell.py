"""Train and measure one cell of a study."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clai.datasets import prepared
from clai.experiment import choose_device
from clai.logs import log_to
from clai.provenance import Recorder, checksums, digest, file_digest
from clai.studies import run_cell

if TYPE_CHECKING:
    from snakemake.script import snakemake

log_to(snakemake.log[0])
settings, run, names = snakemake.params.settings, snakemake.params.run, snakemake.wildcards
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
device = choose_device(settings["device"])
recorder = Recorder(f"{names.study}/{names.cell}/{names.run}", settings, data.info, **run, device=device.type)
checkpoint = Path(snakemake.params.checkpoint)
fingerprint = digest([settings, checksums(data.info), names.cell, run, file_digest(snakemake.input.library)])
cell = run_cell(data, settings, run["seed"], device, checkpoint, fingerprint)
cell.metrics.to_csv(snakemake.output.metrics, index=False)
cell.history.to_csv(snakemake.output.history, index=False)
recorder.write(snakemake.output.record, **cell.figures, command=f"snakemake {snakemake.output.metrics}")
checkpoint.unlink(missing_ok=True)
