"""Judge the paper's claims and write them as a page, as CSV and as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

from clai.report.captions import caption
from clai.report.claims import judge, markdown
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.sidecars import csv_text, sidecar
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
given, asked, made = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(asked.root), asked.datasets, given.evidence)
claims = judge(evidence, read_printed_values(Path(given.printed_values)))
runs = [record for dataset in evidence.at_hand() for record in evidence.runs(dataset)]
text = caption(Path(given.caption).read_text(), evidence, runs)
Path(made.md).write_text(markdown(claims, text))
Path(made.csv).write_text(csv_text(claims))
# The caption names the seeds of models; the numerical checks have seeds of their own.
Path(made.json).write_text(sidecar(text, evidence, [*runs, *evidence.runs("theory")]))
