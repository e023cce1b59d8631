"""Train and evaluate one model on the user's own data with one seed."""

import numpy as np
import pandas as pd

from replication.experiments.evaluation import measure
from replication.models.base import create
from replication.models.embedding import save_embedded
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
recorder.write(output.training, earlier=checkpoint.earlier, command=f"snakemake {output.model}")
recorder = run.recorder()
evaluation, embedded, process, controls = measure(run, output.model, params.parts)
evaluation.save(output.metrics, output.reliability, output.predictions)
save_embedded(output.embedded, embedded)
np.savez(output.process, mean=process[0], sd=process[1])
for name, table in controls.items():
    table.to_csv(output[name], index=False)
recorder.write(output.record, command=f"snakemake {output.metrics}")
