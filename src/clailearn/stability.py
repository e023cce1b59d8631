"""The steps of an epoch, and divergence: how to recognise it, and the error that tells the user."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from clailearn.errors import DivergenceError

EXPLODED = 1e3
"""Loss above which training has diverged. The alignment loss is at most 4; cross-entropy over C classes starts at log C."""

# Errors that torch and scikit-learn raise for values that are not finite, and for other reasons too.
_FAILURES = (ArithmeticError, RuntimeError, ValueError)


class Steps:
    """What the steps of an epoch leave.

    Attributes:
        rates: learning rate of each step, which a step appends before it computes; one more than losses where it fails.
        figures: scalars by name, `loss` among them, as a tensor (steps,) on the device.
        began, ended: times (s), of a clock that starts anywhere.

    Args:
        number: of steps of the epoch.
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self.number, self.device, self.done = number, device, 0
        self.began = self.ended = time.perf_counter()
        self.rates: list[float] = []
        # A tensor of all steps: scalars of each step would lie between large tensors, and keep freed memory in pieces.
        self.figures: dict[str, Tensor] = {}

    def add(self, figures: Mapping[str, Tensor]) -> None:
        """Keep the figures of the next step."""
        for key, value in figures.items():
            if key not in self.figures:
                self.figures[key] = torch.zeros(self.number, dtype=torch.float32, device=self.device)
            self.figures[key][self.done] = value
        self.done += 1

    def means(self) -> dict[str, float]:
        """Return the means of the figures, after the last step."""
        means = {key: float(values.mean()) for key, values in self.figures.items()}
        self.ended = time.perf_counter()  # A GPU has then finished the steps.
        return means

    @contextlib.contextmanager
    def refusing_divergence(
        self, module: nn.Module, epoch: int, advice: str, advice_on_weights: str | None = None
    ) -> Iterator[None]:
        """Raise DivergenceError if the steps of an epoch, and the validation after it, leave the finite numbers or explode.

        Args:
            module: in training; its parameters must be finite.
            epoch: its number, from 1.
            advice: end of the message, which says what to do and which state is saved.
            advice_on_weights: the same where all losses are as they should be and only weights are not; None: `advice`.
        """
        failure = None
        try:
            yield
        except _FAILURES as error:
            failure = error
        # The gradient of a finite loss need not be finite.
        not_finite = [name for name, weights in module.named_parameters() if not bool(weights.isfinite().all())]
        numerical = isinstance(failure, (FloatingPointError, torch.linalg.LinAlgError))
        exploded = failure is not None and not all(bool((p.abs() <= EXPLODED).all()) for p in module.parameters())
        losses = self.figures["loss"][: self.done].tolist() if self.figures else []
        bad = [step for step, loss in enumerate(losses) if not abs(loss) <= EXPLODED]
        if bad or not_finite or numerical or exploded:
            at = bad[0] if bad else len(self.rates) - 1
            loss = losses[at] if at < len(losses) else math.nan
            found = "" if bad or at == len(losses) else " but what the weights give is not finite"
            if not_finite:
                found = f" and weights are not finite, {not_finite[0]} first"
                advice = advice if bad else advice_on_weights or advice
            raise DivergenceError(
                f"training diverged in epoch {epoch}: at step {at + 1} of {self.number} the loss is {loss:.3g}{found}, "
                f"the learning rate {self.rates[at]:.3g}; {advice}"
            ) from failure
        if failure is not None:
            raise failure
