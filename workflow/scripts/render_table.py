"""Render one table as LaTeX, Markdown, CSV and JSON."""

from pathlib import Path

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.tables.layout import Sources
from replication.report.tables.render import render
from replication.report.texts import csv_text, sidecar
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params, targets = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(params.root), params.datasets, sources.evidence)
values = [pd.read_csv(path) for path in (sources.printed_values, sources.reported_values)]
made_of = Sources(evidence, *values, params.settings)
table = render(snakemake.wildcards.table, params.declared, made_of, Path(sources.caption).read_text(encoding="utf-8"))
Path(targets.tex).write_text(table.tex, encoding="utf-8")
Path(targets.md).write_text(table.md, encoding="utf-8")
Path(targets.csv).write_text(csv_text(table.frame), encoding="utf-8")
Path(targets.json).write_text(sidecar(table.caption, evidence, table.runs), encoding="utf-8")
