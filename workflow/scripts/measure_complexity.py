"""Measure time and memory of training."""

import json
import logging
from pathlib import Path

from replication.experiments.schedules import EPOCH, MINIATURE, Sizes, measure
from replication.models.run import choose_device, choose_precision
from replication.runs.registry import BENCHMARK_TITLE
from replication.runs.run import Recorder, RunId, start_job, use_threads, write_records

start_job(snakemake.log[0])
logging.getLogger("clailearn").setLevel(logging.WARNING)  # A line for each epoch would be many, and would be timed.
output, settings = snakemake.output, snakemake.params.settings
use_threads(settings["threads"])
device = choose_device(settings["device"])
settings["training"]["precision"] = choose_precision(settings["training"]["precision"], device)
settings["encoder"] |= {"trunk": "resnet2d", "pool": True}  # Pictures are halved, for a sixth of the time.
settings["training"] |= EPOCH
settings["target"] |= {"multiclass": "product"}
recorder = Recorder(RunId("benchmark", "measurements", 0), settings, {"files": []}, device.type)
sizes = Sizes(**settings["benchmark"], **(MINIATURE if settings["miniature"] else {}))
measure(settings, device, sizes).to_csv(output.measured, index=False, float_format="%.6g")
write_records(Path(output.records), [recorder.finish(command=f"snakemake {output.measured}")])
title = BENCHMARK_TITLE + (" (miniature synthetic)" if settings["miniature"] else "")
about = {"title": title, "miniature": settings["miniature"], "source": "random", "files": [], "licence": "generated"}
Path(output.description).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")
