"""The tables in workflow/config: what the paper prints, and what others report."""

from pathlib import Path

import pandas as pd


def read_values(path: Path) -> pd.DataFrame:
    """Return one of the tables by its path.

    Columns of printed_values: table, row, metric, value, spread, unit; of reported_values: dataset, model, metric, value (per
    cent), unit, source.
    """
    return pd.read_csv(path)


def printed_value(values: pd.DataFrame, table: str, row: str, metric: str) -> tuple[float, float]:
    """Printed value and its spread; nan where the paper prints none."""
    found = values[(values["table"] == table) & (values["row"] == row) & (values["metric"] == metric)]
    if found.empty:
        return float("nan"), float("nan")
    return float(found["value"].iloc[0]), float(found["spread"].iloc[0])
