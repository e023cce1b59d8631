"""Similarities between embeddings: the two kernels of the paper, with values in [-1, 1].

A kernel is a module called with anchor embeddings of shape (..., A, L) and reference embeddings (..., R, L); it returns
similarities of shape (..., A, R). Leading dimensions (usually the C conditions) are paired off. To add a kernel, write such a
module here, give it `floor_family`, and name it in `build`.

For inference a kernel also has `log_parzen`, the logarithm of its Parzen form (1 + S) / 2, which is a density up to a constant
for the Gaussian kernel. A kernel that is an inner product gives `inner_product_embedding` instead of blocks of similarities:
its mean over a reference set then needs no S.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Metric = Literal["full", "diagonal", "scalar", "identity"]


class Cosine(nn.Module):
    r"""Cosine similarity, the kernel of CLaI-C (equation 10, line 272).

    .. math:: S_{ij} = \frac{z_i^\top z_j}{\|z_i\|\,\|z_j\|} \in [-1, 1]

    >>> a = torch.tensor([[1.0, 0.0]]); r = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    >>> Cosine()(a, r)
    tensor([[ 1.,  0., -1.]])
    """

    floor_family = "cosine"

    def inner_product_embedding(self, z: Tensor) -> Tensor:
        """Unit-length embeddings (..., N, L) whose inner products are the similarities."""
        return nn.functional.normalize(z, dim=-1)

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return self.inner_product_embedding(anchor) @ self.inner_product_embedding(reference).mT

    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """log((1 + S) / 2), shape (..., A, R); an angle of 180 degrees gives the smallest representable value's logarithm."""
        similarity = self(anchor, reference)
        return ((1 + similarity) / 2).clamp_min(torch.finfo(similarity.dtype).tiny).log()


class MahalanobisGaussian(nn.Module):
    r"""Gaussian kernel on a learned Mahalanobis distance, rescaled to (-1, 1]: the kernel of CLaI-M (equation 14, line 420).

    .. math:: S_{ij} = 2 \exp\left(-(z_i - z_j)^\top M (z_i - z_j)\right) - 1, \qquad M = L^\top L

    Args:
        size: number of embedding dimensions.
        metric: what of M is learned. `full`: a lower triangular L; `diagonal`: one positive weight a dimension; `scalar`: one
            weight; `identity`: nothing, M = I / size.

    M starts at I / size for every metric. At unit-variance embeddings the mean squared distance is 2 size, so M = I would put
    exp(-d) and its gradient below float32's range from about 64 dimensions up.

    >>> kernel = MahalanobisGaussian(size=2, metric="identity")
    >>> kernel(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, 1.0], [90.0, 0.0]])).round(decimals=4)
    tensor([[ 1.0000, -0.2642, -1.0000]])
    """

    floor_family = "gaussian"

    def __init__(self, size: int, metric: Metric) -> None:
        super().__init__()
        self.size, self.metric = size, metric
        self.root: Tensor
        scale = 1 / math.sqrt(size)
        if metric == "full":
            self.root = nn.Parameter(scale * torch.eye(size))
        elif metric == "diagonal":
            self.root = nn.Parameter(torch.full((size,), scale))
        elif metric == "scalar":
            self.root = nn.Parameter(torch.tensor(scale))
        elif metric == "identity":
            self.register_buffer("root", torch.tensor(scale))
        else:
            raise ValueError(f"metric is {metric!r}, expected one of full, diagonal, scalar, identity")

    @property
    def matrix(self) -> Tensor:
        """M, shape (size, size), positive semidefinite."""
        if self.metric == "full":
            return self.root.tril().mT @ self.root.tril()
        return torch.diag(self.root.square().expand(self.size))

    def whiten(self, z: Tensor) -> Tensor:
        """L z for each embedding, shape (..., N, size): squared distances after it are the Mahalanobis distances."""
        return z @ self.root.tril().mT if self.metric == "full" else z * self.root

    def distance(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """Squared Mahalanobis distances, shape (..., A, R), from one matrix product in the embeddings' own precision."""
        a, r = self.whiten(anchor), self.whiten(reference)
        # Distances do not see a common shift; taking it out keeps |a|^2 + |r|^2 - 2 a'r from cancelling.
        centre = r.detach().mean(-2, keepdim=True)
        a, r = a - centre, r - centre
        squared = a.square().sum(-1, keepdim=True) + r.square().sum(-1).unsqueeze(-2) - 2 * (a @ r.mT)
        return squared.clamp_min(0)

    def forward(self, anchor: Tensor, reference: Tensor) -> Tensor:
        return 2 * torch.exp(-self.distance(anchor, reference)) - 1

    def log_parzen(self, anchor: Tensor, reference: Tensor) -> Tensor:
        """log((1 + S) / 2) = -d, shape (..., A, R), exact however far apart the points are.

        The norms ride along as two further dimensions, <(2a, -|a|^2, 1), (r, 1, -|r|^2)> = -|a - r|^2, so that a block of a
        large S is written by one product.
        """
        a, r = self.whiten(anchor), self.whiten(reference)
        centre = r.detach().mean(-2, keepdim=True)
        a, r = a - centre, r - centre
        a = torch.cat([2 * a, -a.square().sum(-1, keepdim=True), torch.ones_like(a[..., :1])], -1)
        r = torch.cat([r, torch.ones_like(r[..., :1]), -r.square().sum(-1, keepdim=True)], -1)
        return (a @ r.mT).clamp_max_(0)


Kernel = Cosine | MahalanobisGaussian


def build(family: str, size: int, metric: Metric) -> Kernel:
    """The kernel called `cosine` or `gaussian` for embeddings of `size` dimensions; `metric` matters to the latter only."""
    if family == "cosine":
        return Cosine()
    if family == "gaussian":
        return MahalanobisGaussian(size, metric)
    raise ValueError(f"kernel is {family!r}, expected cosine or gaussian")
