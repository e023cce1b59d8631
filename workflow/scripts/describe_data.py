"""Describe the data of a dataset or study."""

from pathlib import Path

from replication.runs.run import describe, start_job

start_job(snakemake.log[0])
text = describe(Path(snakemake.input.prepared), snakemake.params.samples)
Path(snakemake.output[0]).write_text(text, encoding="utf-8")
