"""Render one table as LaTeX, CSV and JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

from replication.report.evidence import Evidence
from replication.report.printed_values import read_values
from replication.report.sidecars import csv_text, sidecar
from replication.report.tables.layout import Sources
from replication.report.tables.render import render
from replication.runs.jobs import start_job
from replication.runs.outputs import layout_of

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
given, asked, made = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(asked.root), asked.datasets, given.evidence)
values = [read_values(Path(path)) for path in (given.printed_values, given.reported_values, given.choices)]
sources = Sources(evidence, *values, asked.settings)
table = render(layout_of(snakemake.wildcards.table), sources, Path(given.caption).read_text())
Path(made.tex).write_text(table.tex)
Path(made.csv).write_text(csv_text(table.frame))
Path(made.json).write_text(sidecar(table.caption, evidence, table.runs))
