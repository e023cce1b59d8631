"""Check the mathematics numerically and write the tidy table of what was found."""

from typing import TYPE_CHECKING

import torch

from clai.jobs import start_job
from clai.theory import check_all

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
torch.set_num_threads(snakemake.threads)
settings = snakemake.params.settings
checks = {name: settings[name] for name in ("parzen", "bound", "floor")}
check_all(checks, settings["seeds"]).to_csv(snakemake.output[0], index=False)
