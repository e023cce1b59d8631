"""Labels as signs; the identities and bounds that tie loss and alignment; the floors."""

import math

import pytest
import torch

from clailearn.alignment import Target, alignment_loss, alignment_scores, balanced, one_vs_rest, target_matrix
from clailearn.kernels import Kernel, build
from replication.models.clai import loss_floor


def alignment(s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Return the kernel alignment A(S, T) over the last two dimensions (equation 5)."""
    return (s * t).sum((-2, -1)) / (s.norm(dim=(-2, -1)) * t.norm(dim=(-2, -1))).clamp_min(1e-12)


def test_one_vs_rest() -> None:
    assert one_vs_rest(torch.tensor([0, 1, 2]), 3).tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert one_vs_rest(torch.tensor([0, 1, 1]), 1).tolist() == [[-1, 1, 1]], "binary: class 1 is the positive class"


def test_balanced_pairs_are_those_of_a_batch_with_the_rare_class_repeated() -> None:
    torch.manual_seed(0)
    anchor, reference = torch.tensor([[1.0, -1, -1, -1]]), torch.tensor([[1.0, 1, -1, -1, -1, -1]])
    similarity = torch.rand(1, 4, 6, dtype=torch.float64) * 2 - 1
    for kind in ("product", "zero"):
        weighted = target_matrix(anchor, reference, kind), balanced(anchor, reference)
        rows, columns = [0, 0, 0, 1, 2, 3], [0, 0, 1, 1, 2, 3, 4, 5]
        again = target_matrix(anchor[:, rows], reference[:, columns], kind)
        repeated = similarity[:, rows][:, :, columns]
        torch.testing.assert_close(alignment_loss(similarity, *weighted), alignment_loss(repeated, again))
        torch.testing.assert_close(alignment_scores(similarity, *weighted)[0], alignment(repeated, again))


def test_balanced_pairs_of_one_class_only_count_alike() -> None:
    anchor, reference = torch.tensor([[-1.0, -1]]), torch.tensor([[1.0, -1, -1]])
    similarity, weights = torch.rand(1, 2, 3), balanced(anchor, reference)
    torch.testing.assert_close(weights / weights.sum(), torch.tensor([[[2.0, 1, 1], [2, 1, 1]]]) / 8)
    assert torch.isfinite(alignment_loss(similarity, target_matrix(anchor, reference, "product"), weights)).all()


def test_centring_takes_away_the_alignment_that_a_constant_similarity_has() -> None:
    y = one_vs_rest((torch.arange(50) < 5).long(), 1)
    for dtype in (torch.float32, torch.float64):
        target = target_matrix(y.to(dtype), y.to(dtype), "product")
        raw, centred = alignment_scores(torch.full_like(target, 0.9), target)
        assert raw.item() > 0.6
        assert centred.item() == 0
        _, centred = alignment_scores(0.3 * target + 0.4, target)
        assert centred.item() == pytest.approx(1, rel=1e-5)
        ones = torch.ones(1, 50, dtype=dtype)
        assert alignment_scores(target, target_matrix(ones, ones, "product"))[1].item() == 0, "one class only"


@pytest.mark.parametrize("kind", ["product", "zero"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_alignments_of_the_matrices_as_they_are_and_centred(kind: Target, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    anchor, reference = (one_vs_rest(torch.randint(0, 3, (n,), generator=generator), 3) for n in (20, 30))
    target = target_matrix(anchor, reference, kind)
    weights = balanced(anchor, reference) if weighted else None
    similarity = (0.5 * target + 0.6 * torch.rand(3, 20, 30, generator=generator)).clamp(-1, 1)
    root = 1 if weights is None else weights.sqrt()
    s, t = similarity * root, target * root

    def centre(matrix: torch.Tensor) -> torch.Tensor:
        rows, columns = matrix.mean(-1, keepdim=True), matrix.mean(-2, keepdim=True)
        return matrix - rows - columns + matrix.mean((-2, -1), keepdim=True)

    raw, centred = alignment_scores(similarity, target, weights)
    torch.testing.assert_close(raw, alignment(s, t))
    torch.testing.assert_close(centred, alignment(centre(s), centre(t)))


def test_floors_of_the_design_figures() -> None:
    """At a class share of 0.1 the cosine kernel cannot get below 0.0855 however large L; the Gaussian kernel can."""
    cosine, gaussian = (build(name, 32, "identity") for name in ("cosine", "gaussian"))
    assert loss_floor(cosine, "zero", 0.1, 10**9) == pytest.approx(0.0855, abs=5e-5)
    assert loss_floor(cosine, "zero", 0.1, 32) == pytest.approx(0.10, abs=0.005)
    assert loss_floor(gaussian, "zero", 0.1, 32) == pytest.approx(0.01, abs=0.005)
    assert loss_floor(cosine, "product", 0.1, 32) == loss_floor(gaussian, "product", 0.1, 32) == 0


def attained(kernel: Kernel, size: int, positives: int, seed: int) -> float:
    """Return the loss of 200 free embeddings, without an encoder, after Adam on the loss over all their pairs.

    Positives start together and away from the negatives, as in the arrangement that the floor rests on. From a common cloud the
    Gaussian kernel tends to end in a local minimum with the positives in the middle.
    """
    y = one_vs_rest((torch.arange(200) < positives).long(), 1).double()
    target = target_matrix(y, y, "zero")
    # At this spread the Gaussian similarity of two negatives is about 0, as is the cosine.
    z = torch.randn(1, 200, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    z *= math.sqrt(math.log(2) / 2)
    z[:, :positives] *= 0.1
    z[:, :positives, 0] += 1.5 * math.sqrt(size)
    z.requires_grad_()
    optimiser = torch.optim.Adam([z], lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=250)
    for _ in range(250):
        optimiser.zero_grad()
        alignment_loss(kernel(z, z), target).sum().backward()
        optimiser.step()
        schedule.step()
    return alignment_loss(kernel(z, z), target).item()


@pytest.mark.parametrize("family", ["cosine", "gaussian"])
@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("positives", [20, 80])
def test_descent_on_free_embeddings_ends_just_above_the_floor(family: str, size: int, positives: int) -> None:
    kernel = build(family, size, "identity").double()
    floor = loss_floor(kernel, "zero", positives / 200, size)
    assert floor * (1 - 1e-9) <= attained(kernel, size, positives, seed=0) <= floor * 1.05 + 1e-3
