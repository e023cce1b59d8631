"""Cross-entropy has its smoothed labels, and logits where training drew samples of each class. Supervised contrastive learning
follows its authors: their loss, two copies of an image, a projection that is dropped, a read-out."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from clailearn.encoders import MLP, ConditionedHead, Encoder, ResNet2d
from clailearn.trainer import Epoch, Items
from replication.datasets.prepared import Prepared
from replication.models.base import create, draw_shift
from replication.models.items import NO_AUGMENTATION, Images, Splits
from replication.models.network_classifiers import CrossEntropy, SupervisedContrastive
from replication.models.row_classifiers import varying
from replication.models.run import Run
from replication.runs.run import RunId
from replication.runs.settings import merge
from support.repository import REAL
from support.training import SETTINGS, Recorded

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
        model = create("cross-entropy")
        model.fit(run, None)
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


@pytest.mark.parametrize(("name", "shape"), [("cross-entropy", (2, 2)), ("supervised-contrastive", (1, 2, 2))])
def test_a_loss_is_of_the_samples_that_are_drawn(
    name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, of_classes = create(name), torch.tensor([2.0, 0.0, 1.0, -1.0]).view(shape)
    monkeypatch.setattr(type(model), "forward", lambda self, run, labels: of_classes[..., labels, :])
    own = {"cross_entropy": {"label_smoothing": 0.0}, "supervised_contrastive": {"temperature": 0.5}}
    run: Any = SimpleNamespace(settings={"baselines": own}, training=SimpleNamespace(samples_per_class=2))
    whole, drawn = (torch.tensor([0] * count + [1] * 2) for count in (9, 2))
    torch.testing.assert_close(model.loss(run, whole, whole), model.loss(run, drawn, drawn))


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


def contrast(encoder: Encoder, items: Items, kind: str, dropout: float = 0.0) -> list[Epoch]:
    """The history of a training by the loss on items of this kind of data."""
    settings = {"baselines": {"supervised_contrastive": {"temperature": 0.2}}, "encoder": {"dropout": dropout}}
    run: Any = SimpleNamespace(splits=Splits(items, items, items), settings=settings, training=SLOWLY)
    run.device, run.data = torch.device("cpu"), SimpleNamespace(info={"kind": kind})
    model = SupervisedContrastive()
    model.module = model.network = encoder
    return model.learn(run, dict, None)


@pytest.mark.parametrize(
    ("kind", "dropout", "copies"),
    [("features", 0.0, 1), ("images", 0.0, 2), ("recordings", 0.2, 2), ("recordings", 0.0, 1)],
)
def test_contrastive_loss_is_the_published_one(kind: str, dropout: float, copies: int) -> None:
    torch.manual_seed(0)
    items = Recorded(torch.randn(8, 3), torch.arange(8) % 2)
    encoder = Encoder(MLP(3, 6, 1), ConditionedHead(6, 1, 4))
    history = contrast(encoder, items, kind, dropout)
    ((x, labels),) = items.batches
    assert len(x) == 8 * copies
    z = encoder.train()(x)[0].detach()  # the rate is too small to move anything
    assert history[0]["loss"] == pytest.approx(published_loss(z, labels, 0.2), rel=1e-4)


def test_copies_of_an_image_are_augmented_each_for_itself() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (8, 12, 12, 3), dtype=np.uint8)
    augmentation = NO_AUGMENTATION | {"crop": 4, "flip": True}
    items = Images(pixels, np.arange(8) % 2, [0.0] * 3, [1.0] * 3, augmentation, torch.device("cpu"))
    drawn = []
    original = items.batch
    items.batch = lambda rows, generator: drawn.append((rows, original(rows, generator))) or drawn[-1][1]  # type: ignore
    encoder = Encoder(ResNet2d(3, 4, [1]), ConditionedHead(4, 1, 4))
    contrast(encoder, items, "images")
    ((rows, (x, labels)),) = drawn
    assert torch.equal(rows[:8], rows[8:])
    assert torch.equal(labels[:8], labels[8:])
    assert sum(not torch.equal(a, b) for a, b in zip(x[:8], x[8:], strict=True)) >= 6


def test_the_read_out_has_the_penalty_of_scikit_learn() -> None:
    run = unequal_run()
    model = create("supervised-contrastive").build(run)
    x, y = run.splits.train.batch(torch.arange(sum(COUNTS)), None)
    with torch.no_grad():
        features = model.network.trunk(x).numpy()
    features = StandardScaler().fit_transform(features[:, varying(features)])
    expected = LogisticRegression(C=1.0, max_iter=1000).fit(features, y).decision_function(features)
    np.testing.assert_allclose(model.scores(run, run.splits.test), expected, atol=0.02)
