"""Put the records of runs, or of their evaluations, into a file of evidence, a line each."""

import json
from pathlib import Path

from replication.runs.run import start_job, write_records

start_job(snakemake.log[0])
path = Path(snakemake.output[0])
records = [json.loads(Path(file).read_text()) for file in snakemake.input.records]
write_records(path, records)
