"""Compute the evidence of a dataset or study from its published predictions and compare it."""

from pathlib import Path

from replication.report.evidence import Evidence
from replication.report.verify import verify_dataset
from replication.runs.run import start_job

start_job(snakemake.log[0])
files = [*snakemake.input.evidence, *snakemake.input.predictions]
evidence = Evidence.of_files(Path(snakemake.params.root), snakemake.params.datasets, files)
numbers, recomputed = verify_dataset(evidence, snakemake.wildcards.name)
numbers.to_csv(snakemake.output.numbers, index=False)
Path(snakemake.output.evidence).mkdir(parents=True, exist_ok=True)
for name, frame in recomputed.items():
    frame.to_csv(Path(snakemake.output.evidence, name), index=False, float_format="%.17g")
