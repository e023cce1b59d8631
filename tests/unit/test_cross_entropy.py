"""Cross-entropy: its smoothed labels, and its logits where training drew samples of each class."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from replication.datasets.prepared import Prepared
from replication.models.base import create, draw_shift
from replication.models.network_classifiers import CrossEntropy
from replication.models.run import Run
from replication.runs.run import RunId
from replication.runs.settings import merge
from support.repository import REAL

COUNTS = (150, 40, 10)


def unequal_run() -> Run:
    """Open a run on features of three classes of unequal size, of which training draws two samples a batch."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(3), COUNTS)
    x = rng.normal(size=(len(y), 3)) + 6 * np.eye(3)[y]
    arrays = {f"{name}_{split}": part for split in ("train", "val", "test") for name, part in (("x", x), ("y", y))}
    norm = {"mean": [0.0] * 3, "sd": [1.0] * 3}
    data = Prepared({"kind": "features", "classes": list("abc"), "normalisation": {"train": norm}}, arrays)
    training = {"epochs": 2, "batch_size": 16, "precision": "float32", "samples_per_class": 2}
    own = {"encoder": {"trunk": "mlp", "width": 16, "layers": 1}, "training": training}
    return Run(data, merge(REAL, own), RunId("rows", "cross-entropy", 3), torch.device("cpu"))


def test_logits_are_shifted_to_the_shares_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    run = unequal_run()
    shift = draw_shift(run.splits.train, run.training).float()
    biases = []
    for given in (shift, torch.zeros(len(shift))):
        monkeypatch.setattr("replication.models.network_classifiers.draw_shift", lambda *_, given=given: given)
        model: Any = create("cross-entropy")
        model.fit(run, run.splits, None)
        biases.append(model.network.logits.bias.detach())
    assert shift.abs().max() > 0.1
    torch.testing.assert_close(biases[0] - biases[1], shift)


def test_smoothed_labels_pull_at_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, label = torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0])
    training = SimpleNamespace(samples_per_class=None)
    run: Any = SimpleNamespace(settings={"baselines": {"cross_entropy": {"label_smoothing": 0.3}}}, training=training)
    monkeypatch.setattr(CrossEntropy, "forward", lambda *_: logits)
    log_p = logits.log_softmax(1)[0]
    assert float(CrossEntropy().loss(run, None, label)) == pytest.approx(float(-0.7 * log_p[0] - 0.1 * log_p.sum()))
