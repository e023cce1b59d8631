"""Compare tracked tables, pages and verdicts with those of recomputed evidence, and gather all comparisons."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from replication.report.evidence import Evidence
from replication.report.printed_values import read_values
from replication.report.tables.layout import Sources
from replication.report.verification import frame_of, of_outputs, recomputed_evidence
from replication.runs.jobs import start_job
from replication.runs.outputs import CLAIMS

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
given, asked = snakemake.input, snakemake.params
values = [read_values(Path(path)) for path in (given.printed_values, given.reported_values, given.choices)]
files = {
    Path(folder).parent.name: {path.name: pd.read_csv(path) for path in Path(folder).glob("*.csv")}
    for folder in given.recomputed
}
published = Evidence.of_files(Path(asked.root), asked.datasets[CLAIMS], given.evidence)
with tempfile.TemporaryDirectory() as folder:
    numbers = of_outputs(
        published,
        recomputed_evidence(published, Path(folder), files),
        asked.datasets,
        lambda evidence: Sources(evidence, *values, {}),
        {Path(path).name: Path(path) for path in asked.outputs},
        {Path(path).stem: Path(path).read_text() for path in given.captions},
        files,
    )
parts = [pd.read_csv(path, dtype={"published": str, "here": str}) for path in (*given.numbers, *given.models)]
every = pd.concat([*parts, frame_of(numbers)], ignore_index=True)
every.to_csv(snakemake.output[0], index=False)
