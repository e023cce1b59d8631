"""The fast schedules have the gradients of the algorithms as printed, to rounding."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

from clailearn.alignment import Target
from clailearn.encoders import MLP, ConditionedHead, Encoder
from clailearn.kernels import Kernel, build
from clailearn.learning import class_draw, collaborative_learning
from clailearn.trainer import Samples, TrainingSettings
from replication.experiments import algorithms_as_printed as printed
from replication.models.base import draw_shift
from support.training import SETTINGS, printed_similarity

BATCH, EPOCHS, ETA, SEED, SIZE = 5, 2, 0.1, 3, 4

PRINTED = replace(
    SETTINGS, epochs=EPOCHS, batch_size=BATCH, optimiser="sgd", learning_rate=ETA, learning_rate_schedule="constant",
    warmup=0.0, precision="float64", schedule="sequential", references="all", reference_reduction="sum", target="product",
    seed=SEED,
)  # fmt: skip


def model(trunk: str, conditions: int, family: str) -> tuple[Encoder, Kernel]:
    """With BatchNorm in the trunk an embedding depends on its batch, so that what is batched with what would show."""
    torch.manual_seed(0)
    module = MLP(3, 7, 1) if trunk == "mlp" else nn.Sequential(nn.Linear(3, 7), nn.BatchNorm1d(7), nn.Tanh())
    encoder = Encoder(module, ConditionedHead(7, conditions, SIZE)).double()
    return encoder, build(family, SIZE, "full").double()


def shuffler() -> Callable[[int], Tensor]:
    generator = torch.Generator().manual_seed(SEED)
    return lambda n: torch.randperm(n, generator=generator)


def data(classes: int) -> tuple[Tensor, Tensor]:
    """28 samples: five batches of five, and three samples that are left over."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, classes, (28,), generator=generator)
    x = torch.randn(28, 3, generator=generator, dtype=torch.float64)
    x[:, 0] += labels
    return x, labels


TARGETS = {"zero": printed.target_zero, "product": printed.target_product}


def learn_joint(encoder: Encoder, kernel: Kernel, x: Tensor, labels: Tensor, settings: TrainingSettings) -> None:
    """Run Algorithm 3 without its loop over classes (section VII): a step has the mean loss of all classes.

    A step has a group of batches, of which the first is the anchor. Groups of n references, which share no batch, are embedded in
    one pass, so that BatchNorm treats anchor and references alike.
    """
    optimiser = torch.optim.SGD([*encoder.parameters(), *kernel.parameters()], ETA)
    shuffle, n = shuffler(), settings.references
    for _ in range(settings.epochs):
        order = shuffle(len(x))
        batches = printed.partition(x[order], labels[order], BATCH)
        if n == "all":
            groups = [batches[first:] for first in range(len(batches) - 1)]
        else:
            groups = [batches[first : first + 1 + n] for first in range(0, len(batches) - n, n + 1)]
        for group in groups:
            optimiser.zero_grad()
            inputs = [x_batch for x_batch, _ in group]
            z_t, *z_later = map(encoder, inputs) if n == "all" else encoder(torch.cat(inputs)).split(BATCH, dim=1)
            (_, y_t), *later = group
            for z_r, (_, y_r) in zip(z_later, later, strict=True):
                for k in range(len(z_t)):
                    signs = [printed.relabel(y, k, x.dtype) for y in (y_t, y_r)]
                    target = TARGETS[settings.target](*signs)
                    loss = (printed_similarity(kernel)(z_t[k], z_r[k]) - target).square().mean()
                    weight = 1 if settings.reference_reduction == "sum" else 1 / len(later)
                    (weight * loss / len(z_t)).backward(retain_graph=True)
            optimiser.step()


