"""Divergence of training: how to recognise it, and the error that tells the user."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clai.errors import DivergenceError

EXPLODED = 1e3
"""Loss above which training has diverged. The alignment loss is at most 4; cross-entropy over C classes starts at log C."""

FAILURES = (ArithmeticError, RuntimeError, ValueError)
"""Errors that torch and scikit-learn raise for values that are not finite, and for other reasons too."""


def refuse_divergence(
    module: nn.Module,
    losses: Sequence[Tensor] | Tensor,
    rates: Sequence[float],
    epoch: int,
    steps: int,
    advice: str,
    error: Exception | None = None,
) -> None:
    """Raise DivergenceError if an epoch has so far left the finite numbers or exploded.

    Args:
        module: in training; its parameters must be finite.
        losses: scalar loss of each step of the epoch.
        rates: learning rate of each step; one more than losses where the last step failed.
        epoch: its number, from 1.
        steps: number of steps of an epoch.
        advice: end of the message, which says what to do and which state is saved.
        error: failure of a step or of the validation after it; None for none.
    """
    parameters = list(module.parameters())
    # The gradient of a finite loss need not be finite.
    finite_weights = all(bool(p.isfinite().all()) for p in parameters)
    numerical = isinstance(error, (FloatingPointError, torch.linalg.LinAlgError))
    exploded = error is not None and not all(bool((p.abs() <= EXPLODED).all()) for p in parameters)
    values = torch.stack([loss.float() for loss in losses]).tolist() if len(losses) else []
    bad = [step for step, value in enumerate(values) if not abs(value) <= EXPLODED]
    if not bad and finite_weights and not numerical and not exploded:
        return
    at = bad[0] if bad else len(rates) - 1
    loss = values[at] if at < len(values) else math.nan
    if not finite_weights:
        found = " and weights are not finite"
    elif bad or at == len(values):
        found = ""
    else:
        found = " but what the weights give is not finite"
    raise DivergenceError(
        f"training diverged in epoch {epoch}: at step {at + 1} of {steps} the loss is {loss:.3g}{found}, "
        f"the learning rate {rates[at]:.3g}; {advice}"
    ) from error
