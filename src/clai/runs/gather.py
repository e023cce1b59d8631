"""Gathering the tables of single runs into the evidence of a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd


class RunName(NamedTuple):
    """What the path results/{preset}/{dataset}/{model}/seed{seed}[/fold{fold}]/... says of a run."""

    dataset: str
    model: str
    seed: int
    fold: int | None


def run_name(path: str | Path) -> RunName:
    """The run that owns a file.

    >>> run_name("results/mini/cifar10/clai-m/seed1/metrics.csv")
    RunName(dataset='cifar10', model='clai-m', seed=1, fold=None)
    """
    parts = Path(path).parts
    seed = next(i for i, part in enumerate(parts) if part.startswith("seed"))
    fold = int(parts[seed + 1].removeprefix("fold")) if parts[seed + 1].startswith("fold") else None
    return RunName(parts[seed - 2], parts[seed - 1], int(parts[seed].removeprefix("seed")), fold)


def gather(tables: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """One table of many runs' tables, keyed by path, with the run's dataset, model, seed and fold in front.

    Columns are those asked for, in that order; a table that lacks one has it empty.
    """
    frames = [
        table.assign(**run_name(path)._asdict()).astype({"fold": "Int64"}).reindex(columns=list(columns))
        for path, table in tables.items()
    ]
    return pd.concat([frame.dropna(axis=1, how="all") for frame in frames], ignore_index=True).reindex(
        columns=list(columns)
    )


def test_rows(arrays: Mapping[str, Any], fold: int) -> pd.DataFrame:
    """Recording, hour and label of each row of a test fold, in the order of its embeddings."""
    rows = arrays["folds_all"] == fold
    return pd.DataFrame({key: arrays[f"{key}_all"][rows] for key in ("groups", "hours", "y")})
