"""Rows of outputs: means of evidence, and the columns that say what a row is of.

Evidence is by `name` (a dataset or study) and `cell` (a model of a dataset, or a cell of a study). Outputs have the columns
`dataset` and `model`, in rows of a study `study` and `cell` as well, and `other` where a row is the model minus another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from replication.metrics.intervals import interval, spread
from replication.report.evidence import Evidence
from replication.report.labels import MAJORITY, MODEL_OF, Metric, model_title
from replication.runs.registry import MODELS


def summary(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean, sd and n of each group over seeds or folds, and the limits low and high of the 95 % t-interval.

    Values of several seeds are averaged within a fold first, as `replicates` does.

    values: seed, fold, value and the columns `by`.
    """
    unit = values["fold"].notna().map({True: "fold", False: "seed"})
    named = values.assign(unit=unit, replicate=values["fold"].where(unit == "fold", values["seed"])).dropna(
        subset="value"
    )
    means = named.groupby([*by, "unit", "replicate"], sort=False, dropna=False)["value"].mean().reset_index()
    rows = []
    for (*key, name), part in means.groupby([*by, "unit"], sort=False, dropna=False):
        own = pd.Series(part["value"].to_numpy(), pd.Index(part["replicate"], name=name))
        (mean, sd, n), around = spread(own), interval(own)
        rows.append((*key, mean, sd, n, around.low, around.high))
    return pd.DataFrame(rows, columns=[*by, "mean", "sd", "n", "low", "high"])


def in_units(values: pd.DataFrame, metrics: Iterable[Metric], columns: Sequence[str] = ("value",)) -> pd.DataFrame:
    """Return the rows of some metrics in the units of tables; evidence has fractions."""
    scale = values["metric"].map({metric.key: metric.scale for metric in metrics})
    return values.assign(**{column: values[column] * scale for column in columns})[scale.notna()]


def identified(evidence: Evidence, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in the order of tables, with the columns of outputs in place of `name` and `cell`.

    In rows of a study `model` is the one of the paper that the cell stands for, if any. What the registry of models does not have
    is a cell, too.
    """
    pairs = list(zip(frame["name"], frame["cell"], strict=True))
    known = {pair: _identity(evidence, *pair) for pair in set(pairs)}
    columns = ["dataset", "study", "cell", "model", "order"]
    named = pd.DataFrame([known[pair] for pair in pairs], columns=columns, dtype=object)
    whole = named.join(frame.drop(columns=["name", "cell"]).reset_index(drop=True))
    return whole.sort_values("order", kind="stable").drop(columns="order").reset_index(drop=True)


def _identity(
    evidence: Evidence, name: str, cell: str
) -> tuple[str, str | None, str | None, str | None, tuple[int, int]]:
    """Return dataset, study, cell and model of a name and cell, and their place in tables."""
    cells: Mapping[str, Mapping[str, str]] = evidence.expected[name].get("cells", {})
    variants, known = cells.get(cell, {}), list(cells or MODELS)
    behind = next((variants[factor] for factor in ("kernel", "method", "model") if factor in variants), cell)
    model = MODEL_OF.get(behind, behind)
    place = (list(evidence.expected).index(name), known.index(cell) if cell in known else len(known))
    in_registry = model in (*MODELS, MAJORITY)
    return (
        evidence.dataset_of(name),
        name if cells else None,
        None if in_registry and not cells else cell,
        model if in_registry else None,
        place,
    )


def owners(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns name and cell of the rows of an output: study and cell, or else dataset and model."""
    columns = frame.reindex(columns=["study", "dataset", "cell", "model"]).astype(object)
    name, cell = (columns[own].where(columns[own].notna(), columns[other]) for own, other in OWNERS)
    return pd.DataFrame({"name": name, "cell": cell})


OWNERS = (("study", "dataset"), ("cell", "model"))
"""The columns of an output that name its evidence: the first where it is filled, or else the second."""


def runs_behind(evidence: Evidence, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the run records behind the rows of an output."""
    behind = owners(frame).assign(other=frame.get("other")).dropna(subset="cell")
    records: list[dict[str, Any]] = []
    for name in [name for name in evidence.at_hand() if name in set(behind["name"])]:
        own = behind[behind["name"] == name]
        records += evidence.runs(name, [*own["cell"], *own["other"]])
    return records


def titles(evidence: Evidence, frame: pd.DataFrame) -> list[str]:
    """Return what each row of an output is of: a model, a cell by its variants, or one model minus another."""
    found = []
    for (name, cell), other, model in zip(
        owners(frame).itertuples(index=False), frame.get("other", [None] * len(frame)), frame["model"], strict=True
    ):
        if isinstance(other, str):
            found.append(f"{model_title(model)} minus {model_title(other)}")
        else:
            found.append("" if pd.isna(cell) else evidence.model_title(name, cell))
    return found
