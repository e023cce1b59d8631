"""Make the report's pages of one view: every output, the runs and the settings."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.report.html_pages import output_page, runs_page, settings_page
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
folder, asked, made = Path(snakemake.params.folder), snakemake.params, snakemake.output
contents = {name: json.loads((folder / f"{name}.json").read_text()) for name in asked.titles}
for name, title in asked.titles.items():
    csv = (folder / f"{name}.csv").read_text()
    frame = pd.read_csv(folder / f"{name}.csv")
    picture = folder / f"{name}.png"
    shown = picture.read_bytes() if picture.exists() else None
    Path(made[name]).write_text(output_page(title, frame, csv, contents[name], shown))
Path(made.runs).write_text(runs_page(list(contents.values())))
source = Path(snakemake.input.config).read_text()
Path(made.settings).write_text(settings_page(asked.settings, source, synthetic=asked.settings["miniature"]))
