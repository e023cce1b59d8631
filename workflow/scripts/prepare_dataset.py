"""Turn the raw files of one dataset into its prepared form."""

from dataclasses import replace
from pathlib import Path

from replication.datasets.sources import Raw, prepare
from replication.runs.run import start_job

start_job(snakemake.log[0])
raw = Raw.read(Path(snakemake.input.raw))
# Files that changed since their checksums were taken must not be read: dataset.json would name the old checksums.
raw.check_sizes(Path(snakemake.input.raw))
raw = replace(raw, dataset=snakemake.wildcards.dataset)
settings = snakemake.params.settings | {"memory_gb": snakemake.resources.memory_gb}
prepare(raw, Path(snakemake.output.description).parent, settings, snakemake.params.seed)
