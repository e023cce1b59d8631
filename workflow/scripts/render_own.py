"""Render the outputs of a dataset of the user's own."""

from pathlib import Path

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.figures.render import render, save
from replication.report.tables import render as tables
from replication.report.tables.layout import Sources
from replication.report.texts import csv_text, sidecar
from replication.runs.outputs import declared
from replication.runs.run import start_job

start_job(snakemake.log[0])
params, made = snakemake.params, [Path(path) for path in snakemake.output if path.endswith(".csv")]
evidence = Evidence.of_files(Path(params.root), params.datasets, snakemake.input.evidence)
for path in made:
    fixed = Path("workflow", "report", "own", f"{path.stem}.rst").read_text(encoding="utf-8")
    if path.stem.startswith("table"):
        made_of = Sources(evidence, pd.DataFrame(), pd.DataFrame(), {})
        table = tables.render(f"own/{path.stem}", declared(f"own/{path.stem}"), made_of, fixed)
        frame, caption, runs = table.frame, table.caption, table.runs
        path.with_suffix(".tex").write_text(table.tex, encoding="utf-8")
        path.with_suffix(".md").write_text(table.md, encoding="utf-8")
    else:
        figure, frame, caption, runs = render(f"own/{path.stem}", evidence, fixed, pd.DataFrame())
        save(figure, path.with_suffix(".pdf"))
        save(figure, path.with_suffix(".png"))
    path.write_text(csv_text(frame), encoding="utf-8")
    path.with_suffix(".json").write_text(sidecar(caption, evidence, runs), encoding="utf-8")
