"""`clailearn.AlignmentLoss` and `clailearn.vote`: the parts of the method for a training loop of one's own."""

from typing import Any

import pytest
import torch
from torch import Tensor

from clailearn import AlignmentLoss, ParzenLoss, vote
from clailearn.alignment import Target
from clailearn.kernels import Kernel, build
from replication.experiments import algorithms_as_printed as printed
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
    z, z_references = draw(CLASSES, ANCHORS, SIZE), draw(CLASSES, REFERENCES, SIZE, seed=1)
    y, y_references = labels(ANCHORS), labels(REFERENCES)
    given = [z.requires_grad_(), z_references.requires_grad_(), *own.parameters()]
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


@pytest.mark.parametrize(
    ("shape", "y", "message"),
    [
        ((3, 2), [[0], [1], [2]], r"labels of shape \(3, 1\)"), ((3, 2), [0], r"labels of shape \(1,\)"),
        ((3, 3, 2), [1, 2, 3], "labels from 1 to 3, expected class indices from 0 to 2"),
        ((1, 3, 2), [-1, 1, 1], "labels from -1 to 1, expected class indices from 0 to 1"),
        ((3, 2), [0, 0.5, 1], "labels that are no whole numbers"), ((1, 2), [0], "a batch of one sample"),
        ((3, 2), [-1, 0, 0], "labels from -1 to 0, expected class indices from 0"), ((0, 2), [], "found no label"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit_the_embeddings_are_refused(shape: tuple[int, ...], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AlignmentLoss(kernel("cosine"))(draw(*shape), torch.tensor(y))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "cosine"}, "kernel is 'cosine', expected a Kernel"),
        ({"kernel": torch.nn.ReLU()}, r"kernel is ReLU\(\), expected a Kernel"),
        ({"pair_weighting": "balance"}, "pair_weighting is 'balance'"),
        ({"pair_weighting": "balanced"}, "needs embeddings under conditions"),
        ({"target": "hinge"}, "expected product, zero, simplex"),
        ({"target": "simplex", "classes": 1}, "needs classes"), ({"target": "simplex", "classes": 2}, "from 0 to 1"),
    ],
)  # fmt: skip
def test_a_loss_that_would_not_be_the_one_meant_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AlignmentLoss(**({"kernel": kernel("cosine")} | settings))(draw(3, SIZE), torch.arange(3))
    with pytest.raises(ValueError, match="expected both or none"):
        AlignmentLoss(kernel("cosine"))(draw(3, SIZE), torch.arange(3), draw(3, SIZE))


def test_arguments_in_the_wrong_order_and_arrays_are_refused_by_name() -> None:
    z, y, own = draw(ANCHORS, SIZE), labels(ANCHORS), kernel("gaussian")
    with pytest.raises(ValueError, match="kernel is tensor"):
        vote(z, z, y, own)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="embeddings of type ndarray, expected a tensor"):
        vote(own, z.numpy(), z, y)  # type: ignore[arg-type]
    for given in (y, z), (z.numpy(), y):
        with pytest.raises(ValueError, match=r"embeddings of (shape \(9,\)|type ndarray), expected a tensor"):
            AlignmentLoss(own)(*given)
    with pytest.raises(ValueError, match="embeddings of 3 dimensions, expected 4"):
        AlignmentLoss(kernel("cosine"))(z, y, draw(ANCHORS, 3), y)


@pytest.mark.parametrize(
    ("z", "references", "y", "message"),
    [
        ((3, 4), (4, 4), [0, 1, 2], r"labels of shape \(3,\)"), ((3, 4), (4, 4), [0, 0, 0, 0], "class 1 has no reference"),
        ((3, 2), (4, 4), [0, 1, 0, 1], "embeddings of 2 dimensions, expected 4"),
        ((3, 3, 4), (4, 4), [0, 1, 2, 0], r"embeddings of shape \(3, 3, 4\)"), ((3, 4), (2, 4), [-1, 1], "from -1 to 1"),
    ],
)  # fmt: skip
def test_references_that_do_not_fit_have_no_vote(z: Any, references: Any, y: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vote(kernel("gaussian"), draw(*z), draw(*references), torch.tensor(y))


@pytest.mark.parametrize("name", ["cosine", "gaussian"])
def test_vote_of_one_embedding_is_that_of_the_same_embedding_under_every_condition(name: str) -> None:
    z, z_references, y = draw(ANCHORS, SIZE), draw(REFERENCES, SIZE, seed=1), labels(REFERENCES)
    several = vote(kernel(name), z.expand(CLASSES, -1, -1), z_references.expand(CLASSES, -1, -1), y)
    for same in (y, y.to(torch.uint8), y.double(), y.numpy(), y.tolist()):
        torch.testing.assert_close(vote(kernel(name), z, z_references, same), several, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["cosine", "gaussian"])
def test_losses_and_votes_are_of_full_precision_within_autocast(name: str) -> None:
    own, y, y_references = kernel(name).float(), labels(ANCHORS), labels(REFERENCES)
    z, z_references = draw(CLASSES, ANCHORS, SIZE).bfloat16(), draw(CLASSES, REFERENCES, SIZE, seed=1).bfloat16()

    def computed(z: Tensor, z_references: Tensor, *, autocast: bool) -> list[Tensor]:
        z = z.requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            losses = [loss(z, y, z_references, y_references) for loss in (AlignmentLoss(own), ParzenLoss(own))]
            f = vote(own, z, z_references, y_references)
        return [f, *losses, *(torch.autograd.grad(loss, z)[0] for loss in losses)]

    expected = computed(z.float(), z_references.float(), autocast=False)
    for value, reference in zip(computed(z, z_references, autocast=True), expected, strict=True):
        torch.testing.assert_close(value, reference.to(value.dtype), rtol=0, atol=0)


def test_references_that_are_left_out_are_counted_exactly_within_autocast() -> None:
    """Bfloat16 has no 257; the first sample would seem to have a reference of its own class."""
    z, references, y = draw(4, SIZE).float(), draw(300, SIZE, seed=1).float(), torch.arange(300) >= 257
    left_out = torch.zeros(4, 300, dtype=torch.bool)
    left_out[0, :257] = True
    given = z, [0, 0, 1, 1], references, y.long(), left_out
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ParzenLoss(kernel("gaussian").float())(*given)
    torch.testing.assert_close(found, ParzenLoss(kernel("gaussian").float())(*given), rtol=0, atol=0)
