"""Set this machine's verdicts beside the published ones; write a page, a table, and the cost of the runs."""

from pathlib import Path

from replication.report.afternoon import compared_verdicts, page
from replication.report.plan import costs
from replication.report.texts import csv_text
from replication.runs.registry import read_json
from replication.runs.run import RUNS, records_of, start_job

start_job(snakemake.log[0])
sources, targets = snakemake.input, snakemake.output
here, published = (read_json(Path(path))["claims"] for path in (sources.claims, "paper_figures/claims.json"))
records = [record for path in map(Path, sources.records) if path.name == RUNS for record in records_of(path.parent)]
verdicts = compared_verdicts(here, published)
Path(targets.csv).write_text(csv_text(verdicts), encoding="utf-8")
Path(targets.costs).write_text(csv_text(costs(records)), encoding="utf-8")
synthetic = Path(snakemake.params.root).name == "mini"
Path(targets.md).write_text(page(verdicts, records, synthetic), encoding="utf-8")
