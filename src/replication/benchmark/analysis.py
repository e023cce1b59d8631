"""Summarise the rows of the benchmark: ratios with their range, curves over M and C with predictions, and growth.

Rows have the columns comparison, variant, setting (`name=value` pairs separated by semicolons), repetition, quantity and
value; `replication.benchmark.measure` defines the quantities. This module does without torch, so that tables and figures
render fast.
"""

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

VARIANT_TITLES = {
    "printed": "as printed",
    "sequential": "sequential, all references",
    "joint": "joint, all references",
    "linear": "joint, one reference",
    "clai-c": "CLaI-C, joint, one reference",
    "clai-m": "CLaI-M, joint, one reference",
    "cross-entropy": "cross-entropy",
    "bare": "bare forward and backward",
    "streamed": "streamed",
    "supervised-contrastive": "supervised contrastive (pytorch-metric-learning)",
    "k-neighbours": "k nearest neighbours (scikit-learn)",
    "svm": "support vector machine (scikit-learn)",
    "auto": "auto",
    "bfloat16": "bfloat16",
    "float32": "float32",
}


class Comparison(NamedTuple):
    """Two variants of a comparison in the evidence, and the title of the rows that compare them."""

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
    Comparison("epoch", "clai-c", "supervised-contrastive", "An epoch and one of supervised contrastive learning"),
    Comparison("epoch", "clai-m", "supervised-contrastive", "An epoch and one of supervised contrastive learning"),
    Comparison("epoch", "clai-c", "bare", "An epoch and its trunk alone"),
    Comparison("epoch", "clai-m", "bare", "An epoch and its trunk alone"),
    Comparison("precision", "auto", "bfloat16", "The default precision and a fixed one"),
    Comparison("precision", "auto", "float32", "The default precision and a fixed one"),
    Comparison("inference", "printed", "streamed", "Algorithm 4, the same vote"),
    Comparison("classifiers", "k-neighbours", "clai-c", "Classifiers of the same embeddings"),
    Comparison("classifiers", "k-neighbours", "clai-m", "Classifiers of the same embeddings"),
    Comparison("classifiers", "svm", "clai-c", "Classifiers of the same embeddings"),
    Comparison("classifiers", "svm", "clai-m", "Classifiers of the same embeddings"),
]
QUANTITIES = {
    "seconds": "Seconds",
    "peak_memory_mb": "Peak memory (MiB)",
    "difference": "Largest difference of results that should be equal",
}


