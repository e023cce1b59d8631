"""Ranges, symmetry and metrics of the two kernels, and that neither vanishes where training starts."""

import itertools

import pytest
import torch

from clailearn.alignment import alignment_loss, one_vs_rest, target_matrix
from clailearn.kernels import Cosine, Kernel, MahalanobisGaussian, build

METRICS = ["full", "identity"]


def embeddings(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def gaussian(metric: str, size: int) -> MahalanobisGaussian:
    """A kernel away from its initialisation."""
    kernel = MahalanobisGaussian(size, metric).double()  # type: ignore[arg-type]
    with torch.no_grad():
        kernel.root += 0.3 * embeddings(*kernel.root.shape, seed=9)
    return kernel


def test_gaussian_written_out_for_a_full_metric() -> None:
    kernel = MahalanobisGaussian(2, "full")
    with torch.no_grad():
        kernel.root.copy_(torch.tensor([[1.0, 99.0], [2.0, 0.5]]))
    # The upper triangle is not part of L: L = [[1, 0], [2, .5]], M = L'L = [[5, 1], [1, .25]].
    torch.testing.assert_close(kernel.matrix, torch.tensor([[5.0, 1.0], [1.0, 0.25]]))
    difference = torch.tensor([0.2, -0.4])
    d = 5 * 0.2**2 + 2 * 0.2 * -0.4 + 0.25 * 0.4**2
    similarity = kernel(difference[None], torch.zeros(1, 2))
    assert similarity.item() == pytest.approx(2 * torch.exp(torch.tensor(-d)).item() - 1)


@pytest.mark.parametrize("kernel", [Cosine(), *(gaussian(m, 6) for m in METRICS)], ids=["cosine", *METRICS])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_similarities_are_symmetric_and_lie_between_minus_one_and_one(kernel: Kernel, scale: float) -> None:
    z = scale * embeddings(20, 6)
    s = kernel(z, z)
    assert s.min() >= -1 - 1e-12
    assert s.max() <= 1 + 1e-12
    torch.testing.assert_close(s, s.T)
    torch.testing.assert_close(s.diagonal(), torch.ones(20, dtype=torch.float64), atol=1e-6, rtol=0)


def test_the_full_metric_starts_as_the_identity_which_learns_nothing() -> None:
    z = embeddings(6, 4)
    full, identity = (MahalanobisGaussian(4, m).double() for m in METRICS)  # type: ignore[arg-type]
    for kernel in (full, identity):
        torch.testing.assert_close(kernel.matrix.detach(), torch.eye(4, dtype=torch.float64) / 4)
    torch.testing.assert_close(full(z, z), identity(z, z))
    assert [sum(p.numel() for p in k.parameters()) for k in (full, identity)] == [16, 0]


def test_a_free_linear_layer_absorbs_the_full_metric() -> None:
    """Whitened embeddings under M = I have the same similarities: M adds nothing that the head could not learn."""
    kernel, identity = gaussian("full", 4), MahalanobisGaussian(4, "identity").double()
    a, r = embeddings(5, 4), embeddings(6, 4, seed=1)
    torch.testing.assert_close(identity(2 * kernel.coordinates(a), 2 * kernel.coordinates(r)), kernel(a, r))


@pytest.mark.parametrize(("family", "size"), itertools.product(["cosine", "gaussian"], [64, 512, 2048]))
def test_gradient_does_not_vanish_at_large_embeddings(family: str, size: int) -> None:
    """Unit-variance embeddings in float32: with M = I the distances of about 2 L would underflow from L = 64 on."""
    z = embeddings(1, 32, size, dtype=torch.float32).requires_grad_()
    y = one_vs_rest(torch.arange(32) // 16, 1)
    alignment_loss(build(family, size, "full")(z, z), target_matrix(y, y, "product")).sum().backward()
    per_sample = z.grad.norm(dim=-1)
    assert per_sample.min() > 1e-5


def test_distances_of_near_points_far_from_the_origin_keep_their_digits() -> None:
    z = embeddings(1, 10, 4, dtype=torch.float32)
    kernel = MahalanobisGaussian(4, "identity")
    torch.testing.assert_close(kernel(z + 1000, z + 1000), kernel(z, z), atol=2e-3, rtol=0)


@pytest.mark.parametrize("parent", [Cosine, MahalanobisGaussian])
def test_similarities_follow_from_the_parzen_form_of_a_subclass(parent: type[Kernel]) -> None:
    class Wide(parent):  # type: ignore[valid-type, misc]
        def log_parzen(self, anchor: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
            return super().log_parzen(anchor, reference) / 4

    kernel, a, r = Wide.create(6, "full"), embeddings(4, 6).float(), embeddings(5, 6, seed=1).float()
    torch.testing.assert_close(kernel(a, r), 2 * ((1 + parent.create(6, "full")(a, r)) / 2) ** 0.25 - 1)
    assert not kernel.inner_product


@pytest.mark.parametrize("kernel", [Cosine(), gaussian("full", 6)], ids=["cosine", "gaussian"])
def test_euclidean_distances_of_the_coordinates_order_pairs_as_the_kernel_does(kernel: Kernel) -> None:
    z = embeddings(12, 6)
    first, second = torch.triu_indices(12, 12, 1)
    with torch.no_grad():
        distances = torch.cdist(kernel.coordinates(z), kernel.coordinates(z))[first, second]
        # The logarithm of the Parzen form keeps the order of pairs where S rounds to -1.
        similarities = kernel.log_parzen(z, z)[first, second]
    assert torch.equal(distances.argsort(), similarities.argsort(descending=True))
