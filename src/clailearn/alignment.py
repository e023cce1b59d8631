"""Targets, the alignment loss and alignment scores.

Shapes throughout: labels as signs y (K, N) for K conditions; similarities S and targets T (K, A, R) of A anchors and R
references. Binary classification has K = 1, with the positive class as the only condition. Multiclass has K = C, one condition a
class.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

Target = Literal["zero", "product", "simplex"]


def one_vs_rest(labels: Tensor, conditions: int) -> Tensor:
    """Return labels as signs, +1 for the class of the condition and -1 for the rest (section III-D1).

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
    """Target similarities `values` (K, A, R), and `weights` of pairs of the same shape; None for equal weights."""

    values: Tensor
    weights: Tensor | None


def target_matrix(anchor: Tensor, reference: Tensor, kind: Target) -> TargetMatrix:
    """Return the target similarities of anchors with signs (K, A) and references with signs (K, R).

    * `product`: y y', +1 or -1 (Algorithms 1 and 3 as printed).
    * `zero`: 0 where both are negative, else y y' (the paper's equation, section III-D1).
    """
    if kind == "product":
        return TargetMatrix(anchor.unsqueeze(-1) * reference.unsqueeze(-2), None)
    if kind == "zero":
        # With indicators p of positives and n of negatives: T = p y' - n p'.
        positive, negative = (1 + anchor) / 2, (1 - anchor) / 2
        values = torch.stack([positive, -negative], -1) @ torch.stack([reference, (1 + reference) / 2], -2)
        return TargetMatrix(values, None)
    raise ValueError(f"target is {kind!r}, expected zero or product for embeddings under conditions")


def class_target(anchor: Tensor, reference: Tensor, classes: int, kind: Target) -> Tensor:
    """Return the target similarities (A, R) of one embedding for all classes: 1 for equal labels, else what `kind` says.

    * `product`: -1 (Cristianini et al. 2001).
    * `zero`: 0.
    * `simplex`: -1/(C - 1), the similarity of classes that lie evenly; 1 and this are the centred kernel of C equal classes
      (Cortes, Mohri & Rostamizadeh 2012), scaled.

    Args:
        anchor, reference: class indices (A,) and (R,).
        classes: C, for `simplex`.
        kind: the target of two samples of different classes.
    """
    others: dict[Target, float] = {"product": -1.0, "zero": 0.0, "simplex": -1 / (classes - 1)}
    if kind not in others:
        raise ValueError(f"target is {kind!r}, expected {', '.join(others)} for an embedding without conditions")
    return torch.where(anchor.unsqueeze(-1) == reference.unsqueeze(-2), 1.0, others[kind])


def balanced(target: TargetMatrix, anchor: Tensor, reference: Tensor) -> TargetMatrix:
    """Weight the pairs so that positives and negatives have equal weight, among anchors and among references.

    The weight of a pair is the product of its samples' weights, each 1 / (samples of the same sign in the batch). Without
    weights, 96 % of the pairs are pairs of negatives where 2 % of the samples are positive. Signs (K, A) and (K, R).
    """

    def weights(signs: Tensor) -> Tensor:
        positive = signs > 0
        count = positive.sum(-1, keepdim=True)
        return 1 / torch.where(positive, count, signs.shape[-1] - count).to(signs.dtype)

    return TargetMatrix(target.values, weights(anchor).unsqueeze(-1) * weights(reference).unsqueeze(-2))


def alignment_loss(similarity: Tensor, target: TargetMatrix) -> Tensor:
    """Return 1/B^2 ||S - T||_F^2 of each condition, shape (K,) (equation 9); with weights, their mean."""
    squared = nn.functional.mse_loss(similarity, target.values, reduction="none")
    if target.weights is None:
        return squared.mean((-2, -1))
    return (squared * target.weights).sum((-2, -1)) / target.weights.sum((-2, -1))


def alignment_scores(similarity: Tensor, target: TargetMatrix) -> tuple[Tensor, Tensor]:
    """Return (alignment, centred alignment), each (K,), of both matrices times the root of the pairs' weights.

    The alignment is <S, T> / (||S|| ||T||) (equation 5). The centred alignment is that after centring rows and columns
    of both (Cortes, Mohri & Rostamizadeh 2012, definition 4), and 0 where centring leaves nothing of one of them. Without
    centring, a constant similarity has a high alignment wherever one class dominates.

    Training calls this at each step, so it writes one matrix only. With centring C, <C S C, C T C> is <C S C, T>, and the norm of
    C T C follows from the sums of rows and columns of T, which for targets without weights are exact.
    """
    s, t = similarity, target.values.to(similarity.dtype)
    if target.weights is not None:
        root = target.weights.sqrt()
        s, t = s * root, t * root
    means = s.mean(-1, keepdim=True)
    centred = (s - means).sub_(s.mean(-2, keepdim=True) - means.mean(-2, keepdim=True))
    rows, columns = t.sum(-1).double(), t.sum(-2).double()
    square = _inner(t, t).double()
    taken = rows.square().sum(-1) / t.shape[-1] + columns.square().sum(-1) / t.shape[-2]
    square_centred = square - taken + rows.sum(-1).square() / t[0].numel()

    norm, norm_centred = (torch.linalg.vector_norm(matrix, dim=(-2, -1)) for matrix in (s, centred))
    raw = _inner(s, t) / (norm * square.sqrt()).clamp_min(1e-12)
    score = _inner(centred, t) / (norm_centred * square_centred.clamp_min(0).sqrt()).clamp_min(1e-12)
    # Of a constant matrix, centring leaves rounding.
    eps = torch.finfo(s.dtype).eps
    constant = (norm_centred <= 16 * eps * norm) | (square_centred <= eps * square)
    return raw.to(s.dtype), score.to(s.dtype).masked_fill(constant, 0)


def _inner(first: Tensor, second: Tensor) -> Tensor:
    """Return the inner products (K,) of matrices (K, A, R), without a matrix of products."""
    return torch.linalg.vecdot(first.flatten(-2), second.flatten(-2))
