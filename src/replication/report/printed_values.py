"""The values that the paper prints."""

from pathlib import Path

import pandas as pd

from clai.errors import InputError


def read_printed_values(path: Path) -> pd.DataFrame:
    """The numbers printed in the paper: table, row, metric, value, spread, unit."""
    frame = pd.read_csv(path)
    expected = ["table", "row", "metric", "value", "spread", "unit"]
    if list(frame) != expected:
        raise InputError(f"{path}: expected the columns {expected}, found {list(frame)}")
    return frame


def printed_value(values: pd.DataFrame, table: str, row: str, metric: str) -> tuple[float, float]:
    """Printed value and its spread; nan where the paper prints none."""
    found = values[(values["table"] == table) & (values["row"] == row) & (values["metric"] == metric)]
    if found.empty:
        return float("nan"), float("nan")
    return float(found["value"].iloc[0]), float(found["spread"].iloc[0])
