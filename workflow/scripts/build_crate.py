"""Pack code, evidence and outputs into an RO-Crate."""

from pathlib import Path
from typing import TYPE_CHECKING

from replication.report.crate import build
from replication.report.publication import withheld
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
evidence: dict[str, list[str]] = {}
for path in snakemake.input.evidence:
    if not withheld(Path(path)):
        evidence.setdefault(Path(path).parts[2], []).append(path)
outputs: dict[str, list[str]] = {}
for path in snakemake.input.outputs:
    outputs.setdefault(Path(path).stem, []).append(path)
description = " ".join(Path(snakemake.input.description).read_text().split())
crate = build(Path(), description, list(snakemake.input.code), evidence, outputs, snakemake.params.rendered_from)
crate.write_zip(Path(snakemake.output[0]))
