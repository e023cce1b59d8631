"""Targets, the alignment loss, also as a module for training loops of one's own, and alignment scores.

Shapes throughout: labels as signs y (K, N) for K conditions; similarities S and targets T (K, A, R) of A anchors and R
references. Binary classification has K = 1, with the positive class as the only condition. Multiclass has K = C, one condition a
class.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from clailearn.kernels import Kernel

Target = Literal["zero", "product", "simplex"]


def one_vs_rest(labels: Tensor, conditions: int) -> Tensor:
    """Return class indices (N,) as signs (conditions, N), float32: 1 for the class of the condition, else -1 (section III-D1).

    conditions: C for a multiclass task; 1 for a binary one, where class 1 is the positive class.
    """
    first = 1 if conditions == 1 else 0
    classes = torch.arange(first, first + conditions, device=labels.device).unsqueeze(1)
    return (labels.unsqueeze(0) == classes).float().mul_(2).sub_(1)


def target_matrix(anchor: Tensor, reference: Tensor, kind: Target) -> Tensor:
    """Return the target similarities (K, A, R) of anchors with signs (K, A) and references with signs (K, R).

    * `product`: y y', +1 or -1 (Algorithms 1 and 3 as printed).
    * `zero`: 0 where both are negative, else y y' (the paper's equation, section III-D1).
    """
    product = anchor.unsqueeze(-1) * reference.unsqueeze(-2)
    if kind == "product":
        return product
    if kind == "zero":
        return torch.addcmul(product, (1 - anchor).unsqueeze(-1), (1 - reference).unsqueeze(-2), value=-0.25)
    raise ValueError(f"target is {kind!r}, expected zero or product for embeddings under conditions")


def class_target(anchor: Tensor, reference: Tensor, classes: int, kind: Target) -> Tensor:
    """Return the target similarities (A, R) of class indices (A,) and (R,) without conditions: 1 for equal ones, else by `kind`.

    * `product`: -1 (Cristianini et al. 2001).
    * `zero`: 0.
    * `simplex`: -1/(C - 1) of C `classes`, the similarity of such as lie evenly; 1 and this are the centred kernel of equal ones
      (Cortes, Mohri & Rostamizadeh 2012), scaled.
    """
    others: dict[Target, float] = {"product": -1.0, "zero": 0.0, "simplex": -1 / (classes - 1)}
    if kind not in others:
        raise ValueError(f"target is {kind!r}, expected {', '.join(others)} for an embedding without conditions")
    return torch.where(anchor.unsqueeze(-1) == reference.unsqueeze(-2), 1.0, others[kind])


def balanced(anchor: Tensor, reference: Tensor) -> Tensor:
    """Return weights of pairs (K, A, R) by which positives and negatives count alike, among anchors and among references.

    The weight of a pair is the product of its samples' weights, each 1 / (samples of the same sign in the batch). Without
    weights, 96 % of the pairs are pairs of negatives where 2 % of the samples are positive. Signs (K, A) and (K, R).
    """

    def weights(signs: Tensor) -> Tensor:
        positive = signs > 0
        count = positive.sum(-1, keepdim=True)
        return 1 / torch.where(positive, count, signs.shape[-1] - count).to(signs.dtype)

    return weights(anchor).unsqueeze(-1) * weights(reference).unsqueeze(-2)


def alignment_loss(similarity: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return 1/B^2 ||S - T||_F^2 of each condition, shape (K,) (equation 9), weighted where there are weights."""
    squared = nn.functional.mse_loss(similarity, target, reduction="none")
    if weights is None:
        return squared.mean((-2, -1))
    return (squared * weights).sum((-2, -1)) / weights.sum((-2, -1))


