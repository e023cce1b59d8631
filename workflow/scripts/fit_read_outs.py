"""Fit the read-outs on one embedding and measure them."""

from replication.experiments.embeddings import open_view
from replication.experiments.read_outs import VALIDATION_SAMPLES, measure_read_outs
from replication.models.embedding import draw_items, embed
from replication.models.run import Run
from replication.runs.controls import READ_OUT_SAMPLES
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
inputs, output, params = snakemake.input, snakemake.output, snakemake.params
run = Run.open(inputs.prepared, params.settings, RunId.parse(output[0]))
view = open_view(run, snakemake.wildcards.embedding, inputs.model or None)
drawn = {
    "train": draw_items(run.splits.train, READ_OUT_SAMPLES, run.id.seed),
    "val": draw_items(run.splits.val, VALIDATION_SAMPLES, run.id.seed),
    "test": None,
}
embedded = {name: embed(run, view.module, getattr(run.splits, name), positions) for name, positions in drawn.items()}
measure_read_outs(run, view.kernel, embedded).to_csv(output[0], index=False)
