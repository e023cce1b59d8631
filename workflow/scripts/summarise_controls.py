"""Gather one table of the controls from all runs on a dataset."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.runs.columns import COLUMNS
from replication.runs.gather import gather
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
tables = {path: pd.read_csv(path) for path in snakemake.input.tables}
output = Path(snakemake.output[0])
gather(tables, COLUMNS[output.name]).to_csv(output, index=False)
