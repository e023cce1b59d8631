"""Make the report's pages of one evidence: every output, the runs and the settings."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.report.html_pages import output_page, runs_page, settings_page
from replication.report.sidecars import records_behind
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
folder, settings = Path(snakemake.params.folder), snakemake.params.settings
every_run = {}
for name, title in snakemake.params.titles.items():
    csv = (folder / f"{name}.csv").read_text()
    frame = pd.read_csv(folder / f"{name}.csv")
    content = json.loads((folder / f"{name}.json").read_text())
    records = records_behind(content["runs"], Path("results", content["evidence"]))
    every_run |= {record["run"]: record for record in records}
    image = folder / f"{name}.png"
    picture = image.read_bytes() if image.exists() else None
    Path(snakemake.output[name]).write_text(output_page(title, frame, csv, content, records, picture))
Path(snakemake.output.runs).write_text(runs_page(every_run, synthetic=settings["miniature"]))
source = Path(snakemake.input.config).read_text()
Path(snakemake.output.settings).write_text(settings_page(settings, source, synthetic=settings["miniature"]))