def values(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the names in `setting` as further columns, of numbers where all values are numbers."""
    pairs = [dict(pair.split("=", 1) for pair in str(setting).split(";")) for setting in frame["setting"]]
    columns = {}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        column = pd.Series([pair.get(name) for pair in pairs], index=frame.index, dtype=object)
        number = pd.to_numeric(column, errors="coerce")
        columns[name] = number if number.notna().sum() == column.notna().sum() else column
    return frame.assign(**columns)


def comparisons(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each comparison and size: times first, then memory, then differences.

    Columns: quantity; comparison (title); setting; first, second (variants); first_value, second_value (medians over
    repetitions); ratio (median over repetitions of first / second); low, high (range of the ratio); n (repetitions);
    counted (the ratio of the predicted times, NaN without a prediction).
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
                     "second_value": float(rows_of_setting["value"].max())}
                    for setting, rows_of_setting in part[part["variant"] == second].groupby("setting", sort=False)
                ]  # fmt: skip
            else:
                rows += _side_by_side(frame, part, first, second, quantity, title)
    columns = ["quantity", "comparison", "setting", "first", "second", "first_value", "second_value", "ratio", "low",
               "high", "n", "counted"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).drop_duplicates(columns[:5], ignore_index=True)


def _side_by_side(
    frame: pd.DataFrame, part: pd.DataFrame, first: str, second: str, quantity: str, title: str
) -> list[dict[str, object]]:
    """Compare two variants of `part` at each setting; `frame` has the predictions."""
    rows: list[dict[str, object]] = []
    for setting, rows_of_setting in part.groupby("setting", sort=False):
        table = rows_of_setting.pivot_table(index="repetition", columns="variant", values="value")
        if second not in table:
            continue
        if first not in table:  # It was too large to be measured.
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
    """Summarise seconds and peak memory of an epoch over M (comparison `batches`) and over C (`classes`).

    Columns: quantity, comparison, variant, x (M or C), mean, low, high (range over repetitions), predicted (mean seconds,
    NaN for memory), n (repetitions).
    """
    rows = []
    for comparison, axis in (("batches", "M"), ("classes", "C")):
        part = values(frame[frame["comparison"] == comparison])
        for quantity in ("seconds", "peak_memory_mb"):
            measured = part[part["quantity"] == quantity]
            for (variant, x), repetitions in measured.groupby(["variant", axis], sort=False):
                same = (part["variant"] == variant) & (part[axis] == x) & (part["quantity"] == "predicted")
                predicted = part[same]["value"].mean() if quantity == "seconds" else np.nan
                value = repetitions["value"]
                rows.append(
                    (quantity, comparison, variant, x, value.mean(), value.min(), value.max(), predicted, len(value))
                )
    columns = ["quantity", "comparison", "variant", "x", "mean", "low", "high", "predicted", "n"]
    return pd.DataFrame(rows, columns=columns)


def sampling(frame: pd.DataFrame) -> pd.DataFrame:
    """Average the quantities of `measure_sampling` over samples of references.

    Columns: rule, C, share, n (number of references), quantity, mean.
    """
    part = values(frame[frame["comparison"] == "sampling"])
    if part.empty:
        return pd.DataFrame(columns=["rule", "C", "share", "n", "quantity", "mean"])
    grouped = part.groupby(["variant", "C", "share", "n", "quantity"], sort=False)["value"].mean()
    return grouped.rename("mean").reset_index().rename(columns={"variant": "rule"})


def predicted_seconds(variant: str, batches: float, classes: float, forward: float, backward: float) -> float:
    """Return the seconds that an epoch spends in the trunk: the number of passes of a batch times the seconds of each.

    Args:
        variant: printed, sequential, joint or linear; raises ValueError for another one.
        batches, classes: M and C.
        forward, backward: seconds of one pass of a batch.
    """
    pairs, anchors = batches * (batches - 1) / 2, batches - 1
    if variant == "printed":  # For each pair: the reference forward, and both backward.
        return classes * (pairs * (forward + 2 * backward) + anchors * forward)
    if variant == "sequential":
        return classes * (pairs + anchors) * (forward + backward)
    if variant == "joint":
        return (pairs + anchors) * (forward + backward)
    if variant == "linear":
        return batches // 2 * 2 * (forward + backward)
    raise ValueError(f"variant is {variant!r}, expected printed, sequential, joint or linear")


def exponent(frame: pd.DataFrame, comparison: str, variant: str, unit: Literal["seconds", "passes"]) -> pd.Series:
    """Return, for each repetition, the power of the size with which the cost of an epoch grows.

    The size is the number of pairs of batches (comparison `batches`) or of classes (`classes`). The cost is in seconds, or
    in bare trunk passes that would take as long, by their time in the same repetition: in seconds, a machine that slows
    down in the longer runs passes for growth. Empty without measurements.
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
    cost = by_quantity["seconds"] / (by_quantity["predicted"] / passes if unit == "passes" else 1)
    logs = pd.DataFrame({"x": np.log(size), "y": np.log(cost), "repetition": by_quantity["repetition"]})
    powers = {
        repetition: np.polyfit(points["x"], points["y"], 1)[0]
        for repetition, points in logs.groupby("repetition")
        if np.ptp(points["x"]) > 0
    }
    return pd.Series(powers, dtype=float).rename_axis("repetition")
