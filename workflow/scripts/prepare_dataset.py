"""Turn the raw files of one dataset into its prepared form."""

from dataclasses import replace
from pathlib import Path

from replication.datasets.sources import Raw, prepare
from replication.runs.registry import REPOSITORY_DATASETS
from replication.runs.run import start_job

start_job(snakemake.log[0])
raw = Raw.read(Path(snakemake.input.raw))
# Files that changed since their checksums were taken must not be read: dataset.json would name the old checksums.
raw.check_sizes(Path(snakemake.input.raw))
raw = replace(raw, dataset=snakemake.wildcards.dataset)
settings = snakemake.params.settings | {"memory_gb": snakemake.resources.memory_gb}
prepare(raw, Path(snakemake.output.description).parent, settings, snakemake.params.seed)
if raw.dataset not in REPOSITORY_DATASETS:
    from replication.models.run import check_runs  # imports torch, which other datasets need not here

    check_runs(snakemake.config, raw.dataset, Path(snakemake.output.description))
