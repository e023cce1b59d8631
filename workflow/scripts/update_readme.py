"""Put the published results between the markers of README.md; run from the repository root."""

from pathlib import Path

import yaml

from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.tables.readme import readme_results, replace_results

config = yaml.safe_load(Path("config.yaml").read_text())
expected = {key: {"title": entry["title"], "needs": entry["needs"]} for key, entry in config["datasets"].items()}
evidence = Evidence.found(Path("results/published"), expected)
block = readme_results(evidence, read_printed_values(Path("workflow/config/printed_values.csv")))
readme = Path("README.md")
readme.write_text(replace_results(readme.read_text(), block))
