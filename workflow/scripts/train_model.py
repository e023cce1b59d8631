"""Train one model on one dataset with one seed."""

import pandas as pd

from replication.models.base import create
from replication.models.run import Run
from replication.runs.run import start_job

start_job(snakemake.log[0])
inputs, output, params = snakemake.input, snakemake.output, snakemake.params
run = Run.for_job(snakemake, output.model)
recorder = run.recorder()
with run.checkpoint(params.checkpoint, [inputs.prepared, inputs.library]) as checkpoint:
    model = create(run.model)
    history = model.fit(run, checkpoint)
model.save(output.model)
pd.DataFrame(history).to_csv(output.history, index=False)
recorder.write(output.record, earlier=checkpoint.earlier, command=f"snakemake {output.model}")
