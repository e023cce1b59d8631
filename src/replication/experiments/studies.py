"""One cell of a study: fit a model with the cell's settings, and measure it on the samples that the study is scored on."""

import copy
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from clailearn.checkpoints import Checkpoint
from replication.experiments.evaluation import Evaluation, evaluate
from replication.models.base import Network, create
from replication.models.run import Run

# A few items: the count is proportional to their number, and BatchNorm needs two.
_ITEMS = 4


class Cell(NamedTuple):
    """The results of a cell.

    evaluation: on the samples that the study is scored on. history: a row an epoch; of a network, `operations` are the
    floating-point operations up to the end of each epoch. choices: of the fit, for the record of the run.
    """

    evaluation: Evaluation
    history: pd.DataFrame
    choices: dict[str, Any]


def run_cell(run: Run, checkpoint: Checkpoint) -> Cell:
    """Fit the model of a cell, and evaluate it on all test samples of the run."""
    model = create(run.model)
    epochs = model.fit(run, checkpoint)
    history = pd.DataFrame(epochs or {"epoch": []})
    if isinstance(model, Network):
        per_item = operations_per_item(run, model)
        if per_item is not None:
            history["operations"] = history["epoch"] * model.passes(run) * len(run.splits.train) * per_item
    return Cell(evaluate(run, model, run.splits), history, model.choices)


def operations_per_item(run: Run, model: Network) -> float | None:
    """Count the operations of one training item in a model's network, forward and backward.

    A multiplication and an addition are two operations, as Jordan (2024, arXiv 2404.00498) counts. PyTorch's counter knows
    convolutions and matrix products, from their shapes; the layout in memory and the precision change nothing. Normalisation,
    activations, the loss and the optimiser are not counted: together they are a few per cent. None for recordings, because the
    counter does not know recurrent layers.
    """
    if run.data.info["kind"] == "recordings":
        return None
    model = copy.deepcopy(model)
    model.module.cpu().train()
    x = run.splits.train.batch(torch.arange(_ITEMS), None)[0].cpu()
    with FlopCounterMode(display=False) as counter:
        model.forward(run, x).sum().backward()
    return counter.get_total_flops() / _ITEMS
