"""Typeset the replication article from rendered outputs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.report.article import article_parts
from replication.report.latex import typeset
from replication.report.sidecars import records_behind
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
folder, names = Path(snakemake.params.folder), snakemake.params.names
contents = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
frames = {name: pd.read_csv(folder / f"{name}.csv") for name in ("table1", "tableS8", "table3")}
runs = sorted({run for content in contents.values() for run in content["runs"]})
records = records_behind(runs, Path("results", contents["claims"]["evidence"]))
parts = article_parts(contents, frames, pd.read_csv(folder / "claims.csv"), records)
files = [folder / f"{name}.tex" for name in names if name.startswith("table")]
files += [folder / f"{name}.pdf" for name in names if name.startswith("figure")]
Path(snakemake.output.numbers).write_text(parts["numbers.tex"])
typeset(Path(snakemake.input.article), parts, files, Path(snakemake.output.pdf))
