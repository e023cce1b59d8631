"""Fill the generated blocks of README.md from the published evidence; run from the repository root."""

from pathlib import Path

import pandas as pd

from replication.report.claims.page import lines
from replication.report.evidence import Evidence
from replication.report.tables.paper import readme_results
from replication.report.texts import replace_block
from replication.runs.outputs import descriptions
from replication.runs.registry import read_json
from replication.runs.settings import load_settings

settings = load_settings(Path())
evidence = Evidence.found(Path("results/published"), descriptions(settings["datasets"], settings))
results = readme_results(evidence, pd.read_csv("workflow/config/printed_values.csv"))
verdicts = lines(read_json("paper_figures/claims.json")["claims"], "paper_figures/claims")
document = Path("README.md")
for name, block in (("verdicts", verdicts), ("results", results)):
    document.write_text(replace_block(document.read_text(encoding="utf-8"), name, block), encoding="utf-8")
