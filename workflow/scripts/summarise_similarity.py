"""Gather the similarities between classes of all runs on a dataset."""

from typing import TYPE_CHECKING

import pandas as pd

from replication.runs.gather import gather
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
tables = {path: pd.read_csv(path) for path in [*snakemake.input.similarity, *snakemake.input.controls]}
gather(tables, ["model", "seed", "class_a", "class_b", "similarity"]).to_csv(snakemake.output[0], index=False)
