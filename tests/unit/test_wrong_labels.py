"""Wrong labels, classes of unequal size, the best epoch, and the loss that wrong labels pull at less."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from clailearn.checkpoints import Checkpoint
from replication.models.base import create, draw_shift
from replication.models.network_classifiers import CrossEntropy, GeneralisedCrossEntropy
from replication.models.splits import long_tail, wrong_labels
from tests.unit.test_new_classes import run as run_of

with_training = partial(run_of, "cross-entropy", 0)


def test_a_share_of_the_labels_becomes_another_class_each_as_likely() -> None:
    labels = np.arange(20_000) % 5
    wrong = wrong_labels(labels, 0.4, 5, seed=0)
    assert abs((wrong != labels).mean() - 0.4) < 0.01
    shifts = np.bincount((wrong - labels)[wrong != labels] % 5, minlength=5)
    assert shifts[0] == 0
    assert shifts[1:].min() > 0.9 * shifts[1:].max()
    assert not np.array_equal(wrong, wrong_labels(labels, 0.4, 5, seed=1))


def test_classes_shrink_in_equal_ratios_from_the_size_of_the_smallest() -> None:
    labels = np.repeat([0, 1, 2], [300, 200, 100])
    rows = long_tail(labels, 100, seed=0)
    assert sorted(np.bincount(labels[rows])) == [1, 10, 100]
    assert (np.diff(rows) > 0).all()
    assert list(np.bincount(labels[long_tail(labels, 1, seed=0)])) == [100, 100, 100]


def test_test_samples_keep_their_labels_and_validation_samples_keep_their_number() -> None:
    as_it_is, changed = with_training().splits, with_training(label_noise=0.5, long_tail=10).splits
    assert torch.equal(as_it_is.test.labels, changed.test.labels)
    assert len(changed.val) == len(as_it_is.val)
    assert (changed.val.labels != as_it_is.val.labels).any()
    assert len(changed.train) < len(as_it_is.train)


def test_a_fit_to_the_best_epoch_ends_with_its_weights(tmp_path: Path) -> None:
    run = with_training(label_noise=0.6, best_epoch=True, epochs=12, learning_rate=0.05)
    model = create("cross-entropy")
    history = model.fit(run, run.splits, Checkpoint(tmp_path / "checkpoint.pt", "a"))
    accuracies = [epoch["validation_accuracy"] for epoch in history]
    ended = (model.scores(run, run.splits.val).argmax(1) == run.splits.val.labels.numpy()).mean()
    assert ended == max(accuracies) > accuracies[-1]
    assert not (tmp_path / "checkpoint.pt").exists()


def test_logits_of_the_best_epoch_are_shifted_to_the_shares_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    run = with_training(long_tail=10, samples_per_class=2, best_epoch=True, epochs=2)
    shift = draw_shift(run.splits.train, run.training).float()
    biases = []
    for given in (shift, torch.zeros(len(shift))):
        monkeypatch.setattr("replication.models.network_classifiers.draw_shift", lambda *_, given=given: given)
        model: Any = create("cross-entropy")
        model.fit(run, run.splits, None)
        biases.append(model.network.logits.bias.detach())
    assert shift.abs().max() > 0.1
    torch.testing.assert_close(biases[0] - biases[1], shift)


def test_smoothed_labels_pull_at_all_classes() -> None:
    logits, label = torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0])
    run: Any = SimpleNamespace(settings={"baselines": {"cross_entropy": {"label_smoothing": 0.3}}})
    log_p = logits.log_softmax(1)[0]
    assert float(CrossEntropy().compare(run, logits, label)) == pytest.approx(
        float(-0.7 * log_p[0] - 0.1 * log_p.sum())
    )


def test_generalised_cross_entropy_is_bounded_and_near_cross_entropy_where_labels_are_likely() -> None:
    run: Any = None
    compare, label = partial(GeneralisedCrossEntropy().compare, run), torch.tensor([0])
    even = float(compare(torch.tensor([[0.0, 0.0]]), label))
    assert abs(even - (1 - 0.5**0.7) / 0.7) < 1e-6
    far = torch.tensor([[-1000.0, 0.0]], requires_grad=True)
    compare(far, label).backward()
    assert abs(compare(far, label).item() - 1 / 0.7) < 1e-6
    assert far.grad is not None
    assert torch.isfinite(far.grad).all()
    assert abs(float(compare(torch.tensor([[9.0, 0.0]]), label)) - float(np.log1p(np.exp(-9)))) < 1e-6
