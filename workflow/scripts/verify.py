"""Print the numbers that were computed again, and fail if any differs from the published one."""

import sys
from pathlib import Path

import pandas as pd

from replication.report.verify import Agreement, summary

numbers = pd.read_csv(snakemake.input[0], keep_default_na=False)
Path(snakemake.log[0]).write_text(summary(numbers), encoding="utf-8")
sys.stdout.write(summary(numbers))
if (numbers["agreement"] == Agreement.DIFFERS).any():
    sys.exit(f"{snakemake.input[0]}: found numbers that differ, expected all to agree. It marks them")
