"""Check the evidence of the full run and copy it to the tracked folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from replication.report.publication import publish
from replication.report.published_models import publish_models
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
files = [Path(path) for path in snakemake.input.evidence]
target = Path(snakemake.params.target)
copied = publish(files, Path("results/real"), target)
copied += publish_models([Path(path) for path in snakemake.input.models], Path("results/real"), target)
Path(snakemake.output[0]).write_text(json.dumps(copied, indent=1) + "\n")
