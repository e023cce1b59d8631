"""Join the tables or records of single runs into a file of evidence, or describe their data."""

from pathlib import Path

from replication.runs.run import start_job, write_gathered

start_job(snakemake.log[0])
given, params = snakemake.input.files, snakemake.params
write_gathered(Path(snakemake.output[0]), given, params.study, params.samples)
