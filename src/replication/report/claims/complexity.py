"""Claims on time and memory (13, 14); assertion B."""

import pandas as pd

from replication.metrics.passes import trunk_passes
from replication.report.claims.finding import PER_CENT, POINTS, Finding, Place, Unit
from replication.report.claims.hypothesis import ANY, NOT_LESS, Hypothesis, decided
from replication.report.claims.sources import KERNELS, of_vote
from replication.report.evidence import by_setting
from replication.report.statistics import gap
from replication.runs.registry import BENCHMARK

CONVERGENCE = ("turns-images", "convergence")
"""Studies of both schedules, with targets zero."""
TENTH = 0.1
AS_LONG = Hypothesis("equal", TENTH, null=1, bounds=ANY)
FASTER = Hypothesis("better", TENTH, null=1, bounds=ANY)
RATIO, COUNT = Unit(2), Unit(1)


def time_grows_with_classes(finding: Finding) -> None:
    finding.required = ("time a pass", "memory")
    measured = finding.evidence.frame(BENCHMARK, "benchmark.csv")
    own = measured[(measured["variant"] == "printed") & measured["comparison"].isin(["classes", "batches"])]
    # In miniature sizes, overheads rule the times.
    if own.empty or finding.evidence.miniature:
        finding.missing.append("time and peak memory for several numbers of batches M and of classes C")
        return
    finding.cite(BENCHMARK, "benchmark.csv")
    own = by_setting(own)
    for comparison, size in (("classes", "C"), ("batches", "M")):
        rows = own[own["comparison"] == comparison]
        fewest, most = rows[size].min(), rows[size].max()
        ends = f"ratio of {most:g} {comparison} to {fewest:g}"
        for unit in ("", " in passes of a bare trunk"):
            seconds = seconds_a_pass(rows, size, bare=bool(unit))
            judged = comparison == "classes" and not unit
            hypothesis, part = (AS_LONG, "time a pass") if judged else (None, "")
            quantity = f"time a pass{unit}, {ends}"
            finding.add(BENCHMARK, quantity, seconds[most] / seconds[fewest], RATIO, hypothesis, part=part)
        memory = rows[rows["quantity"] == "peak_memory_mb"].groupby(size)["value"].mean()
        grown = float(memory[most] / memory[fewest])
        outcome, part = (decided(abs(grown - 1) <= TENTH), "memory") if comparison == "classes" else (None, "")
        finding.add(BENCHMARK, f"peak memory, {ends}", grown, RATIO, outcome, part=part)


def seconds_a_pass(rows: pd.DataFrame, size: str, *, bare: bool) -> pd.DataFrame:
    """Return the time of Algorithm 3 as printed over its passes, by repetition (rows) and size (columns).

    Args:
        rows: of one comparison, by setting.
        size: the column that varies, M or C.
        bare: count in the time that the passes of a bare trunk would take in the same repetition, in place of seconds.
    """
    times = rows.pivot_table(index=["repetition", "M", "C"], columns="quantity", values="value").reset_index()
    # A backward pass costs about two forward ones.
    counts = [trunk_passes("printed", m, c) for m, c in zip(times["M"], times["C"], strict=True)]
    passes = pd.Series([forward + 2 * backward for forward, backward in counts])
    times["time"] = times["seconds"] / (times["predicted"] if bare else passes)
    return times.pivot_table(index="repetition", columns=size, values="time")


def tensor_replaces_loop(finding: Finding) -> None:
    finding.required = ("speed", "accuracy at the best epoch")
    measured = finding.frame(BENCHMARK, "benchmark.csv")
    times = measured[(measured["comparison"] == "joint") & (measured["quantity"] == "seconds")]
    seconds = times.pivot_table(index="repetition", columns="variant", values="value")
    studies = [study for study in CONVERGENCE if finding.evidence.runs(study)]
    if seconds.empty or not studies:
        finding.missing.append("both schedules to convergence, and their times measured alone on a machine")
        return
    for study in studies:
        history = finding.frame(study, "history.csv")
        best = history.pivot_table("validation_accuracy", "seed", "cell", aggfunc="max")
        epochs = history.groupby("cell")["epoch"].max()
        last = of_vote(finding.frame(study, "metrics.csv"))
        for kernel in ("cosine", "full"):
            title = f"joint minus sequential, {KERNELS[kernel]} kernel"
            sequential, joint, with_one = (
                finding.evidence.cell(study, kernel=kernel, target="zero", schedule=f"{name}-long")
                for name in ("sequential-all", "joint-all", "joint-1")
            )
            of_both = best.reindex(columns=[joint, sequential])
            gains = (of_both[joint] - of_both[sequential]).dropna()
            quantity = f"best validation accuracy, {title}"
            finding.add(study, quantity, gains, POINTS, NOT_LESS, part="accuracy at the best epoch")
            for cell in (sequential, joint, with_one):
                quantity = f"validation accuracy, best of {epochs.get(cell)} epochs"
                place = Place(model=finding.evidence.model_title(study, cell))
                of_cell = best.get(cell, pd.Series(dtype=float))
                finding.add(study, quantity, of_cell, PER_CENT, None, place, role="beside")
            gains = gap(last, "accuracy", joint, sequential)
            finding.add(study, f"test accuracy, last epoch, {title}", gains, POINTS, NOT_LESS, role="control")
    ratio = (seconds["sequential"] / seconds["joint"]).dropna()
    finding.add(BENCHMARK, "time of an epoch, sequential over joint", ratio, RATIO, FASTER, part="speed")
    finding.missing.append("both schedules on whole datasets")
    finding.not_controlled.append("equal numbers of steps")


def loop_over_classes(finding: Finding) -> None:
    for dataset in ("pathmnist", "cifar10"):
        for record in finding.evidence.runs(dataset, ["clai-c"])[:1]:
            finding.cite(dataset, "runs.jsonl")
            counts = finding.evidence.description(dataset)["splits"]["train"]["counts"]
            batch = record["settings"]["training"]["batch_size"]
            batches, classes = sum(counts) // batch, len(counts)
            sequential, joint = (trunk_passes(name, batches, classes)[0] for name in ("sequential", "joint"))
            setting = f"{batches} batches of {batch}, {classes} classes"
            finding.add(
                dataset, f"passes with the loop over classes over without it, {setting}", sequential / joint, COUNT
            )
            finding.add(
                dataset, f"passes with all pairs of batches over one pass an epoch, {setting}", joint / batches, COUNT
            )


def long_tails(finding: Finding) -> None:
    finding.missing.append("degrees of freedom of embeddings by likelihood, of CLaI's and of cross-entropy's")
