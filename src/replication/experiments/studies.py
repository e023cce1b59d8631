"""One cell of a study: fit a model with the cell's settings, and measure it on the samples that the study is scored on."""

from pkgutil import resolve_name
from typing import Any, NamedTuple

import pandas as pd
from numpy.typing import NDArray

from clai.checkpoints import Checkpoint
from replication.models.run import Run
from replication.runs.models import CELLS, MODELS


class Cell(NamedTuple):
    """The results of a cell.

    Attributes:
        metrics: those of an `Evaluation`.
        history: that of the training, a row an epoch; empty for a fit without epochs.
        figures: for the record of the run, `training_seconds` among them.
        predictions: those of an `Evaluation`; None where a cell keeps none.
    """

    metrics: pd.DataFrame
    history: pd.DataFrame
    figures: dict[str, Any]
    predictions: dict[str, NDArray[Any]] | None = None


NO_HISTORY = pd.DataFrame({"epoch": pd.Series(dtype=int)})
"""The history of a fit without epochs."""


def run_cell(run: Run, checkpoint: Checkpoint, **given: Any) -> Cell:
    """Fit and measure the model of a cell, by the function that the registry names (`replication.runs.models.CELLS`).

    Args:
        given: what the model is fitted on besides the data: `embedded` for a baseline on embeddings.
    """
    return resolve_name(CELLS[MODELS[run.model].rule])(run, checkpoint, **given)
