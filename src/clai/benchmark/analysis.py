"""What the benchmark's rows say: ratios with their spread, curves against M and C with what was predicted, growth.

Rows are those of `clai.benchmark.measure`: comparison, variant, setting (`name=value` pairs), repetition, quantity, value.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

WORK_TITLES = {
    "printed": "as printed",
    "sequential": "sequential, all references",
    "joint": "joint, all references",
    "linear": "joint, one reference",
    "clai-c": "CLaI-C, joint, one reference",
    "clai-m": "CLaI-M, joint, one reference",
    "cross-entropy": "cross-entropy",
    "bare": "bare forward and backward",
    "streamed": "streamed",
}


class Comparison(NamedTuple):
    """Two variants of a comparison in the evidence, and what setting them side by side shows."""

    name: str
    first: str
    second: str
    title: str


COMPARISONS = [
    Comparison("exact", "printed", "sequential", "Algorithm 3, the same gradient"),
    Comparison("joint", "sequential", "joint", "All classes in one pass"),
    Comparison("batches", "joint", "linear", "Sampled references"),
    Comparison("epoch", "clai-c", "cross-entropy", "An epoch and one of cross-entropy"),
    Comparison("epoch", "clai-m", "cross-entropy", "An epoch and one of cross-entropy"),
    Comparison("epoch", "clai-c", "bare", "An epoch and its trunk alone"),
    Comparison("epoch", "clai-m", "bare", "An epoch and its trunk alone"),
    Comparison("inference", "printed", "streamed", "Algorithm 4, the same vote"),
]
QUANTITIES = {
    "seconds": "Seconds",
    "peak_memory_mb": "Peak memory (MiB)",
    "difference": "Largest difference of results that should be equal",
}


def values(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the names in `setting` as columns of numbers, or of text where they are not numbers."""
    pairs = [dict(pair.split("=", 1) for pair in str(setting).split(";")) for setting in frame["setting"]]
    columns = {}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        column = pd.Series([pair.get(name) for pair in pairs], index=frame.index, dtype=object)
        number = pd.to_numeric(column, errors="coerce")
        columns[name] = number if number.notna().sum() == column.notna().sum() else column
    return frame.assign(**columns)


