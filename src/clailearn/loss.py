"""The alignment loss as a module, for training loops of one's own."""

from torch import Tensor, nn

from clailearn.alignment import (
    Target,
    TargetMatrix,
    alignment_loss,
    balanced,
    class_target,
    one_vs_rest,
    target_matrix,
)
from clailearn.inference import checked_labels
from clailearn.kernels import Kernel


class AlignmentLoss(nn.Module):
    r"""Mean squared difference of a kernel's similarities from target similarities (equation 9).

    .. math:: \frac{1}{A R} \sum_{i,j} (S_{ij} - T_{ij})^2

    The shape of the embeddings decides what is aligned. Embeddings (N, L) are one embedding for all classes: T is 1 for samples
    of one class, and `target` says what it is for others. Embeddings (K, N, L) are those of the paper, one for each condition:
    T follows from the signs y of the labels, +1 for the class of the condition, and the loss is the mean over conditions.

    Args:
        kernel: compares embeddings. Its parameters, such as the metric of `MahalanobisGaussian`, are trained with the encoder's.
        target: without conditions `zero`, `product` or `simplex` (`clailearn.alignment.class_target`); with conditions `zero` or
            `product` (`clailearn.alignment.target_matrix`). Two classes under one condition have `product`.
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
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel is {kernel!r}, expected a Kernel, as clailearn.kernels.build gives it")
        if target == "simplex" and (classes or 0) < 2:
            raise ValueError("target is 'simplex', which needs classes, the number of all classes")
        if pair_weighting not in ("none", "balanced"):
            raise ValueError(f"pair_weighting is {pair_weighting!r}, expected none or balanced")
        self.kernel, self.target, self.classes, self.pair_weighting = kernel, target, classes, pair_weighting

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference_embeddings: Tensor | None = None,
        reference_labels: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar.

        Args:
            embeddings: anchors, (A, L), or (K, A, L) under K conditions: C of them, or one for two classes.
            labels: class indices (A,), 0 to C - 1; a tensor, an array or a list.
            reference_embeddings, reference_labels: what the anchors are compared with, R samples; None: the anchors themselves.
        """
        if (reference_embeddings is None) != (reference_labels is None):
            raise ValueError("found reference_embeddings or reference_labels alone, expected both or none")
        if reference_embeddings is None or reference_labels is None:
            reference_embeddings, reference_labels = embeddings, labels
        classes = self.classes if self.target == "simplex" else None
        if embeddings.ndim == 3:
            classes = max(len(embeddings), 2)
        elif self.pair_weighting == "balanced":
            raise ValueError("pair_weighting is 'balanced', which needs embeddings under conditions, (K, N, L)")
        labels = checked_labels(labels, embeddings, classes)
        reference_labels = checked_labels(reference_labels, reference_embeddings, classes)
        return alignment_loss(*self.compare(embeddings, labels, reference_embeddings, reference_labels)).mean()

    def compare(
        self, anchors: Tensor, labels: Tensor, references: Tensor, reference_labels: Tensor
    ) -> tuple[Tensor, TargetMatrix]:
        """Return similarities and targets, (K, A, R), without conditions (1, A, R); arguments as those of `forward`."""
        similarity = self.kernel(anchors, references)
        if anchors.ndim == 2:
            values = class_target(labels, reference_labels, self.classes or 2, self.target)
            return similarity.unsqueeze(0), TargetMatrix(values.to(similarity.dtype).unsqueeze(0), None)
        y_anchor, y_reference = (one_vs_rest(y, len(anchors)).to(similarity.dtype) for y in (labels, reference_labels))
        target = target_matrix(y_anchor, y_reference, self.target)
        if self.pair_weighting == "balanced":
            target = balanced(target, y_anchor, y_reference)
        return similarity, target
