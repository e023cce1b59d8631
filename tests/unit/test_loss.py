"""`clai.AlignmentLoss` and `clai.vote`: the parts of the method for a training loop of one's own."""

import pytest
import torch
from torch import Tensor

from clai import AlignmentLoss, vote
from clai import algorithms_as_printed as printed
from clai.alignment import Target
from clai.kernels import Kernel, build
from support.training import printed_similarity

ANCHORS, REFERENCES, SIZE, CLASSES = 9, 12, 4, 3


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels(number: int) -> Tensor:
    return torch.arange(number) % CLASSES


def kernel(name: str) -> Kernel:
    return build(name, SIZE, "full").double()


@pytest.mark.parametrize("name", ["cosine", "gaussian"])
@pytest.mark.parametrize("target", ["zero", "product"])
def test_under_conditions_it_has_the_gradients_of_the_printed_loss(name: str, target: Target) -> None:
    own = kernel(name)
    z, z_references = draw(CLASSES, ANCHORS, SIZE).requires_grad_(), draw(CLASSES, REFERENCES, SIZE, seed=1)
    y, y_references = labels(ANCHORS), labels(REFERENCES)
    given = [z, *own.parameters()]
    loss = AlignmentLoss(own, target)(z, y, z_references, y_references)
    gradients = torch.autograd.grad(loss, given)

    as_printed = printed.target_zero if target == "zero" else printed.target_product
    total = torch.zeros((), dtype=torch.float64)
    for k in range(CLASSES):
        signs = (printed.relabel(part, k, z.dtype) for part in (y, y_references))
        difference = printed_similarity(own)(z[k], z_references[k]) - as_printed(*signs)
        total = total + difference.square().sum() / (ANCHORS * REFERENCES) / CLASSES
    torch.testing.assert_close(loss, total, rtol=0, atol=1e-9)
    for a, b in zip(gradients, torch.autograd.grad(total, given), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("target", "other"), [("zero", 0.0), ("product", -1.0), ("simplex", -0.5)])
def test_without_conditions_equal_labels_have_1_and_others_what_the_target_says(target: Target, other: float) -> None:
    z, y = draw(ANCHORS, SIZE), labels(ANCHORS)
    expected = torch.full((ANCHORS, ANCHORS), other, dtype=torch.float64)
    expected[y[:, None] == y[None, :]] = 1
    similarity = printed.cosine(z, z)
    loss = AlignmentLoss(kernel("cosine"), target, classes=CLASSES)(z, y)
    torch.testing.assert_close(loss, (similarity - expected).square().mean())


def test_classes_that_lie_as_a_simplex_have_no_loss() -> None:
    angles = 2 * torch.pi * torch.arange(CLASSES) / CLASSES
    corners = torch.stack([angles.cos(), angles.sin()], 1).double()
    y = labels(ANCHORS)
    assert float(AlignmentLoss(kernel("cosine"), "simplex", classes=CLASSES)(corners[y], y)) < 1e-12


@pytest.mark.parametrize("target", ["masked", "other"])
def test_target_that_needs_conditions_is_refused_without_them(target: Target) -> None:
    with pytest.raises(ValueError, match="expected product, zero, simplex"):
        AlignmentLoss(kernel("cosine"), target)(draw(ANCHORS, SIZE), labels(ANCHORS))


@pytest.mark.parametrize("name", ["cosine", "gaussian"])
def test_vote_of_one_embedding_is_that_of_the_same_embedding_under_every_condition(name: str) -> None:
    z, z_references, y = draw(ANCHORS, SIZE), draw(REFERENCES, SIZE, seed=1), labels(REFERENCES)
    several = vote(kernel(name), z.expand(CLASSES, -1, -1), z_references.expand(CLASSES, -1, -1), y)
    torch.testing.assert_close(vote(kernel(name), z, z_references, y), several, rtol=0, atol=1e-12)
