"""Intervals by patient and latent signals from all runs on recordings."""

from pathlib import Path

import pandas as pd

from replication.datasets import prepared
from replication.experiments.latent_signals import mean_areas, trace_signals
from replication.experiments.predictions import folds_of, read_runs, samples_of
from replication.metrics.bootstrap import patient_intervals
from replication.runs.columns import COLUMNS
from replication.runs.gather import gather
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
runs, samples = read_runs(snakemake.input.predictions), samples_of(data)
folds = folds_of(samples, runs, data.info.get("label_hours_before"))
models = list(dict.fromkeys(model for fold in folds for model in fold.predictions))  # seeds may differ by model
patient_intervals(folds, models).to_csv(snakemake.output.intervals, index=False, float_format="%.6g")
stay, processes = trace_signals(data, snakemake.input.embedded, snakemake.input.latent)
statistics = processes | {path: pd.read_csv(path) for path in snakemake.input.controls}
areas = gather({path: pd.read_csv(path) for path in snakemake.input.areas}, ["model", "seed", "since_onset", "area"])
mean_areas(areas).to_csv(snakemake.output.areas, index=False, float_format="%.5g")
stay.to_csv(snakemake.output.signals, index=False, float_format="%.5g")
gather(statistics, COLUMNS["latent.csv"]).to_csv(snakemake.output.latent, index=False)
