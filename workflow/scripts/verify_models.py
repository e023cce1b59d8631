"""Evaluate published models on prepared data and compare them with their runs."""

from pathlib import Path

import pandas as pd

from replication.experiments.packing import evaluate, keeps_weights
from replication.models.run import choose_device, choose_precision
from replication.report.evidence import Evidence
from replication.report.verify import verify_model
from replication.runs.registry import read_json
from replication.runs.run import RunId, start_job

start_job(snakemake.log[0])
evidence = Evidence.of_files(Path(snakemake.params.root), snakemake.params.datasets, snakemake.input.evidence)
metrics = evidence.metrics(snakemake.wildcards.dataset)
device = choose_device("auto")
here = choose_precision("auto", device)
numbers = []
for folder in snakemake.input.models:
    record = read_json(Path(folder, "model.json"))
    measured = evaluate(folder, Path(snakemake.input.prepared).parent)
    same = record["settings"]["precision"] in ("float32", here) and keeps_weights(folder)
    same &= record["record"]["evaluation"]["device"] == device.type
    numbers.append(verify_model(RunId.parse(record["run"]), metrics, measured, same))
pd.concat(numbers).to_csv(snakemake.output[0], index=False)
