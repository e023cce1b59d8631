"""Floating-point operations of training: those of the network, forward and backward."""

import copy

import torch
from torch.utils.flop_counter import FlopCounterMode

from clai.encoders import Classifier, Encoder
from replication.models.run import Run
from replication.models.training import Trained
from replication.runs.models import CLAI

# A few items: the count is proportional to their number, and BatchNorm needs two.
_ITEMS = 4


def operations_per_item(run: Run, model: Trained | Classifier | Encoder) -> float | None:
    """Count the operations of one training item in the run's network, forward and backward.

    A multiplication and an addition are two operations, as Jordan (2024, arXiv 2404.00498) counts. PyTorch's counter knows
    convolutions and matrix products, from their shapes; the layout in memory and the precision change nothing. Normalisation,
    activations, the loss and the optimiser are not counted: together they are a few per cent.

    Returns:
        The operations; None for recordings, because the counter does not know recurrent layers.
    """
    if run.data.info["kind"] == "recordings":
        return None
    network = copy.deepcopy(model.encoder if isinstance(model, Trained) else model).cpu().train()
    x = run.splits.train.batch(torch.arange(_ITEMS), None)[0].cpu()
    jointly = run.model in CLAI and run.training.schedule == "joint"
    with FlopCounterMode(display=False) as counter:
        output = network(x) if jointly or isinstance(model, Classifier) else network(x, 0)
        output.sum().backward()
    return counter.get_total_flops() / _ITEMS
