"""The Parzen rule trained by a proper score, and a memory of past features as further references. Ours, not the paper's."""

from typing import Any

import torch
from torch import Tensor, nn

from clailearn.alignment import checked_embeddings, checked_labels, compared_with, one_vs_rest
from clailearn.kernels import Kernel


class ParzenLoss(nn.Module):
    r"""Binary cross-entropy of the posteriors by Parzen densities (rule `parzen` of `clailearn.inference.decide`).

    .. math:: \frac{1}{2} \sum_k \mathrm{mean}_i\, \log\bigl(1 + e^{-y_{ik} o_{ik}}\bigr), \qquad
        o_{ik} = \log \frac{\sum_{n:\, y_{nk} = 1} G_k(i, n)}{\sum_{n:\, y_{nk} = -1} G_k(i, n)}

    G = (1 + S) / 2 is the Parzen form of the kernel's similarities, y the sign of a label under the condition of class k. The
    logarithm of odds o counts the class shares among the references. Embeddings (N, L) are one embedding for all classes, as in
    neighbourhood components analysis (Goldberger et al. 2004); embeddings (K, N, L) are one for each condition. The loss is half
    the sum over conditions, or that of the one condition of two classes; it has neither target nor weights of pairs. Its nearest
    relative is the Nadaraya-Watson head (Wang & Sabuncu 2023), which votes by a softmax of distances in one embedding.

    Args:
        kernel: compares embeddings. Its parameters are trained with the encoder's.

    >>> from clailearn.kernels import MahalanobisGaussian
    >>> loss = ParzenLoss(MahalanobisGaussian(1, "identity"))
    >>> z = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> bool(loss(z, [0, 0, 1, 1]) < 1e-6)
    True
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        checked_embeddings(kernel)
        self.kernel = kernel

    def forward(
        self,
        embeddings: Tensor,
        labels: Any,
        reference_embeddings: Tensor | None = None,
        reference_labels: Any = None,
        left_out: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar: a mean over the samples that have references of their class and of others.

        Args:
            embeddings: (A, L), or (K, A, L) under K conditions: C of them, or one for two classes.
            labels: class indices (A,), 0 to C - 1; a tensor, an array or a list.
            reference_embeddings, reference_labels: the references, R samples; None: the samples themselves.
            left_out: (A, R), true for pairs of which the reference does not vote, such as a sample and its copy; None: of a
                sample with itself, where the samples are their own references.
        """
        itself = reference_embeddings is None
        embeddings, reference_embeddings, reference_labels = compared_with(
            self.kernel, embeddings, labels, reference_embeddings, reference_labels
        )
        if itself and left_out is None:
            left_out = torch.eye(embeddings.shape[-2], dtype=torch.bool, device=embeddings.device)
        conditions = len(embeddings) if embeddings.ndim == 3 else None
        classes = max(conditions, 2) if conditions else None
        labels = checked_labels(labels, embeddings, classes).long()
        reference_labels = checked_labels(reference_labels, reference_embeddings, classes).long()
        if conditions is None:
            classes = int(torch.cat([labels, reference_labels]).max()) + 1
            conditions = classes if classes > 2 else 1
        positive, own = (one_vs_rest(y, conditions).to(embeddings.dtype) for y in (reference_labels, labels))
        sides = torch.stack([1 + positive, 1 - positive], -1) / 2
        counts = sides.sum(1, keepdim=True)
        with torch.autocast(embeddings.device.type, enabled=False):  # as the losses of torch
            sums = self.kernel.log_sums(embeddings, reference_embeddings, sides, left_out)
            if left_out is not None:
                counts = counts - left_out.to(sides.dtype) @ sides
        known = (counts > 0).all(-1).expand_as(own)
        losses = nn.functional.softplus(-own * (sums[..., 0] - sums[..., 1])) * known
        mean = losses.sum(1) / known.sum(1).clamp_min(1)
        return mean.sum() * (1.0 if conditions == 1 else 0.5)


class Memory(nn.Module):
    """The last samples of a training, at most `size`: `features` before the head, labels, and numbers of their items.

    It is that of scalable neighbourhood components analysis (Wu, Efros & Yu 2018), but of features before the head: the head of
    the moment maps them, so that they make up-to-date references. All are buffers, which a checkpoint keeps.
    """

    features: Tensor
    labels: Tensor
    items: Tensor

    def __init__(self, size: int, features: int) -> None:
        super().__init__()
        self.register_buffer("features", torch.zeros(size, features))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("items", torch.full((size,), -1))  # -1: nothing yet

    def held(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return features (n, features), labels (n,) and items (n,) of the samples that it holds."""
        there = self.items >= 0
        return self.features[there], self.labels[there], self.items[there]

    @torch.no_grad()
    def keep(self, features: Tensor, labels: Tensor, items: Tensor) -> None:
        """Take over the samples of a step, and forget as many old ones."""
        for name, new in (("features", features), ("labels", labels), ("items", items)):
            old = getattr(self, name)
            setattr(self, name, torch.cat([old, new.to(old.dtype)])[-len(old) :] if len(old) else old)
