"""Make a trained model ready to be published, and write its card."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from replication.experiments.packing import KEPT_REFERENCES, pack
from replication.models.base import create
from replication.models.clai import CLaI
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.report.cards import card
from replication.report.evidence import printed_reading
from replication.runs.registry import read_json
from replication.runs.run import start_job
from replication.runs.settings import merge

start_job(snakemake.log[0])
given, params = snakemake.input, snakemake.params
trained, evaluated = (read_json(path) for path in (given.training, given.evaluation))
run = Run.for_job(snakemake, given.model)
precision = evaluated["settings"]["training"]["precision"]  # this machine may choose another one for itself
run = replace(run, settings=merge(run.settings, {"training": {"precision": precision}}))
model = create(run.model).load(run, given.model)
embedded = load_embedded(given.embedded) if isinstance(model, CLaI) else None
measured = pd.read_csv(given.metrics)
metrics = measured[printed_reading(measured)].set_index("metric")["value"]
made = Path(snakemake.output.card)
record = pack(
    run,
    model,
    embedded,
    max(KEPT_REFERENCES, run.classes),
    trained | {"evaluation": evaluated},
    metrics.to_dict(),
    made.parent,
)
made.write_text(card(record, params.limits), encoding="utf-8")
