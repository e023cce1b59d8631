"""Targets, the alignment loss, alignment scores and the least loss that a kernel can reach.

Shapes throughout: labels as signs y of shape (K, N) for K conditions; similarities S and targets T of shape (K, A, R). Binary
classification is K = 1 with the positive class as the only condition; multiclass is K = C, one condition a class.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Target = Literal["zero", "product", "masked"]


def one_vs_rest(labels: Tensor, conditions: int) -> Tensor:
    """Labels as signs, +1 for the condition's own class and -1 for the rest (line 439).

    Args:
        labels: class indices, shape (N,).
        conditions: C for a multiclass task; 1 for a binary one, where class 1 is the positive class.

    Returns:
        Signs of shape (conditions, N), float32.
    """
    first = 1 if conditions == 1 else 0
    own = torch.arange(first, first + conditions, device=labels.device).unsqueeze(1)
    return (labels.unsqueeze(0) == own).float().mul_(2).sub_(1)


class TargetMatrix(NamedTuple):
    """What similarities should be: `values` (K, A, R), and `weights` of the same shape, or None where every pair counts."""

    values: Tensor
    weights: Tensor | None


def target_matrix(anchor: Tensor, reference: Tensor, kind: Target) -> TargetMatrix:
    """Target similarities of anchors with signs (K, A) and references with signs (K, R).

    `product`: y y', +1 or -1 (Algorithms 1 and 3 as printed). `zero`: 0 where both are negative (the paper's equation, line
    430). `masked`: as `zero`, and pairs of negatives are left out of the loss instead of being pulled to 0.
    """
    product = anchor.unsqueeze(-1) * reference.unsqueeze(-2)
    if kind == "product":
        return TargetMatrix(product, None)
    both_negative = (anchor.unsqueeze(-1) < 0) & (reference.unsqueeze(-2) < 0)
    values = product.masked_fill(both_negative, 0)
    if kind == "zero":
        return TargetMatrix(values, None)
    if kind == "masked":
        return TargetMatrix(values, (~both_negative).to(values.dtype))
    raise ValueError(f"target is {kind!r}, expected zero, product or masked")


def balanced(target: TargetMatrix, anchor: Tensor, reference: Tensor) -> TargetMatrix:
    """The same targets with pairs weighted so that positives and negatives count alike, among anchors and among references.

    A pair's weight is the product of its samples' weights, each 1 / (samples of its sign in its batch): where 2 % are positive,
    96 % of the pairs of the unweighted loss are pairs of negatives. Signs (K, A) and (K, R).
    """

    def weights(signs: Tensor) -> Tensor:
        positive = signs > 0
        count = positive.sum(-1, keepdim=True)
        return 1 / torch.where(positive, count, signs.shape[-1] - count).to(signs.dtype)

    pairs = weights(anchor).unsqueeze(-1) * weights(reference).unsqueeze(-2)
    return TargetMatrix(target.values, pairs if target.weights is None else pairs * target.weights)


def alignment_loss(similarity: Tensor, target: TargetMatrix) -> Tensor:
    """1/B^2 ||S - T||_F^2 for each condition, shape (K,) (equation 11, line 299); over the pairs that count."""
    squared = (similarity - target.values).square()
    if target.weights is None:
        return squared.mean((-2, -1))
    total = target.weights.sum((-2, -1))
    return (squared * target.weights).sum((-2, -1)) / torch.where(total > 0, total, 1)


def alignment(similarity: Tensor, target: Tensor) -> Tensor:
    """Kernel alignment A(S, T) = <S, T> / (||S|| ||T||) over the last two dimensions (equation 4, line 195)."""
    inner = (similarity * target).sum((-2, -1))
    return inner / (similarity.norm(dim=(-2, -1)) * target.norm(dim=(-2, -1))).clamp_min(1e-12)


def centred_alignment(similarity: Tensor, target: Tensor) -> Tensor:
    """Alignment after rows and columns of both are centred (Cortes, Mohri & Rostamizadeh 2012, definition 4).

    Without centring a constant similarity already has a high alignment wherever one class dominates.
    """

    def centre(matrix: Tensor) -> Tensor:
        rows, columns = matrix.mean(-1, keepdim=True), matrix.mean(-2, keepdim=True)
        return matrix - rows - columns + matrix.mean((-2, -1), keepdim=True)

    return alignment(centre(similarity), centre(target))


def alignment_scores(similarity: Tensor, target: TargetMatrix) -> tuple[Tensor, Tensor]:
    """(alignment, centred alignment), each (K,), of both matrices times the root of the pairs' weights."""
    weights = torch.ones_like(target.values) if target.weights is None else target.weights.sqrt()
    s, t = similarity * weights, target.values * weights
    return alignment(s, t), centred_alignment(s, t)
