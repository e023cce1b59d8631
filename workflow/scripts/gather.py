"""Join the tables, predictions or records of single runs into a file of evidence, or describe their data and test samples."""

from pathlib import Path

from replication.runs.run import start_job, write_gathered

start_job(snakemake.log[0])
path, given, params = Path(snakemake.output[0]), snakemake.input.files, snakemake.params
if path.suffix != ".parquet":
    write_gathered(path, given, params.study, params.samples)
else:  # whose imports take longer than what the other files need
    from replication.experiments.predictions import gather_predictions

    gather_predictions(path, list(map(Path, given)))
