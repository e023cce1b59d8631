"""Similarities between embeddings: the base class `Kernel` and the two kernels of the paper.

A new kernel is one subclass of `Kernel` with a `name` and `log_parzen`; `KERNELS` and `build` then know it.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Metric = Literal["full", "identity"]

KERNELS: dict[str, type["Kernel"]] = {}
"""Kernels by name. A subclass of `Kernel` that has a `name` enters by itself."""


class Kernel(nn.Module, ABC):
    """Base class of similarities S with values in [-1, 1].

    A kernel is called with anchor embeddings (..., A, L) and reference embeddings (..., R, L) and returns similarities
    (..., A, R). Leading dimensions, usually the K conditions, are paired off.

    A subclass must define `log_parzen`; the others follow from it. It may define `forward` and `log_sums` for speed,
    `inner_product`, and `coordinates`. All but the last are not inherited by a class with a `log_parzen` of its own.
    """

    name: ClassVar[str]
    """Name in settings, for instance `cosine`."""
    undecayed: ClassVar[tuple[str, ...]] = ()
    """Parameters that weight decay leaves alone. Shrinking a metric widens the kernel and regularises nothing."""
    inner_product: ClassVar[bool] = False
    """Whether S is the inner product of `coordinates`. Inference then needs sums of coordinates instead of S."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "log_parzen" in vars(cls):  # What an ancestor has for speed holds for the ancestor's similarity.
            for name in {"forward", "inner_product", "log_sums"} - vars(cls).keys():
                setattr(cls, name, vars(Kernel)[name])
        if "name" in vars(cls):
            KERNELS[cls.name] = cls

    @classmethod
    def create(cls, size: int, metric: Metric) -> Self:
        """Return a kernel for embeddings of `size` dimensions; override where it depends on `size` or `metric`."""
        return cls()

    @abstractmethod
    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """Return the logarithm of the Parzen form (1 + S) / 2, shape (..., A, R), of (..., A, L) and (..., R, L).

        The Parzen form is a density up to a constant for the Gaussian kernel. Where S is -1, give the logarithm of the smallest
        positive number of the type.
        """

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """Return similarities in [-1, 1], shape (..., A, R), of anchors (..., A, L) and references (..., R, L)."""
        return 2 * self.log_parzen(anchor, reference).exp() - 1

    def log_sums(self, anchor: Tensor, reference: Tensor, sides: Tensor, left_out: Tensor | None) -> Tensor:
        """Return logarithms (K, A, 2) of the sums of Parzen forms over two sides of the references, up to a term of the anchor.

        sides: indicators of positives and negatives among the references, (K, R, 2); embeddings (A, L) serve all K conditions.
        left_out: pairs that do not count, (A, R); None counts all.
        """
        parzen = self.log_parzen(anchor, reference)
        if left_out is not None:
            parzen = parzen.masked_fill(left_out, -math.inf)
        largest = parzen.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(parzen.dtype).min)
        return _above_zero((parzen - largest).exp() @ sides).log() + largest

    def coordinates(self, z: Tensor) -> Tensor:
        """Map embeddings (..., N, L) to coordinates (..., N, D) whose Euclidean distances order pairs as the kernel does.

        Override unless the embeddings do so themselves.
        """
        return z


class Cosine(Kernel):
    r"""Cosine similarity, the kernel of CLaI-C (equation 8).

    .. math:: S_{ij} = \frac{z_i^\top z_j}{\|z_i\|\,\|z_j\|} \in [-1, 1]

    >>> a = torch.tensor([[1.0, 0.0]]); r = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    >>> Cosine()(a, r)
    tensor([[ 1.,  0., -1.]])
    """

    name = "cosine"
    inner_product = True

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return self.coordinates(anchor) @ self.coordinates(reference).mT

    def coordinates(self, z: Tensor) -> Tensor:
        """Scale embeddings (..., N, L) to unit length."""
        return nn.functional.normalize(z, dim=-1)

    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        similarity = Cosine.forward(self, anchor, reference)
        return ((1 + similarity) / 2).clamp_min(torch.finfo(similarity.dtype).tiny).log()


