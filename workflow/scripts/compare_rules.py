"""Compare the printed rule with the Parzen-window Bayes rule on the embeddings of CLaI-M."""

from typing import TYPE_CHECKING

from replication.experiments.rule_agreement import measure_agreement
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.models.training import load_clai
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
run = Run.open(inputs.prepared, snakemake.params.settings, RunId.parse(output[0]))
kernel = load_clai(run, inputs.model).kernel
measure_agreement(run, kernel, load_embedded(inputs.embedded)).to_csv(output[0], index=False)
