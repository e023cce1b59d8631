"""Gather metrics, reliability tables, histories and records of all runs on a dataset."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.runs.gather import gather
from clai.runs.jobs import start_job
from clai.runs.record import with_evaluation

if TYPE_CHECKING:
    from snakemake.script import snakemake

COLUMNS = {
    "metrics": ["dataset", "model", "seed", "fold", "rule", "metric", "value"],
    "reliability": ["model", "seed", "fold", "mapping", "bin", "n", "confidence", "accuracy"],
    "history": [
        "dataset", "model", "seed", "fold", "epoch", "loss", "floor", "alignment", "centred_alignment",
        "validation_accuracy", "learning_rate", "pairs",
    ],
}  # fmt: skip

start_job(snakemake.log[0])
for name, columns in COLUMNS.items():
    tables = {path: pd.read_csv(path) for path in snakemake.input[name]}
    gather(tables, columns).to_csv(snakemake.output[name], index=False)
records, evaluations = (
    {Path(path).parent: json.loads(Path(path).read_text()) for path in paths}
    for paths in (snakemake.input.records, snakemake.input.evaluations)
)
records |= {run: with_evaluation(records[run], evaluation) for run, evaluation in evaluations.items()}
Path(snakemake.output.records).write_text(json.dumps(list(records.values()), indent=1, sort_keys=True) + "\n")
shutil.copyfile(snakemake.input.prepared, snakemake.output.description)
