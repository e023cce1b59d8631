"""Promote the full run's evidence to the tracked folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from clai.logs import log_to
from clai.publication import publish

if TYPE_CHECKING:
    from snakemake.script import snakemake

log_to(snakemake.log[0])
files = [Path(path) for path in snakemake.input.evidence]
copied = publish(files, Path("results/paper"), Path(snakemake.params.target))
Path(snakemake.output[0]).write_text(json.dumps(copied, indent=1) + "\n")
