"""Join the tables or records of single runs into a file of evidence."""

from pathlib import Path

from replication.runs.run import start_job, write_gathered

start_job(snakemake.log[0])
write_gathered(Path(snakemake.output[0]), snakemake.input.files, snakemake.params.study)
