"""Trace the latent signals of one stay of a dataset of recordings, and describe those of all stays."""

from pathlib import Path

import pandas as pd

from replication.datasets import prepared
from replication.experiments.latent import likenesses, mean_areas, trace_signals
from replication.runs.run import COLUMNS, gather, start_job

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
stay, processes = trace_signals(data, snakemake.input.embedded, snakemake.input.latent)
alike = likenesses(snakemake.input.predictions, snakemake.input.latent)
statistics = processes | alike | {path: pd.read_csv(path) for path in snakemake.input.controls}
areas = gather({path: pd.read_csv(path) for path in snakemake.input.areas}, ["model", "seed", "since_onset", "area"])
mean_areas(areas).to_csv(snakemake.output.areas, index=False, float_format="%.5g")
stay.to_csv(snakemake.output.signals, index=False, float_format="%.5g")
gather(statistics, COLUMNS["latent.csv"]).to_csv(snakemake.output.latent, index=False)
