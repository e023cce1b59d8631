"""Choose the width of the Parzen window on validation samples, and measure it and coarser scores on test samples."""

from pathlib import Path

from clailearn.encoders import place
from replication.experiments.bandwidth import VALIDATION_SAMPLES, measure_bandwidth
from replication.experiments.published import reopen
from replication.models.embedding import draw_items, embed, further_views
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
inputs = snakemake.input
published, run = reopen(Path(inputs.record).parent, Path(inputs.prepared).parent)
place(published.network, run.device)
val, test = (
    embed(run, published.network, items, draw_items(items, count, run.id.seed), further_views(run))
    for items, count in ((run.splits.val, VALIDATION_SAMPLES), (run.splits.test, None))
)
measure_bandwidth(published.kernel, published.references, val, test).to_csv(snakemake.output[0], index=False)
