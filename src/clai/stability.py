"""When training by gradient has diverged, and what the user is told then."""

import math
import sys
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clai.errors import DivergenceError

EXPLODED = 1e3
"""No loss of a healthy run is near this: the alignment loss is at most 4, and cross-entropy over C classes starts at log C."""

FAILURES = (ArithmeticError, RuntimeError, ValueError)
"""What torch, GPyTorch and scikit-learn raise where they meet values that are not finite, and for other reasons too."""


def finite(outputs: Tensor) -> Tensor:
    """The outputs of a model, of any shape; raises FloatingPointError if one of them is not finite."""
    if not outputs.isfinite().all():
        raise FloatingPointError("outputs of the model are not finite")
    return outputs


def divergence(
    module: nn.Module,
    losses: Sequence[Tensor],
    rates: Sequence[float],
    epoch: int,
    steps: int,
    advice: str,
    error: Exception | None = None,
) -> DivergenceError | None:
    """What to raise if an epoch so far has left the finite numbers or exploded, else None.

    Args:
        module: what is trained; its parameters are looked at.
        losses: of the steps of the epoch, scalars.
        rates: learning rate of each step; one more than losses where the last step failed.
        epoch, steps: number of the epoch, from 1, and of its steps.
        advice: what to do and what is kept, to end the message.
        error: what a step, or a measurement after it, failed with; None for none.
    """
    parameters = list(module.parameters())
    whole = all(bool(p.isfinite().all()) for p in parameters)  # the gradient of a finite loss need not be finite
    broken = not whole or (error is not None and _is_numerical(error, parameters))
    values = torch.stack([loss.float() for loss in losses]).tolist() if losses else []
    if broken:
        values += [math.nan] * (len(rates) - len(values))
    bad = [i for i, value in enumerate(values) if not abs(value) <= EXPLODED] or ([len(values) - 1] if broken else [])
    if not bad:
        return None
    at = bad[0]
    weights = "" if whole else " and weights are not finite"
    if whole and abs(values[at]) <= EXPLODED:
        weights = " but what the weights give is not finite"
    return DivergenceError(
        f"training diverged in epoch {epoch}: at step {at + 1} of {steps} the loss is {values[at]:.3g}{weights}, "
        f"the learning rate {rates[at]:.3g}; {advice}"
    )


def _is_numerical(error: Exception, parameters: Sequence[Tensor]) -> bool:
    """Whether an exception says that numbers broke down, or comes where weights have exploded."""
    known: tuple[type[Exception], ...] = (FloatingPointError, torch.linalg.LinAlgError)
    # Errors of GPyTorch. Only a process that has imported its module can meet them, and the method works without it.
    gpytorch = sys.modules.get("linear_operator.utils.errors")
    if gpytorch is not None:
        known += (gpytorch.NanError, gpytorch.NotPSDError)
    return isinstance(error, known) or not all(bool((p.abs() <= EXPLODED).all()) for p in parameters)
