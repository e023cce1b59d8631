"""Table S7: time and memory of variants side by side, measured alone on one machine."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from replication.benchmark import analysis
from replication.report.latex import escape, group, grouped, missing_group, row, spanning
from replication.report.tables.parts import Sources, scientific

HEADS = ["Size", "First", "Second", "Ratio (range)", "Counted"]


def benchmark_frame(sources: Sources) -> pd.DataFrame:
    """Return the benchmark's comparisons: columns of `replication.benchmark.analysis.comparisons`, and dataset, model, data."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    frame = analysis.comparisons(evidence.frame(dataset, "benchmark.csv"))
    return frame.assign(dataset=dataset, model="measurements", data=evidence.data(dataset))


def benchmark_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S7: a group of rows for each comparison, with its pairs of variants above the sizes of each."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    groups = []
    if not evidence.has(dataset):
        groups.append(missing_group(evidence.title(dataset), len(HEADS), evidence.not_run(dataset)))
    for (quantity, comparison), compared in frame.groupby(["quantity", "comparison"], sort=False):
        lines = []
        for (first, second), part in compared.groupby(["first", "second"], sort=False):
            variants = f"{analysis.VARIANT_TITLES[str(first)]} against {analysis.VARIANT_TITLES[str(second)]}"
            lines.append(spanning(rf"\quad {escape(variants)}", len(HEADS)))
            for entry in part.to_dict("records"):
                size = escape(str(entry["setting"]).replace(";", ", "))
                numbers = [_significant(entry[side]) for side in ("first_value", "second_value")]
                lines.append(row(rf"\quad\quad {size}", *numbers, _ratio(entry), _two_digits(entry["counted"])))
        groups.append(group(f"{analysis.QUANTITIES[str(quantity)]}: {comparison}", len(HEADS), lines))
    for record in evidence.runs(dataset):
        machine = f"Device: {record['device']}; threads: {record['threads']}"
        groups.append("\\midrule\n" + spanning(escape(machine), len(HEADS)))
    return grouped(row(*HEADS), groups, "lrrrr", text, "tab:benchmark", evidence.miniature)


def _ratio(entry: Mapping[Hashable, Any]) -> str:
    text = _two_digits(entry["ratio"])
    several = not pd.isna(entry["n"]) and entry["n"] > 1
    return f"{text} ({entry['low']:.2f}--{entry['high']:.2f})" if several else text


def _two_digits(value: float) -> str:
    return "--" if pd.isna(value) else f"{value:.2f}"


def _significant(value: float) -> str:
    if pd.isna(value):
        return "--"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e3 else f"{value:.0f}" if value >= 1e3 else scientific(value)
