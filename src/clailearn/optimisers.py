"""The optimisers of a training: SGD, AdamW, and Muon for the kernels of convolutions."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from clailearn.errors import InputError


class Muon(torch.optim.Muon):
    """Muon (Jordan 2024) for convolutions: the weights (outputs, inputs, ...) of each are a matrix (outputs, all others).

    Args:
        rounded: orthogonalise in bfloat16, as torch does. A CPU that emulates bfloat16 may take longer for that than for all
            else of a step.
    """

    def __init__(self, weights: list[nn.Parameter], *, rounded: bool, **settings: Any) -> None:
        matrices = [nn.Parameter(weight.detach().flatten(1).clone()) for weight in weights]
        super().__init__(matrices, adjust_lr_fn="match_rms_adamw", **settings)
        self.weights, self.rounded = weights, rounded

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        matrices = self.param_groups[0]["params"]
        for weight, matrix in zip(self.weights, matrices, strict=True):
            matrix.copy_(weight.flatten(1))
            matrix.grad = None if weight.grad is None else weight.grad.flatten(1)
        if self.rounded:
            super().step(closure)
        else:
            self._step_unrounded()
        for weight, matrix in zip(self.weights, matrices, strict=True):
            weight.copy_(matrix.view_as(weight))

    def _step_unrounded(self) -> None:
        """Do what torch's step does, in the precision of the weights."""
        group = self.param_groups[0]
        for matrix in [matrix for matrix in group["params"] if matrix.grad is not None]:
            mean = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix.grad))
            mean.lerp_(matrix.grad, 1 - group["momentum"])
            direction = _orthogonalised(matrix.grad.lerp(mean, group["momentum"]), group)
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.add_(direction, alpha=-0.2 * math.sqrt(max(matrix.shape)) * group["lr"])  # match_rms_adamw


def _orthogonalised(matrix: Tensor, group: Mapping[str, Any]) -> Tensor:
    """Bring the singular values of a matrix near 1 by Newton-Schulz iterations, with the coefficients of a group of Muon."""
    a, b, c = group["ns_coefficients"]
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def build_optimisers(
    model: nn.Module, name: str, *, learning_rate: float, momentum: float, weight_decay: float, rounded: bool
) -> list[torch.optim.Optimizer]:
    """Build the optimisers of a model: `adamw`, `sgd`, or `muon` for the kernels of convolutions and AdamW for the rest.

    Args:
        momentum: of `sgd` and `muon`.
        weight_decay: of matrices of weights, without those that a module names `undecayed`.
        rounded: of `Muon`.

    Raises:
        InputError: `muon` has nothing to do, because no module names weights for it.
    """
    for_muon = _named_by(model, "muon") if name == "muon" else set()
    # Decay shrinks matrices of weights. Vectors are biases and scales of BatchNorm, which it would not regularise.
    undecayed = _named_by(model, "undecayed") | {id(p) for p in model.parameters() if p.ndim <= 1}
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
    if not for_muon:
        raise InputError(
            "training.optimiser: found muon, expected adamw or sgd, because the trunk has no convolutions for it"
        )
    weights = [parameter for parameter in model.parameters() if id(parameter) in for_muon]
    muon = Muon(weights, rounded=rounded, lr=learning_rate, weight_decay=weight_decay, momentum=momentum)
    return [adamw, muon]


def _named_by(model: nn.Module, attribute: str) -> set[int]:
    """Return the identities of the parameters that modules name in an attribute of theirs."""
    return {id(getattr(module, name)) for module in model.modules() for name in getattr(module, attribute, ())}
