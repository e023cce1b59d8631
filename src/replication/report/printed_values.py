"""The tables in workflow/config: what the paper prints, what others report, and what the paper leaves open."""

from pathlib import Path

import pandas as pd

from clai.errors import InputError

COLUMNS = {
    "printed_values": ["table", "row", "metric", "value", "spread", "unit"],
    "reported_values": ["dataset", "model", "metric", "value", "unit", "source"],
    "choices": ["setting", "question", "reason"],
}
"""By name of the file. A setting is dotted, and empty where the code decides; reported values are in per cent."""


def read_values(path: Path) -> pd.DataFrame:
    """Return one of the tables of `COLUMNS`.

    Raises:
        InputError: the file has other columns.
    """
    frame = pd.read_csv(path, keep_default_na=path.stem != "choices")
    if list(frame) != COLUMNS[path.stem]:
        raise InputError(f"{path}: found the columns {list(frame)}, expected {COLUMNS[path.stem]}; rename them")
    return frame


def printed_value(values: pd.DataFrame, table: str, row: str, metric: str) -> tuple[float, float]:
    """Printed value and its spread; nan where the paper prints none."""
    found = values[(values["table"] == table) & (values["row"] == row) & (values["metric"] == metric)]
    if found.empty:
        return float("nan"), float("nan")
    return float(found["value"].iloc[0]), float(found["spread"].iloc[0])
