"""Pack code, evidence and outputs into an RO-Crate."""

from pathlib import Path
from typing import TYPE_CHECKING

from clai.report.crate import build
from clai.report.publication import withheld
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
given = snakemake.input
evidence: dict[str, list[str]] = {}
for path in given.evidence:
    if withheld(Path(path)):
        continue
    evidence.setdefault(Path(path).parts[2], []).append(path)
outputs: dict[str, list[str]] = {}
for path in given.outputs:
    outputs.setdefault(Path(path).stem, []).append(path)
description = " ".join(Path(given.description).read_text().split())
crate = build(Path(), description, list(given.code), evidence, outputs, snakemake.params.rendered_from)
crate.write_zip(Path(snakemake.output[0]))
