"""The optimisers of a training: SGD, AdamW, and Muon for the kernels of convolutions."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from clailearn.encoders import FEATURE_CONVOLUTIONS
from clailearn.errors import InputError

_QUINTIC = (3.4445, -4.775, 2.0315)
"""Coefficients of a Newton-Schulz iteration, as Jordan (2024) chose them."""


class Muon(torch.optim.Optimizer):
    """Muon (Jordan 2024) for convolutions: the weights (outputs, inputs, ...) of each are a matrix (outputs, all others).

    A step is that of `torch.optim.Muon` with `match_rms_adamw`, which takes matrices alone and always orthogonalises in bfloat16.

    Args:
        rounded: orthogonalise in bfloat16. A CPU that emulates bfloat16 may take longer for that than for all else of a step.
    """

    def __init__(
        self, weights: list[Tensor], *, rounded: bool, lr: float, weight_decay: float, momentum: float
    ) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        self.rounded = rounded

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        (group,) = self.param_groups
        rate, momentum = group["lr"], group["momentum"]
        for weight in [weight for weight in group["params"] if weight.grad is not None]:
            gradient = weight.grad.flatten(1)
            mean = self.state[weight].setdefault("mean", torch.zeros_like(gradient))
            mean.lerp_(gradient, 1 - momentum)
            direction = gradient.lerp(mean, momentum)
            direction = _orthogonalised(direction.bfloat16() if self.rounded else direction).reshape(weight.shape)
            weight.mul_(1 - rate * group["weight_decay"])
            weight.add_(direction, alpha=-0.2 * math.sqrt(max(gradient.shape)) * rate)  # match_rms_adamw


def _orthogonalised(matrix: Tensor) -> Tensor:
    """Bring the singular values of a matrix near 1 by Newton-Schulz iterations."""
    a, b, c = _QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def build_optimisers(
    model: nn.Module, name: str, *, learning_rate: float, momentum: float, weight_decay: float, rounded: bool
) -> list[torch.optim.Optimizer]:
    """Build the optimisers of a model: `adamw`, `sgd`, or `muon` for the kernels of convolutions and AdamW for the rest.

    Weight decay is of what has two dimensions or more, without what a module names `undecayed`: matrices of weights, and the
    bias of the head, which has a row for each condition.

    Raises InputError where `muon` has nothing to do, because no convolution takes features.
    """
    convolutions = [m.weight for m in model.modules() if isinstance(m, FEATURE_CONVOLUTIONS)] if name == "muon" else []
    for_muon = {id(weight) for weight in convolutions}
    # Vectors are biases and scales of BatchNorm, which decay would not regularise.
    undecayed = {id(p) for p in model.parameters() if p.ndim <= 1}
    undecayed |= {id(getattr(m, name)) for m in model.modules() for name in getattr(m, "undecayed", ())}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in for_muon]
    groups = [
        {"params": [p for p in rest if id(p) not in undecayed], "weight_decay": weight_decay},
        {"params": [p for p in rest if id(p) in undecayed], "weight_decay": 0.0},
    ]
    if name == "sgd":
        return [torch.optim.SGD(groups, lr=learning_rate, momentum=momentum, nesterov=momentum > 0)]
    adamw = torch.optim.AdamW(groups, lr=learning_rate)
    if name == "adamw":
        return [adamw]
    if not convolutions:
        raise InputError(
            "training.optimiser: found muon, expected adamw or sgd, because the trunk has no convolutions for it"
        )
    muon = Muon(convolutions, rounded=rounded, lr=learning_rate, weight_decay=weight_decay, momentum=momentum)
    return [adamw, muon]
