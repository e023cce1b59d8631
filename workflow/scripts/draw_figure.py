"""Draw one figure as PDF and PNG, with its data and provenance."""

import json
from pathlib import Path

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.figures.render import render, save
from replication.report.texts import csv_text, sidecar
from replication.runs.outputs import layout_of
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params, targets = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(params.root), params.datasets, sources.evidence)
printed = pd.read_csv(sources.printed_values)
claims = json.loads(Path(sources.claims).read_text())["claims"] if sources.get("claims") else []
fixed = Path(sources.caption).read_text()
figure, frame, caption, runs = render(layout_of(snakemake.wildcards.figure), evidence, fixed, printed, claims)
save(figure, Path(targets.pdf))
save(figure, Path(targets.png))
Path(targets.csv).write_text(csv_text(frame))
Path(targets.json).write_text(sidecar(caption, evidence, runs))
