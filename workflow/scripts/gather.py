"""Join the tables or records of single runs into a file of evidence."""

from pathlib import Path

from replication.runs.outputs import RECORDS
from replication.runs.registry import read_json
from replication.runs.run import gather_files, start_job, write_records

start_job(snakemake.log[0])
path, files = Path(snakemake.output[0]), snakemake.input.files
if path.name in RECORDS:
    write_records(path, [read_json(file) for file in files])
else:
    gather_files(files, path.name, snakemake.params.study).to_csv(path, index=False)