def alignment_scores(similarity: Tensor, target: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return (alignment, centred alignment), each (K,), of both matrices times the root of the pairs' weights.

    The alignment is <S, T> / (||S|| ||T||) (equation 5). The centred alignment is that after centring rows and columns
    of both (Cortes, Mohri & Rostamizadeh 2012, definition 4), and 0 where centring leaves nothing of one of them. Without
    centring, a constant similarity has a high alignment wherever one class dominates.

    Training calls this at each step, so without weights it writes one matrix only. With centring C, <C S C, C T C> is
    <C S C, T>, and the norm of C T C follows from the sums of rows and columns of T, which for targets of 0 and ±1 are exact.
    """
    s, t = similarity, target.to(similarity.dtype)
    if weights is not None:
        s, t = s * weights.sqrt(), t * weights.sqrt()
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


def checked_labels(labels: Any, embeddings: Tensor, classes: int | None) -> Tensor:
    """Return labels (N,) of embeddings (N, L) or (K, N, L) as a tensor beside them.

    Raises ValueError where there is not one label for each, or labels are no indices of so many classes.
    """
    y = torch.as_tensor(labels, device=embeddings.device)
    if embeddings.ndim not in (2, 3) or y.shape != embeddings.shape[-2:-1]:
        raise ValueError(
            f"found labels of shape {tuple(y.shape)} for embeddings of shape {tuple(embeddings.shape)}, expected (N,) for "
            "(N, L), or for (K, N, L) under K conditions"
        )
    if not len(y):
        raise ValueError("found no label, expected one sample at least")
    if not 0 <= y.min() <= y.max() < (classes or math.inf):  # also of labels that are not a number
        last = "" if classes is None else f" to {classes - 1}"
        raise ValueError(f"found labels from {y.min()} to {y.max()}, expected class indices from 0{last}")
    if y.is_floating_point() and bool((y != y.round()).any()):
        raise ValueError("found labels that are no whole numbers, expected class indices; encode the classes")
    return y


def checked_embeddings(kernel: Kernel, *embeddings: Tensor) -> list[Tensor]:
    """Return embeddings, those of half precision as float32, in which kernels compare them.

    Raises ValueError unless the kernel is one, and embeddings are tensors (N, L) or (K, N, L) of the width that it takes.
    """
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel is {kernel!r:.100}, expected a Kernel, as clailearn.kernels.build gives it")
    for z in embeddings:
        if not isinstance(z, Tensor) or z.ndim not in (2, 3):
            found = f"shape {tuple(z.shape)}" if isinstance(z, Tensor) else f"type {type(z).__name__}"
            raise ValueError(
                f"found embeddings of {found}, expected a tensor (N, L), or (K, N, L) under K conditions; mind the order of "
                "arguments, and convert an array by torch.from_numpy"
            )
        if z.shape[-1] != (width := getattr(kernel, "size", embeddings[0].shape[-1])):
            raise ValueError(
                f"found embeddings of {z.shape[-1]} dimensions, expected {width}, as the kernel or the other embeddings have; "
                "give the kernel this size, or change the encoder"
            )
    return [z.float() if z.dtype in (torch.bfloat16, torch.float16) else z for z in embeddings]


def compared_with(
    kernel: Kernel, embeddings: Tensor, labels: Any, references: Tensor | None, reference_labels: Any
) -> tuple[Tensor, Tensor, Any]:
    """Return embeddings, references and their labels: those that are given, or the samples themselves.

    Raises ValueError for references without labels, embeddings that do not fit the kernel, and a sample without others.
    """
    if (references is None) != (reference_labels is None):
        raise ValueError("found reference_embeddings or reference_labels alone, expected both or none")
    if references is None:
        references, reference_labels = embeddings, labels
    compared = checked_embeddings(kernel, embeddings, references)
    if references is embeddings and embeddings.shape[-2] == 1:
        raise ValueError("found a batch of one sample, expected others to compare it with; give a larger batch")
    return compared[0], compared[1], reference_labels


class AlignmentLoss(nn.Module):
    r"""Mean squared difference of a kernel's similarities from target similarities (equation 9).

    .. math:: \frac{1}{A R} \sum_{i,j} (S_{ij} - T_{ij})^2

    The shape of the embeddings decides what is aligned. Embeddings (N, L) are one embedding for all classes: T is 1 for samples
    of one class, and `target` says what it is for others. Embeddings (K, N, L) are those of the paper, one for each condition:
    T follows from the signs y of the labels, +1 for the class of the condition, and the loss is the mean over conditions.

    Args:
        kernel: compares embeddings. Its parameters, such as the metric of `MahalanobisGaussian`, are trained with the encoder's.
        target: without conditions `zero`, `product` or `simplex` (`clailearn.alignment.class_target`); with conditions `zero` or
            `product` (`clailearn.alignment.target_matrix`). The paper has `product` for two classes under one condition.
        classes: C, which `simplex` needs.
        pair_weighting: `none`, or `balanced`: positives and negatives of a condition have equal weight.

    >>> import torch
    >>> from clailearn.kernels import Cosine
    >>> loss = AlignmentLoss(Cosine(), target="product")
    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
    >>> loss(z, torch.tensor([0, 0, 1]))
    tensor(0.)
    """

    def __init__(
        self,
        kernel: Kernel,
        target: Target = "zero",
        classes: int | None = None,
        pair_weighting: str = "none",
    ) -> None:
        super().__init__()
        checked_embeddings(kernel)
        if target == "simplex" and (classes or 0) < 2:
            raise ValueError("target is 'simplex', which needs classes, the number of all classes")
        if pair_weighting not in ("none", "balanced"):
            raise ValueError(f"pair_weighting is {pair_weighting!r}, expected none or balanced")
        self.kernel, self.target, self.classes, self.pair_weighting = kernel, target, classes, pair_weighting

    def forward(
        self,
        embeddings: Tensor,
        labels: Any,
        reference_embeddings: Tensor | None = None,
        reference_labels: Any = None,
    ) -> Tensor:
        """Return the loss, a scalar.

        Args:
            embeddings: anchors, (A, L), or (K, A, L) under K conditions: C of them, or one for two classes.
            labels: class indices (A,), 0 to C - 1; a tensor, an array or a list.
            reference_embeddings, reference_labels: what the anchors are compared with, R samples; None: the anchors themselves.
        """
        embeddings, reference_embeddings, reference_labels = compared_with(
            self.kernel, embeddings, labels, reference_embeddings, reference_labels
        )
        classes = self.classes if self.target == "simplex" else None
        if embeddings.ndim == 3:
            classes = max(len(embeddings), 2)
        elif self.pair_weighting == "balanced":
            raise ValueError("pair_weighting is 'balanced', which needs embeddings under conditions, (K, N, L)")
        labels = checked_labels(labels, embeddings, classes)
        reference_labels = checked_labels(reference_labels, reference_embeddings, classes)
        with torch.autocast(embeddings.device.type, enabled=False):  # as the losses of torch
            return alignment_loss(*self.compare(embeddings, labels, reference_embeddings, reference_labels)).mean()

    def compare(
        self, anchors: Tensor, labels: Tensor, references: Tensor, reference_labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return similarities, targets and weights of pairs, if any, (K, A, R), without conditions (1, A, R)."""
        similarity = self.kernel(anchors, references)
        if anchors.ndim == 2:
            values = class_target(labels, reference_labels, max(self.classes or 2, 2), self.target)
            return similarity.unsqueeze(0), values.to(similarity.dtype).unsqueeze(0), None
        y_anchor, y_reference = (one_vs_rest(y, len(anchors)).to(similarity.dtype) for y in (labels, reference_labels))
        weights = balanced(y_anchor, y_reference) if self.pair_weighting == "balanced" else None
        return similarity, target_matrix(y_anchor, y_reference, self.target), weights
