"""Print the comparisons of the benchmark: `python benchmarks/show.py BENCHMARK_CSV`, as `make benchmark` does."""

import sys

import pandas as pd

from clai.benchmark.analysis import comparisons

table = comparisons(pd.read_csv(sys.argv[1]))
with pd.option_context("display.width", 220, "display.max_columns", None, "display.max_rows", None):
    print(table.drop(columns="comparison").to_string(index=False, float_format=lambda value: f"{value:.4g}"))
