"""Claims on time and memory (13, 14)."""

import pandas as pd

from clai.benchmark import analysis
from clai.report.claims.claim import claim
from clai.report.claims.finding import POINTS, Finding, Part, Statistic, Unit
from clai.report.evidence import Evidence
from clai.report.statistics import interval, paired_difference

BENCHMARK = "benchmark"
STUDY = "schedules"
GROWTH = 0.1
"""How far a power may lie from 1, and by which share memory may grow."""
POWER = Unit(2)
RATIO = Unit(1)
MEMORY = Unit(0, "MiB")


@claim(
    13,
    claim="Training costs O(T C M^2), and memory does not depend on C.",
    place="808-809",
    test=(
        "Time and peak memory against the number of batches M and of classes C. The unit of time is a pass of the "
        "bare trunk, timed in the same repetition."
    ),
    rule=(
        "Reproduced if the time of Algorithm 3 as printed grows with the power 1 of the pairs of batches and of the "
        f"classes (mean over repetitions within {GROWTH}), and peak memory grows by at most {100 * GROWTH:.0f} % from "
        "the fewest classes to the most."
    ),
)
def cost_grows_as_stated(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    # In miniature sizes, overheads rule the times.
    if not evidence.has(BENCHMARK) or evidence.miniature:
        return Finding(missing=["time and peak memory for several numbers of batches M and of classes C"])
    finding = Finding()
    finding.cite(evidence, BENCHMARK, "benchmark.csv", title=True)
    title, measured = evidence.title(BENCHMARK), evidence.frame(BENCHMARK, "benchmark.csv")
    for comparison, size in (("batches", "pairs of batches M (M - 1) / 2"), ("classes", "classes C")):
        power = interval(analysis.exponent(measured, comparison, "printed"))
        statistics = [Statistic("power", power, POWER)]
        quantity = f"growth of the time of Algorithm 3 as printed with the {size}"
        finding.add(Part(title, quantity, statistics, abs(power.mean - 1) <= GROWTH), known=power.known)
    curves = analysis.curves(measured)
    memory = curves[(curves["quantity"] == "peak_memory_mb") & (curves["variant"] == "printed")]
    by_classes = memory[memory["comparison"] == "classes"].set_index("x")["mean"].sort_index()
    fewest, most = by_classes.iloc[0], by_classes.iloc[-1]
    statistics = [
        Statistic(f"with {classes:g} classes:", value, MEMORY)
        for classes, value in zip(by_classes.index[[0, -1]], (fewest, most), strict=True)
    ]
    finding.add(Part(title, "peak memory", statistics, bool(most <= (1 + GROWTH) * fewest)))
    return finding


@claim(
    14,
    claim="A (C, B, B) tensor can replace the loop over classes.",
    place="814",
    test=(
        "The joint schedule against the sequential one, both with all references. The time of an epoch is measured "
        "alone on a machine. Accuracy is compared after as many encoder passes, paired by seed."
    ),
    rule=(
        "Reproduced if an epoch of the joint schedule is faster (timed with one kernel) and, with either kernel, the "
        "interval of the accuracy difference does not lie below zero."
    ),
)
def tensor_replaces_loop(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    # Time comes from the benchmark, which runs alone on its machine; accuracy from the study, whose runs need not.
    if not evidence.has(STUDY) or not evidence.has(BENCHMARK):
        return Finding(missing=["the schedules `sequential` and `joint`: accuracy of both, and time measured alone"])
    finding = Finding()
    finding.cite(evidence, BENCHMARK, "benchmark.csv", title=True)
    finding.cite(evidence, STUDY, "metrics.csv", title=True)
    measured = evidence.frame(BENCHMARK, "benchmark.csv")
    times = measured[(measured["comparison"] == "joint") & (measured["quantity"] == "seconds")]
    seconds = times.pivot_table(index="repetition", columns="variant", values="value")
    ratio = interval((seconds["sequential"] / seconds["joint"]).dropna())
    metrics = evidence.metrics(STUDY)
    gaps = {
        kernel: paired_difference(metrics, "accuracy", f"{kernel}_joint-all", f"{kernel}_sequential-all")
        for kernel in ("cosine", "full")
    }
    # Time alone decides nothing.
    faster = ratio.mean > 1 if ratio.n and any(gap.known for gap in gaps.values()) else None
    statistics = [Statistic("sequential over joint", ratio, RATIO)]
    finding.add(Part(evidence.title(BENCHMARK), "time of an epoch", statistics, faster))
    for kernel, gap in gaps.items():
        if not gap.n:
            finding.missing.append(f"both schedules with the kernel {kernel}")
            continue
        quantity = f"kernel {kernel}, accuracy after as many encoder passes"
        statistics = [Statistic("joint minus sequential", gap, POINTS)]
        part = Part(evidence.title(STUDY), quantity, statistics, not gap.below_zero)
        finding.add(part, known=gap.known and ratio.n > 0)
    return finding
