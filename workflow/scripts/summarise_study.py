"""Gather metrics, histories and records of all cells of a study."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.runs.gather import gather
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

COLUMNS = {
    "metrics": ["dataset", "model", "seed", "fold", "rule", "metric", "value"],
    "history": [
        "dataset", "model", "seed", "fold", "epoch", "loss", "floor", "alignment", "centred_alignment",
        "validation_accuracy", "learning_rate", "pairs", "passes",
    ],
}  # fmt: skip

start_job(snakemake.log[0])
for name, columns in COLUMNS.items():
    tables = {path: pd.read_csv(path) for path in snakemake.input[name]}
    gather(tables, columns).to_csv(snakemake.output[name], index=False)
records = [json.loads(Path(path).read_text()) for path in snakemake.input.records]
Path(snakemake.output.records).write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
description = json.loads(Path(snakemake.input.prepared).read_text())
if snakemake.params.samples is not None:
    description["title"] += (
        f", {snakemake.params.samples:,} of {description['splits']['train']['n']:,} training samples"
    )
Path(snakemake.output.description).write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
