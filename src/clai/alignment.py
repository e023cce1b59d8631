"""Targets, the alignment loss and alignment scores.

Shapes throughout: labels as signs y (K, N) for K conditions; similarities S and targets T (K, A, R) of A anchors and R
references. Binary classification has K = 1, with the positive class as the only condition. Multiclass has K = C, one condition a
class.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Target = Literal["zero", "product", "masked"]


def one_vs_rest(labels: Tensor, conditions: int) -> Tensor:
    """Return labels as signs, +1 for the class of the condition and -1 for the rest (line 445).

    Args:
        labels: class indices, shape (N,).
        conditions: C for a multiclass task; 1 for a binary one, where class 1 is the positive class.

    Returns:
        Signs of shape (conditions, N), float32.
    """
    first = 1 if conditions == 1 else 0
    classes = torch.arange(first, first + conditions, device=labels.device).unsqueeze(1)
    return (labels.unsqueeze(0) == classes).float().mul_(2).sub_(1)


class TargetMatrix(NamedTuple):
    """Target similarities `values` (K, A, R), and `weights` of pairs of the same shape, or None where every pair counts alike."""

    values: Tensor
    weights: Tensor | None


def target_matrix(anchor: Tensor, reference: Tensor, kind: Target) -> TargetMatrix:
    """Return the target similarities of anchors with signs (K, A) and references with signs (K, R).

    * `product`: y y', +1 or -1 (Algorithms 1 and 3 as printed).
    * `zero`: 0 where both are negative, else y y' (the paper's equation, line 434).
    * `masked`: as `zero`, but the loss leaves pairs of negatives out instead of pulling them to 0.
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
    """Weight the pairs so that positives and negatives count alike, among anchors and among references.

    The weight of a pair is the product of its samples' weights, each 1 / (samples of the same sign in the batch). Without
    weights, 96 % of the pairs are pairs of negatives where 2 % of the samples are positive. Signs (K, A) and (K, R).
    """

    def weights(signs: Tensor) -> Tensor:
        positive = signs > 0
        count = positive.sum(-1, keepdim=True)
        return 1 / torch.where(positive, count, signs.shape[-1] - count).to(signs.dtype)

    pairs = weights(anchor).unsqueeze(-1) * weights(reference).unsqueeze(-2)
    return TargetMatrix(target.values, pairs if target.weights is None else pairs * target.weights)


def alignment_loss(similarity: Tensor, target: TargetMatrix) -> Tensor:
    """Return 1/B^2 ||S - T||_F^2 of each condition, shape (K,) (equation 9, line 241); with weights, their mean."""
    squared = (similarity - target.values).square()
    if target.weights is None:
        return squared.mean((-2, -1))
    total = target.weights.sum((-2, -1))
    return (squared * target.weights).sum((-2, -1)) / torch.where(total > 0, total, 1)


def alignment(similarity: Tensor, target: Tensor) -> Tensor:
    """Return the kernel alignment A(S, T) = <S, T> / (||S|| ||T||) over the last two dimensions (equation 5, line 142)."""
    inner = (similarity * target).sum((-2, -1))
    return inner / (similarity.norm(dim=(-2, -1)) * target.norm(dim=(-2, -1))).clamp_min(1e-12)


def centred_alignment(similarity: Tensor, target: Tensor) -> Tensor:
    """Return the alignment after centring rows and columns of both (Cortes, Mohri & Rostamizadeh 2012, definition 4).

    Without centring, a constant similarity has a high alignment wherever one class dominates.
    """

    def centre(matrix: Tensor) -> Tensor:
        rows, columns = matrix.mean(-1, keepdim=True), matrix.mean(-2, keepdim=True)
        return matrix - rows - columns + matrix.mean((-2, -1), keepdim=True)

    return alignment(centre(similarity), centre(target))


def alignment_scores(similarity: Tensor, target: TargetMatrix) -> tuple[Tensor, Tensor]:
    """Return (alignment, centred alignment), each (K,), of both matrices times the root of the pairs' weights."""
    weights = torch.ones_like(target.values) if target.weights is None else target.weights.sqrt()
    s, t = similarity * weights, target.values * weights
    return alignment(s, t), centred_alignment(s, t)
