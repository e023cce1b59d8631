"""Measure the area between the latent signals of published models around the onset of events."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.experiments.embeddings import embed_parts
from replication.experiments.latent_signals import areas_around_onset, as_seen
from replication.experiments.published import reopen_model
from replication.runs.columns import COLUMNS
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
parts = []
for record in snakemake.input.models:
    model, run = reopen_model(Path(record).parent, Path(snakemake.input.prepared).parent)
    view = model.views()[0]
    (test,) = embed_parts(run, view, {"test": None}).values()
    areas = areas_around_onset(*as_seen(run, view.kernel.cpu(), test))
    parts.append(areas.assign(model=run.id.model))
pd.concat(parts)[COLUMNS["areas.csv"]].to_csv(snakemake.output[0], index=False, float_format="%.5g")
