"""Put the published results between the markers of README.md; run from the repository root."""

from pathlib import Path

from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.tables.readme import readme_results, replace_results
from clai.runs.outputs import descriptions
from clai.runs.settings import load_settings

settings = load_settings(Path())
evidence = Evidence.found(Path("results/published"), descriptions(settings["datasets"], settings))
block = readme_results(evidence, read_printed_values(Path("workflow/config/printed_values.csv")))
readme = Path("README.md")
readme.write_text(replace_results(readme.read_text(), block))
