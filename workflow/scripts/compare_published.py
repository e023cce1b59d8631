"""Compare tracked tables, pages and verdicts with those of recomputed evidence, and gather all comparisons."""

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from clai.report.captions import caption
from clai.report.claims.judgement import judge
from clai.report.claims.page import claims_page
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.tables.choices import read_choices
from clai.report.tables.parts import Sources
from clai.report.tables.render import render
from clai.report.tables.shift import read_reported_values
from clai.report.verification import (
    frame_of,
    of_claims,
    of_table,
    of_text,
    of_training,
    recomputed_evidence,
    verification_page,
)
from clai.runs.identity import RunId
from clai.runs.jobs import start_job
from clai.runs.outputs import CLAIMS, VERIFIED_TABLES

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
given, asked, made = snakemake.input, snakemake.params, snakemake.output
printed_values, captions = read_printed_values(Path(given.printed_values)), {Path(p).stem: p for p in given.captions}
tracked = {Path(path).name: Path(path) for path in asked.outputs}
files = {
    Path(folder).parent.name: {path.name: pd.read_csv(path) for path in Path(folder).glob("*.csv")}
    for folder in given.recomputed
}
numbers = []


def sources(evidence: Evidence) -> Sources:
    """Return what the tables are made of."""
    return Sources(
        evidence,
        printed_values,
        read_reported_values(Path(given.reported_values)),
        read_choices(Path(given.choices)),
        {},
    )


with tempfile.TemporaryDirectory() as folder:
    published = Evidence.of_files(Path(asked.root), asked.datasets[CLAIMS], given.evidence)
    here = recomputed_evidence(published, Path(folder), files)
    for name in VERIFIED_TABLES:
        started = time.perf_counter()
        shown = asked.datasets[name]
        theirs, ours = (sources(Evidence(of.root, shown, of.available & {*shown})) for of in (published, here))
        text = Path(captions[name]).read_text()
        table, again = render(name, theirs, text), render(name, ours, text)
        seconds = round(time.perf_counter() - started, 1)
        numbers += of_table(name, pd.read_csv(tracked[f"{name}.csv"]), again.frame, files, seconds)
        numbers.append(of_text(f"{name}.tex", tracked[f"{name}.tex"].read_text(), table.tex))
    numbers += of_claims(pd.read_csv(tracked["claims.csv"], dtype=str), here, printed_values)
    runs = [record for dataset in published.at_hand() for record in published.runs(dataset)]
    page = claims_page(judge(published, printed_values), caption(Path(captions[CLAIMS]).read_text(), published, runs))
    numbers.append(of_text("claims.md", tracked["claims.md"].read_text(), page))
    for path in [given.trained] if given.trained else []:
        run = RunId.parse(path)
        seconds = json.loads(Path(path).with_name("run.json").read_text())["wall_seconds"]
        numbers.append(of_training(run, published.metrics(run.dataset), pd.read_csv(path), seconds))
parts = [pd.read_csv(path, dtype={"published": str, "here": str}) for path in (*given.numbers, *given.models)]
every = pd.concat([*parts, frame_of(numbers)], ignore_index=True)
every.to_csv(made.numbers, index=False)
Path(made.page).write_text(verification_page(every, asked.synthetic))
