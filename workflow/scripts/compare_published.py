"""Compare tracked tables, pages and verdicts with those of recomputed evidence, and gather all comparisons."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from replication.report.claims.judge import judge
from replication.report.evidence import Evidence
from replication.report.printed_values import read_values
from replication.report.tables.layout import Sources
from replication.report.tables.render import render
from replication.report.verify import of_claims, of_table
from replication.runs.registry import CLAIMS, VERIFIED_TABLES
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params = snakemake.input, snakemake.params
values = [read_values(Path(path)) for path in (sources.printed_values, sources.reported_values)]
tracked = {Path(path).name: Path(path) for path in params.outputs}
captions = {Path(path).stem: Path(path).read_text() for path in sources.captions}
files = {
    Path(folder).parent.name: {path.name: pd.read_csv(path) for path in Path(folder).glob("*.csv")}
    for folder in sources.recomputed
}
published = Evidence.of_files(Path(params.root), params.datasets[CLAIMS], sources.evidence)
content = json.loads(tracked["claims.json"].read_text())
parts = [pd.read_csv(path, dtype={"published": str, "here": str}) for path in (*sources.numbers, *sources.models)]
for name in VERIFIED_TABLES:
    shown = params.datasets[name]
    evidence = Evidence(published.root, shown, published.available & {*shown}, recomputed=files)
    again = render(name, Sources(evidence, *values, {}), captions[name])
    parts.append(of_table(name, pd.read_csv(tracked[f"{name}.csv"]), again.frame, files))
parts.append(of_claims(content["claims"], judge(replace(published, recomputed=files), values[0])))
pd.concat(parts, ignore_index=True).to_csv(snakemake.output[0], index=False)
