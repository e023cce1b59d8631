"""Print the comparisons of the benchmark: `python workflow/scripts/show_benchmark.py BENCHMARK_CSV`, as `make benchmark` does.

The records beside the CSV say on what it was measured.
"""

import sys
from pathlib import Path

import pandas as pd

from replication.benchmark.analysis import comparisons
from replication.runs.record import read_records

NAMES = {"first_value": "first: median", "second_value": "second: median", "ratio": "first / second: median",
         "low": "least", "high": "largest", "n": "repetitions"}  # fmt: skip

path = Path(sys.argv[1])
for record in read_records(path.parent):
    precision = record["settings"]["training"]["precision"]
    print(f"{record['hardware']}; device {record['device']}, {record['threads']} threads, trunk in {precision}")
table = comparisons(pd.read_csv(path)).drop(columns="comparison").rename(columns=NAMES)
with pd.option_context("display.width", 240, "display.max_columns", None, "display.max_rows", None):
    print(table.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}"))
