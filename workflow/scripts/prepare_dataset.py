"""Turn the raw files of one dataset into its prepared form."""

from dataclasses import replace
from pathlib import Path

from replication.datasets.sources import Raw, prepare
from replication.runs.jobs import start_job
from replication.runs.record import StageMeter, disk_mb

start_job(snakemake.log[0])
meter = StageMeter("prepare")
raw = Raw.read(Path(snakemake.input.raw))
# Files that changed since their checksums were taken must not be read: dataset.json would name the old checksums.
raw.check_sizes(Path(snakemake.input.raw))
raw = replace(raw, dataset=snakemake.wildcards.dataset)
settings = snakemake.params.settings | {"memory_gb": snakemake.resources.memory_gb}
prepare(raw, Path(snakemake.output.description).parent, settings, snakemake.params.seed)
meter.write(snakemake.output.resources, disk_mb(Path(snakemake.output.description).parent.iterdir()))
