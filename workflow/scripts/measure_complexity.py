"""Measure a part of time and memory of training and of votes."""

import logging

from replication.experiments.schedules import measure
from replication.models.run import choose_device, choose_precision
from replication.runs.run import Recorder, RunId, start_job, use_threads

start_job(snakemake.log[0])
logging.getLogger("clailearn").setLevel(logging.WARNING)  # A line for each epoch would be many, and would be timed.
output, settings = snakemake.output, snakemake.params.settings
use_threads(settings["threads"])
device = choose_device(settings["device"])
settings["training"]["precision"] = choose_precision(settings["training"]["precision"], device)
recorder = Recorder(RunId("benchmark", "measurements", 0), settings, {"files": []}, device.type)
measure(snakemake.wildcards.part, settings, device).to_csv(output.measured, index=False, float_format="%.6g")
recorder.write(output.record)
