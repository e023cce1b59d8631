"""Join the tables of single runs into a file of evidence."""

from pathlib import Path

from replication.runs.run import gather_files, start_job

start_job(snakemake.log[0])
path = Path(snakemake.output[0])
gather_files(snakemake.input.tables, path.name, snakemake.params.study).to_csv(path, index=False)
