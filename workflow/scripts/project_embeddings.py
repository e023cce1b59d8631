"""Project test embeddings to two dimensions: t-SNE for both kernels, and the stages of the conditioning."""

from pathlib import Path
from typing import TYPE_CHECKING

from replication.experiments.projections import project
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.models.training import load_clai
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
settings, embedded = snakemake.params.settings, [Path(path) for path in snakemake.input.embedded]
runs = [Run.open(snakemake.input.prepared, settings, RunId.parse(path)) for path in embedded]
tsne, stages = project(
    (run, load_clai(run, path.with_name("model.safetensors")).kernel, load_embedded(path)["test"])
    for run, path in zip(runs, embedded, strict=True)
)
# gzip writes the time into its header unless told not to
compression = {"method": "gzip", "mtime": 0}
tsne.to_csv(snakemake.output.tsne, index=False, float_format="%.3f", compression=compression)
stages.to_csv(snakemake.output.stages, index=False, float_format="%.4f", compression=compression)
