"""Judge the paper's claims; write the verdicts as JSON, and from them a page of all, a page each and a CSV."""

from pathlib import Path

from replication.report.claims.judge import judge
from replication.report.claims.page import claim_page, claims_frame, claims_page, reviews
from replication.report.evidence import Evidence
from replication.report.texts import caption, csv_text, sidecar
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params, targets = snakemake.input, snakemake.params, snakemake.output
evidence = Evidence.of_files(Path(params.root), params.datasets, sources.evidence)
claims = judge(evidence)
runs = [record for dataset in evidence.at_hand() for record in evidence.runs(dataset)]
text = caption(Path(sources.caption).read_text(encoding="utf-8"), evidence, runs)
# The caption names the seeds of models; the numerical checks have seeds of their own.
Path(targets.json).write_text(
    sidecar(text, evidence, [*runs, *evidence.runs("theory")], claims=claims, reviews=reviews(claims)), encoding="utf-8"
)
Path(targets.md).write_text(claims_page(claims), encoding="utf-8")
Path(targets.csv).write_text(csv_text(claims_frame(claims)), encoding="utf-8")
for claim, page in zip(claims, targets.pages, strict=True):
    Path(page).write_text(claim_page(claim), encoding="utf-8")
