"""Find or download the raw files of one dataset, verify them and write their manifest."""

from pathlib import Path

from replication.datasets.sources import obtain
from replication.runs.jobs import start_job
from replication.runs.record import MIB, StageMeter

start_job(snakemake.log[0])
meter = StageMeter("download")
params = snakemake.params
raw = obtain(
    snakemake.wildcards.dataset,
    params.settings,
    table=Path(snakemake.input.table),
    folder=Path(params.folder),
    miniature=params.miniature,
)
raw.write(Path(snakemake.output.manifest))
meter.write(snakemake.output.resources, round(sum(file["size"] for file in raw.files) / MIB, 3))
