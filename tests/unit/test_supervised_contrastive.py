"""Supervised contrastive learning follows its authors: their loss, two views, a projection that is dropped, a read-out."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clailearn.encoders import MLP, ConditionedHead, Encoder, ResNet2d
from clailearn.trainer import Epoch, Items, Samples
from replication.models.batches import NO_AUGMENTATION, Images, Splits
from replication.models.network_classifiers import SupervisedContrastive
from support.training import SETTINGS

SLOWLY = replace(
    SETTINGS, epochs=1, batch_size=4, optimiser="sgd", learning_rate=1e-9, learning_rate_schedule="constant"
)


def published_loss(z: Tensor, labels: Tensor, temperature: float) -> float:
    """Equation 2 of Khosla et al. (2020), the sum over positives outside the logarithm, averaged over the batch."""
    z = z / z.norm(dim=1, keepdim=True)
    terms = []
    for i in range(len(z)):
        others = [a for a in range(len(z)) if a != i]
        positives = [p for p in others if labels[p] == labels[i]]
        total = sum(torch.exp(z[i] @ z[a] / temperature) for a in others)
        terms.append(-sum(torch.log(torch.exp(z[i] @ z[p] / temperature) / total) for p in positives) / len(positives))
    return float(sum(terms) / len(terms))


def train(encoder: Encoder, items: Items, kind: str) -> list[Epoch]:
    """The history of a training by the loss on items of this kind of data."""
    settings = {"baselines": {"supervised_contrastive": {"temperature": 0.2}}}
    run: Any = SimpleNamespace(
        splits=Splits(items, items, items),
        settings=settings,
        training=SLOWLY,
        device=torch.device("cpu"),
        data=SimpleNamespace(info={"kind": kind}),
    )
    model = SupervisedContrastive()
    model.module = model.network = encoder
    return model.learn(run, dict, None)


class Recorded(Samples):
    """Samples that keep the batches drawn from them."""

    def __init__(self, x: Tensor, labels: Tensor) -> None:
        super().__init__(x, labels)
        self.batches: list[tuple[Tensor, Tensor]] = []

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        self.batches.append(super().batch(items, generator))
        return self.batches[-1]


@pytest.mark.parametrize(("kind", "views"), [("features", 1), ("images", 2)])
def test_loss_is_the_published_one(kind: str, views: int) -> None:
    torch.manual_seed(0)
    items = Recorded(torch.randn(8, 3), torch.arange(8) % 2)
    encoder = Encoder(MLP(3, 6, 1), ConditionedHead(6, 1, 4))
    history = train(encoder, items, kind)
    ((x, labels),) = items.batches
    assert len(x) == 8 * views
    z = encoder.train()(x)[0].detach()  # the rate is too small to move anything
    assert history[0]["loss"] == pytest.approx(published_loss(z, labels, 0.2), rel=1e-4)


def test_views_of_an_image_are_augmented_each_for_itself() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (8, 12, 12, 3), dtype=np.uint8)
    items = Images(
        pixels,
        np.arange(8) % 2,
        [0.0] * 3,
        [1.0] * 3,
        NO_AUGMENTATION | {"crop": 4, "flip": True},
        torch.device("cpu"),
    )
    drawn = []
    original = items.batch
    items.batch = lambda rows, generator: drawn.append((rows, original(rows, generator))) or drawn[-1][1]  # type: ignore
    encoder = Encoder(ResNet2d(3, 4, [1]), ConditionedHead(4, 1, 4))
    train(encoder, items, "images")
    ((rows, (x, labels)),) = drawn
    assert torch.equal(rows[:8], rows[8:])
    assert torch.equal(labels[:8], labels[8:])
    assert sum(not torch.equal(a, b) for a, b in zip(x[:8], x[8:], strict=True)) >= 6
