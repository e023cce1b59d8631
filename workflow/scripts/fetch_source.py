"""Find or download the raw files of one dataset, verify them and write their manifest."""

from pathlib import Path

from replication.datasets.sources import obtain
from replication.runs.run import start_job

start_job(snakemake.log[0])
params = snakemake.params
raw = obtain(
    snakemake.wildcards.dataset,
    params.settings,
    table=Path(snakemake.input.table),
    folder=Path(params.folder),
    miniature=params.miniature,
)
raw.write(Path(snakemake.output.manifest))
