"""Join the tables of single runs into a file of evidence."""

from pathlib import Path

from replication.runs.gather import gather_files
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
path = Path(snakemake.output[0])
gather_files(snakemake.input.tables, path.name, snakemake.params.of_study).to_csv(path, index=False)
