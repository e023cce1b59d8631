"""Typeset the replication article from rendered outputs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.report.article import (
    claims_macros,
    claims_tex,
    figure_tex,
    macros_tex,
    not_run_macros,
    results_macros,
    runs_macros,
    supplement_tex,
)
from clai.report.labels import MINI_NOTE
from clai.report.latex import typeset
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
folder, asked = Path(snakemake.params.folder), snakemake.params
contents = {name: json.loads((folder / f"{name}.json").read_text()) for name in asked.names}
frames = {name: pd.read_csv(folder / f"{name}.csv") for name in ("table1", "tableS8", "table3")}
claims = pd.read_csv(folder / "claims.csv")
runs = {run["run"]: run for content in contents.values() for run in content["runs"]}
macros = results_macros(frames) | claims_macros(claims) | runs_macros(list(runs.values())) | not_run_macros(frames)
macros |= {f"shown:{name}": "shown" for name, content in contents.items() if content["data"]}
if contents["claims"]["evidence"] == "mini":
    macros["mark"] = MINI_NOTE
figures = {name: figure_tex(name, content["caption"]) if content["data"] else "" for name, content in contents.items()}
parts = {
    "numbers.tex": macros_tex(macros),
    "claims.tex": claims_tex(claims),
    "main_figures.tex": "".join(figures[name] for name in ("figure1", "figure2", "figure3")),
    "sepsis_figures.tex": figures["figure4"],
    "supplement.tex": supplement_tex(contents),
}
files = [folder / f"{name}.tex" for name in asked.names if name.startswith("table")]
files += [folder / f"{name}.pdf" for name in asked.names if name.startswith("figure")]
Path(snakemake.output.numbers).write_text(parts["numbers.tex"])
typeset(Path(snakemake.input.article), parts, files, Path(snakemake.output.pdf))