def assert_as_printed(trunk: str, family: str, classes: int, settings: TrainingSettings) -> None:
    """Compare encoder and kernel trained by a schedule with those trained by the algorithm as printed."""
    conditions = 1 if classes == 2 else classes
    fast, start = model(trunk, conditions, family), model(trunk, conditions, family)
    encoder, kernel = copy.deepcopy(start[0]), copy.deepcopy(start[1])
    x, labels = data(classes)
    collaborative_learning(*fast, Samples(x, labels), conditions, settings, dict, None)
    theta, similarity = [*encoder.parameters(), *kernel.parameters()], partial(printed_similarity, kernel)
    target, given = TARGETS[settings.target], (BATCH, EPOCHS, ETA, shuffler())
    if classes == 2:
        y = (2 * labels - 1).double()
        printed.learn_binary(lambda b: encoder(b)[0], theta, similarity, printed.target_product, x, y, *given)
    elif settings.schedule == "sequential":
        printed.learn_multiclass(lambda b, k: encoder(b, k)[0], theta, similarity, target, x, labels, classes, *given)
    else:
        learn_joint(encoder, kernel, x, labels, settings)
    moved = 0.0
    for a, b, c in zip(fast, (encoder, kernel), start, strict=True):
        for name, value in a.state_dict().items():
            torch.testing.assert_close(value, b.state_dict()[name], rtol=0, atol=1e-9)
            moved = max(moved, float((value - c.state_dict()[name]).abs().max()))
    assert moved > 0.01, "nothing was learned, so nothing was compared"


@pytest.mark.parametrize("trunk", ["mlp", "batchnorm"])
@pytest.mark.parametrize("family", ["cosine", "gaussian"])
@pytest.mark.parametrize(
    ("classes", "schedule", "target"),
    [(2, "sequential", "product"), (3, "sequential", "product"), (3, "sequential", "zero"), (3, "joint", "zero")],
)
def test_a_schedule_is_its_algorithm(trunk: str, family: str, classes: int, schedule: Any, target: Target) -> None:
    """Algorithm 1 of two classes; Algorithm 3, also with the classes of a step taken together."""
    assert_as_printed(trunk, family, classes, replace(PRINTED, schedule=schedule, target=target))


@pytest.mark.parametrize("trunk", ["mlp", "batchnorm"])
@pytest.mark.parametrize("references", [1, 2])
def test_n_references_are_groups_of_an_anchor_and_n_batches(references: int, trunk: str) -> None:
    settings = replace(PRINTED, schedule="joint", references=references, epochs=1, reference_reduction="mean")
    assert_as_printed(trunk, "gaussian", 3, settings)


def test_samples_in_the_loss_are_at_most_so_many_of_each_class() -> None:
    labels = torch.tensor([0] * 50 + [1] * 3 + [2] * 20)
    drawn = labels[class_draw(labels, 10, torch.Generator().manual_seed(0))]
    assert torch.bincount(drawn).tolist() == [10, 3, 10]
    assert len(labels[class_draw(labels, None, torch.Generator())]) == 73


@pytest.mark.parametrize("references", [1, "all"])
def test_drawing_as_many_samples_as_a_batch_has_changes_nothing(references: int | Literal["all"]) -> None:
    x, labels = data(2)
    ends = []
    for most in (None, BATCH):
        encoder, kernel = model("mlp", 1, "gaussian")
        settings = replace(PRINTED, references=references, samples_per_class=most, pair_weighting="balanced", epochs=1)
        collaborative_learning(encoder, kernel, Samples(x, labels), 1, settings, dict, None)
        ends.append(encoder.state_dict())
    for name, value in ends[0].items():
        torch.testing.assert_close(value, ends[1][name], rtol=0, atol=1e-12)


def test_shift_of_draws_is_the_log_share_of_all_samples_over_that_of_the_draws() -> None:
    labels = torch.tensor(([0] * 9 + [1]) * 11)
    data = Samples(torch.zeros(110, 1), labels)
    settings = replace(PRINTED, batch_size=10, references=1, samples_per_class=4)
    order = torch.randperm(110, generator=torch.Generator().manual_seed(settings.seed))
    *batches, left_over = labels[order].split(20)
    assert len(left_over) == 10
    drawn = sum(torch.bincount(part, minlength=2).clamp_max(4) for part in batches)
    expected = (torch.tensor([0.9, 0.1], dtype=torch.float64) / (drawn / drawn.sum())).log()
    torch.testing.assert_close(draw_shift(data, settings), expected)
    data.labels = (torch.arange(110) == order[-1]).long()
    assert draw_shift(data, settings).isfinite().all(), "a class in no batch"
    whole = draw_shift(data, replace(settings, samples_per_class=None))
    torch.testing.assert_close(whole, torch.zeros(2, dtype=torch.float64))
