"""Measure time and memory of training and inference."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from replication.benchmark.measure import describe, measure_all
from replication.models.hardware import choose_device, choose_precision
from replication.runs.identity import RunId
from replication.runs.jobs import start_job, use_threads
from replication.runs.record import Recorder, write_records

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
output, settings = snakemake.output, snakemake.params.settings
use_threads(settings["threads"])
device, description = choose_device(settings["device"]), describe(settings)
settings["training"]["precision"] = choose_precision(settings["training"]["precision"], device)
recorder = Recorder(RunId("benchmark", "measurements", 0), settings, description, device=device.type)
measure_all(settings, device).to_csv(output.measured, index=False, float_format="%.6g")
write_records(Path(output.records).parent, [recorder.finish(command=f"snakemake {output.measured}")])
Path(output.description).write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
