"""Trace the latent signals of one stay, and describe those of all stays for claim 11."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.datasets import prepared
from replication.experiments.latent_signals import trace_signals
from replication.runs.gather import gather
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
stay, statistics = trace_signals(data, snakemake.input.embedded, snakemake.input.latent)
statistics |= {path: pd.read_csv(path) for path in snakemake.input.controls}
stay.to_csv(snakemake.output.signals, index=False, float_format="%.5g")
gather(statistics, ["model", "seed", "fold", "quantity", "value"]).to_csv(snakemake.output.latent, index=False)
