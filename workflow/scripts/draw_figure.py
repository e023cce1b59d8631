"""Draw one figure as PDF and PNG, with its data and provenance."""

from pathlib import Path

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.figures.render import render, save
from replication.report.texts import csv_text, sidecar
from replication.runs.registry import read_json
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params, targets = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(params.root), params.datasets, sources.evidence)
printed = pd.read_csv(sources.printed_values)
claims = read_json(sources.claims)["claims"] if sources.get("claims") else []
fixed = Path(sources.caption).read_text(encoding="utf-8")
figure, frame, caption, runs = render(snakemake.wildcards.figure, evidence, fixed, printed, claims)
save(figure, Path(targets.pdf))
save(figure, Path(targets.png))
Path(targets.csv).write_text(csv_text(frame), encoding="utf-8")
Path(targets.json).write_text(sidecar(caption, evidence, runs), encoding="utf-8")
