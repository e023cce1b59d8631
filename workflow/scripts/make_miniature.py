"""Generate the raw files of one dataset in miniature."""

from pathlib import Path

from replication.datasets.miniature import make
from replication.runs.run import start_job

start_job(snakemake.log[0])
make(snakemake.wildcards.dataset, Path(snakemake.output.table).parent)