def comparisons(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each comparison and size: times side by side, then memory, then differences of results that should be equal.

    Columns: quantity, comparison (title), setting, first, second (variants), first_value, second_value (medians over
    repetitions), ratio (median over repetitions of first / second), low, high (its range), n (repetitions), counted (the ratio
    that counting passes through the trunk gives; nan where nothing was counted).
    """
    rows: list[dict[str, object]] = []
    for quantity in QUANTITIES:
        for name, first, second, title in COMPARISONS:
            part = frame[(frame["comparison"] == name) & (frame["quantity"] == quantity)]
            if name == "batches":
                sizes = values(part)["M"] if len(part) else pd.Series(dtype=float)
                part = part[sizes == sizes.max()]
            if quantity == "difference":
                rows += [
                    {"quantity": quantity, "comparison": title, "setting": setting, "first": first, "second": second,
                     "second_value": float(own["value"].max())}
                    for setting, own in part[part["variant"] == second].groupby("setting", sort=False)
                ]  # fmt: skip
            else:
                rows += _side_by_side(frame, part, first, second, quantity, title)
    columns = ["quantity", "comparison", "setting", "first", "second", "first_value", "second_value", "ratio", "low",
               "high", "n", "counted"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).drop_duplicates(columns[:5], ignore_index=True)


def _side_by_side(
    frame: pd.DataFrame, part: pd.DataFrame, first: str, second: str, quantity: str, title: str
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for setting, own in part.groupby("setting", sort=False):
        table = own.pivot_table(index="repetition", columns="variant", values="value")
        if second not in table:
            continue
        if first not in table:  # too large to be measured
            table[first] = np.nan
        ratio = (table[first] / table[second]).dropna()
        predicted = frame[(frame["setting"] == setting) & (frame["quantity"] == "predicted")]
        counted = predicted.pivot_table(index="repetition", columns="variant", values="value")
        known = quantity == "seconds" and {first, second} <= set(counted)
        rows.append({
            "quantity": quantity, "comparison": title, "setting": setting, "first": first, "second": second,
            "first_value": table[first].median(), "second_value": table[second].median(), "ratio": ratio.median(),
            "low": ratio.min(), "high": ratio.max(), "n": len(ratio),
            "counted": float((counted[first] / counted[second]).median()) if known else np.nan,
        })  # fmt: skip
    return rows


def curves(frame: pd.DataFrame) -> pd.DataFrame:
    """Seconds and peak memory of an epoch against M (comparison `batches`) and C (`classes`).

    Columns: quantity, comparison, variant, x (M or C), mean, low, high (range over repetitions), predicted, n.
    """
    rows = []
    for comparison, axis in (("batches", "M"), ("classes", "C")):
        part = values(frame[frame["comparison"] == comparison])
        for quantity in ("seconds", "peak_memory_mb"):
            chosen = part[part["quantity"] == quantity]
            for (variant, x), own in chosen.groupby(["variant", axis], sort=False):
                same = (part["variant"] == variant) & (part[axis] == x) & (part["quantity"] == "predicted")
                predicted = part[same]["value"].mean() if quantity == "seconds" else np.nan
                found = own["value"]
                rows.append(
                    (quantity, comparison, variant, x, found.mean(), found.min(), found.max(), predicted, len(own))
                )
    columns = ["quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
    return pd.DataFrame(rows, columns=columns)


def sampling(frame: pd.DataFrame) -> pd.DataFrame:
    """What sampled references cost: rule, C, share, n (references), quantity, and its mean over samples."""
    part = values(frame[frame["comparison"] == "sampling"])
    if part.empty:
        return pd.DataFrame(columns=["rule", "C", "share", "n", "quantity", "mean"])
    grouped = part.groupby(["variant", "C", "share", "n", "quantity"], sort=False)["value"].mean()
    return grouped.rename("mean").reset_index().rename(columns={"variant": "rule"})


def predicted_seconds(variant: str, batches: float, classes: float, forward: float, backward: float) -> float:
    """Seconds that an epoch spends in the trunk, by its passes over single batches.

    Args:
        forward, backward: seconds of one pass of a batch.
    """
    pairs, anchors = batches * (batches - 1) / 2, batches - 1
    if variant == "printed":  # a pair: the reference forward, and backward through both
        return classes * (pairs * (forward + 2 * backward) + anchors * forward)
    if variant == "sequential":
        return classes * (pairs + anchors) * (forward + backward)
    if variant == "joint":
        return (pairs + anchors) * (forward + backward)
    if variant == "linear":
        return batches // 2 * 2 * (forward + backward)
    raise ValueError(f"variant is {variant!r}, expected printed, sequential, joint or linear")


def exponent(frame: pd.DataFrame, comparison: str, variant: str) -> pd.Series:
    """By repetition, the power of the pairs of batches (`batches`) or of the classes (`classes`) with which the work grows.

    Work is seconds over those of a pass of the bare trunk, timed beside it in the same repetition: a machine that slows down in
    the longer runs would else pass for growth.
    """
    part = values(frame[(frame["comparison"] == comparison) & (frame["variant"] == variant)])
    if part.empty:
        return pd.Series(dtype=float)
    by_quantity = part.pivot_table(index=["repetition", "M", "C"], columns="quantity", values="value").reset_index()
    if not {"seconds", "predicted"} <= set(by_quantity):
        return pd.Series(dtype=float)
    batches, classes = by_quantity["M"].astype(float), by_quantity["C"].astype(float)
    passes = [predicted_seconds(variant, m, c, 1, 2) for m, c in zip(batches, classes, strict=True)]
    size = batches * (batches - 1) / 2 if comparison == "batches" else classes
    work = by_quantity["seconds"] / by_quantity["predicted"] * passes
    logs = pd.DataFrame({"x": np.log(size), "y": np.log(work), "repetition": by_quantity["repetition"]})
    found = {
        repetition: np.polyfit(own["x"], own["y"], 1)[0]
        for repetition, own in logs.groupby("repetition")
        if np.ptp(own["x"]) > 0
    }
    return pd.Series(found, dtype=float)
