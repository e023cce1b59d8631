"""Classes that take turns: what later ones do to those before, and that measuring it changes nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from clai.batches import Vectors
from clai.encoders import MLP, ConditionedHead, Encoder
from clai.kernels import Cosine
from clai.learning import collaborative_learning
from replication.models.clai import Turns
from support.training import SETTINGS

LABELS = torch.tensor([0, 0, 1, 1, 2, 2])


def ranked(*areas: float) -> tuple[Any, torch.Tensor]:
    """Scores of three classes with these areas under their ROC curves, each 1, 0.5 or 0, and the labels."""
    own = {1.0: (1, 1), 0.5: (1, -1), 0.0: (-1, -1)}
    columns = [np.zeros(len(LABELS)) for _ in range(3)]
    for k, area in enumerate(areas):
        columns[k][LABELS.numpy() == k] = own[area]
    return np.stack(columns, 1), LABELS


def in_order(*measured: tuple[Any, torch.Tensor]) -> Callable[[], tuple[Any, torch.Tensor]]:
    left: Iterator[tuple[Any, torch.Tensor]] = iter(measured)
    return lambda: next(left)


def test_change_is_the_area_after_the_last_turn_minus_that_after_its_own_for_all_classes_but_the_last() -> None:
    # Class 0 falls from 1 to 0.5, class 1 from 1 to 0; class 2 has the last turn and does not count.
    turns = Turns(in_order(ranked(1.0, 0.0, 0.0), ranked(1.0, 1.0, 0.0), ranked(0.5, 0.0, 1.0)))
    for k in range(3):
        turns.take(k)
    assert turns.change() == {"turn_change": pytest.approx(-0.75)}


def test_each_epoch_counts_for_itself() -> None:
    turns = Turns(in_order(*[ranked(1.0, 1.0, 1.0)] * 3, ranked(1.0, 0.0, 0.0), *[ranked(0.5, 1.0, 1.0)] * 2))
    for k in (0, 1, 2, 0, 1, 2):
        turns.take(k)
    assert turns.change() == {"turn_change": pytest.approx(-0.25)}


def test_measuring_after_each_turn_leaves_the_training_as_it_was() -> None:
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    data = Vectors(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long())
    settings = replace(SETTINGS, schedule="sequential", references="all", epochs=2)
    seen: list[int | None] = []

    def trained(measured: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        encoder = Encoder(torch.nn.Sequential(MLP(3, 8, 1), torch.nn.Dropout(0.2)), ConditionedHead(8, 3, 4))

        def look(condition: int | None) -> None:
            seen.append(condition)
            encoder.eval()
            encoder(x)

        collaborative_learning(encoder, Cosine(), data, 3, settings, dict, None, look if measured else None)
        return encoder.state_dict()

    plain, watched = trained(False), trained(True)
    assert seen == [0, 1, 2] * 2
    assert all(torch.equal(plain[name], watched[name]) for name in plain)