class MahalanobisGaussian(Kernel):
    r"""Gaussian kernel on a learned Mahalanobis distance, rescaled to (-1, 1]: the kernel of CLaI-M (equation 15).

    .. math:: S_{ij} = 2 \exp\left(-(z_i - z_j)^\top M (z_i - z_j)\right) - 1, \qquad M = L^\top L

    Args:
        size: number of embedding dimensions.
        metric: the learned part of M. `full`: a lower triangular L; `identity`: nothing, M = I / size.

    M starts at I / size for either metric. At unit-variance embeddings the mean squared distance is 2 size, so M = I would put
    exp(-d) and its gradient below float32's range from about 45 dimensions up.

    >>> kernel = MahalanobisGaussian(size=2, metric="identity")
    >>> kernel(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, 1.0], [90.0, 0.0]])).round(decimals=4)
    tensor([[ 1.0000, -0.2642, -1.0000]])
    """

    name = "gaussian"
    undecayed = ("root",)

    def __init__(self, size: int, metric: Metric) -> None:
        super().__init__()
        self.size, self.metric = size, metric
        self.root: Tensor
        scale = torch.tensor(1 / math.sqrt(size), dtype=torch.float32)
        if metric == "full":
            self.root = nn.Parameter(torch.diag(scale.repeat(size)))
        elif metric == "identity":
            self.register_buffer("root", scale)
        else:
            raise ValueError(f"metric is {metric!r}, expected full or identity")

    @classmethod
    def create(cls, size: int, metric: Metric) -> Self:
        return cls(size, metric)

    @property
    def matrix(self) -> Tensor:
        """M, shape (size, size), positive semidefinite."""
        if self.metric == "full":
            return self.root.tril().mT @ self.root.tril()
        return torch.diag(self.root.square().expand(self.size))

    def coordinates(self, z: Tensor) -> Tensor:
        """Whiten embeddings (..., N, size) to L z, whose squared distances are the Mahalanobis distances."""
        return z @ self.root.tril().mT if self.metric == "full" else z * self.root

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return _GaussianSimilarity.apply(*self._centred(anchor, reference))

    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """Return log((1 + S) / 2) = -d, shape (..., A, R), which is exact at any distance.

        Two further dimensions carry the norms, `<(2a, -|a|^2, 1), (r, 1, -|r|^2)> = -|a - r|^2`, so that one product writes a
        block of a large S.
        """
        a, r = self._centred(anchor, reference)
        a = torch.cat([2 * a, -a.square().sum(-1, keepdim=True), torch.ones_like(a[..., :1])], -1)
        r = torch.cat([r, torch.ones_like(r[..., :1]), -r.square().sum(-1, keepdim=True)], -1)
        return (a @ r.mT).clamp_max_(0)

    def log_sums(self, anchor: Tensor, reference: Tensor, sides: Tensor, left_out: Tensor | None) -> Tensor:
        return _GaussianLogSums.apply(*self._centred(anchor, reference), sides, left_out)

    def _centred(self, anchor: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        a, r = self.coordinates(anchor), self.coordinates(reference)
        # A common shift changes no distance. Without it, |a|^2 + |r|^2 - 2 a'r cancels.
        centre = r.detach().mean(-2, keepdim=True)
        return a - centre, r - centre


class _GaussianSimilarity(torch.autograd.Function):
    """S = 2 exp(-|a - r|^2) - 1 of coordinates a (..., A, D) and r (..., R, D), in their precision.

    Forward and backward pass hold two matrices of the size of S. Automatic differentiation would keep or write one for each
    operation, which takes several times as long where S is larger than the cache.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, r: Tensor) -> Tensor:
        squares = -a.square().sum(-1, keepdim=True) - r.square().sum(-1).unsqueeze(-2)
        # Rounding may leave a negative squared distance.
        parzen = squares.add_(a @ r.mT, alpha=2).clamp_max_(0).exp_()
        ctx.save_for_backward(a, r, parzen)
        return (2 * parzen).sub_(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, r, parzen = ctx.saved_tensors
        weights = gradient * parzen
        to_anchor = 4 * (weights @ r - weights.sum(-1, keepdim=True) * a)
        to_reference = 4 * ((a.mT @ weights).mT - weights.sum(-2).unsqueeze(-1) * r)
        return to_anchor.sum_to_size(a.shape), to_reference.sum_to_size(r.shape)


class _GaussianLogSums(torch.autograd.Function):
    """`Kernel.log_sums` of coordinates a (..., A, D) and r (..., R, D), without the term -|a|^2.

    It holds one matrix of the size of S until the backward pass, and more there: one, or one a condition.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, r: Tensor, sides: Tensor, left_out: Tensor | None) -> Tensor:
        parzen = (2 * a) @ r.mT
        parzen -= r.square().sum(-1).unsqueeze(-2)
        if left_out is not None:
            parzen.masked_fill_(left_out, -math.inf)
        largest = parzen.amax(-1, keepdim=True).clamp_min_(torch.finfo(parzen.dtype).min)
        sums = _above_zero(parzen.sub_(largest).exp_() @ sides)
        ctx.save_for_backward(a, r, sides, parzen, sums)
        return sums.log() + largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        a, r, sides, parzen, sums = ctx.saved_tensors
        weights = ((gradient / sums) @ sides.mT).sum_to_size(parzen.shape).mul_(parzen)
        to_reference = 2 * ((a.mT @ weights).mT - weights.sum(-2).unsqueeze(-1) * r)
        return 2 * (weights @ r), to_reference, None, None


def _above_zero(sums: Tensor) -> Tensor:
    """Return sums of which those below the range of the numbers are at its end, so that logarithms and gradients are finite."""
    return sums.clamp_min(torch.finfo(sums.dtype).tiny / torch.finfo(sums.dtype).eps)


def build(name: str, size: int, metric: Metric) -> Kernel:
    """Return the kernel of this name in `KERNELS`, for embeddings of `size` dimensions L.

    metric: learned part of the Mahalanobis matrix; kernels without one ignore it.

    Raises ValueError where no kernel has this name, or the kernel does not know the metric.
    """
    if name not in KERNELS:
        raise ValueError(f"kernel is {name!r}, expected {' or '.join(KERNELS)}")
    return KERNELS[name].create(size, metric)
