"""The Parzen rule trained by a proper score: its loss, its memory, and the estimator's probabilities."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from torch import Tensor

from clailearn import CLaIClassifier
from clailearn.errors import InputError
from clailearn.inference import parzen_means, scores_by
from clailearn.kernels import KERNELS, Kernel, MahalanobisGaussian, build
from clailearn.learning import collaborative_learning, parzen_step
from clailearn.parzen import Memory, ParzenLoss
from support.training import SETTINGS, samples, small_encoder

PARZEN = replace(SETTINGS, loss="parzen", schedule="joint", references=1, memory=20)


def by_definition(kernel: Kernel, z: Tensor, y: Tensor, left_out: Tensor) -> Tensor:
    """The mean binary cross-entropy of each condition's log odds over the samples that have references of both sides."""
    classes = int(y.max()) + 1
    total, alone = z.new_zeros(()), classes == 2 and (z.ndim == 2 or len(z) == 1)
    for k in [1] if alone else range(classes):
        own = z if z.ndim == 2 else z[k if len(z) > 1 else 0]
        scores = []
        for i in range(len(y)):
            parzen = kernel.log_parzen(own[i : i + 1], own)[0].exp()
            positive, negative = parzen[(y == k) & ~left_out[i]], parzen[(y != k) & ~left_out[i]]
            if len(positive) and len(negative):
                p = positive.sum() / (positive.sum() + negative.sum())
                scores.append(-(p if y[i] == k else 1 - p).log())
        total = total + torch.stack(scores).mean() * (1 if alone else 1 / 2)
    return total


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("shape", "classes"), [((3, 11, 4), 3), ((11, 4), 3), ((1, 11, 4), 2), ((2, 11, 4), 2)])
def test_it_is_a_proper_score_of_posteriors_with_its_gradient(name: str, shape: tuple[int, ...], classes: int) -> None:
    kernel, generator = build(name, 4, "full").double(), torch.Generator().manual_seed(0)
    z = torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.cat([torch.arange(10) % (classes - 1), torch.tensor([classes - 1])])  # the last class has one sample
    itself = torch.eye(11, dtype=torch.bool)
    given = [z, *kernel.parameters()]
    loss, expected = ParzenLoss(kernel)(z, y), by_definition(kernel, z, y, itself)
    torch.testing.assert_close(loss, expected)
    for one, other in zip(torch.autograd.grad(loss, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(one, other)


def test_samples_far_from_all_references_have_a_finite_loss_and_gradient() -> None:
    kernel, z = MahalanobisGaussian(4, "full"), 1e4 * torch.arange(24.0).reshape(2, 3, 4)
    loss = ParzenLoss(kernel)(z.requires_grad_()[:, :2], [0, 1], z[:, 1:], [0, 1])
    loss.backward()
    assert loss.isfinite()
    assert z.grad.isfinite().all()


def test_a_copy_in_the_memory_does_not_vote_for_its_sample() -> None:
    """A memory of the batch itself doubles both sides of all odds, and changes no loss, if copies of a sample are left out."""
    model, kernel, items = small_encoder(0.0), MahalanobisGaussian(4, "full"), torch.arange(16)
    memory = Memory(16, 8)
    given = (model, kernel, memory, samples(), PARZEN, items, None, torch.Generator())
    first, second = (parzen_step(*given)["loss"] for _ in range(2))
    torch.testing.assert_close(first, second)
    assert sorted(memory.held()[2].tolist()) == items.tolist()


def test_a_memory_keeps_the_last_samples() -> None:
    memory = Memory(5, 2)
    for n in range(3):
        memory.keep(torch.full((2, 2), float(n)), torch.full((2,), n), torch.tensor([2 * n, 2 * n + 1]))
    features, labels, items = memory.held()
    assert items.tolist() == [1, 2, 3, 4, 5]
    assert labels.tolist() == features[:, 0].tolist() == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("change", [{"schedule": "sequential"}, {"references": "all"}])
def test_it_needs_all_classes_and_samples_of_a_step_at_once(change: dict[str, str]) -> None:
    settings = replace(PARZEN, **change)
    with pytest.raises(InputError, match=r"training\.schedule, training\.references: found .* expected joint"):
        collaborative_learning(small_encoder(), MahalanobisGaussian(4, "full"), samples(), 3, settings, dict, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_samples_get_the_class_of_the_largest_odds_where_logarithms_would_round_to_the_same(
    dtype: torch.dtype,
) -> None:
    kernel, z = MahalanobisGaussian(1, "identity").to(dtype), torch.zeros(3, 1, 1, dtype=dtype)
    r = torch.tensor([[[50.0], [0], [0]], [[40.0], [12], [40]], [[60.0], [60], [11]]], dtype=dtype)
    scores = scores_by(parzen_means(kernel, z, r, torch.tensor([0, 1, 2]), classes=3), "parzen")
    assert (scores[0, 0] < scores[0, 1]) & (scores[0, 1] < scores[0, 2]) & (scores[0, 2] < 0)


def test_probabilities_of_the_cosine_kernel_are_finite_where_a_class_has_no_vote() -> None:
    X, y = make_blobs(120, centers=[[0, 0], [4, 4]], random_state=1)
    model = CLaIClassifier(kernel="cosine", rule="parzen", embedding_size=1, random_state=1, epochs=15)
    assert np.isfinite(model.fit((X - X.mean(0)) / X.std(0), y).predict_proba(X)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_posteriors_at_any_distance_whatever_the_order_of_references(classes: int) -> None:
    X, y = make_blobs(120, centers=classes, n_features=2, random_state=0)
    model = CLaIClassifier(loss="parzen", calibration=None, epochs=8, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    far = np.concatenate([X, 1e3 * X])
    p, labels = model.predict_proba(far), model.predict(far)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(p[np.arange(len(p)), labels], p.max(1))
    order = np.random.default_rng(0).permutation(len(X))
    references = model.model_.references
    assert model.model_.settings["rule"] == "parzen"
    shuffled = references._replace(z=references.z[:, order], y=references.y[order], item=references.item[order])
    np.testing.assert_allclose(replace(model.model_, references=shuffled).probabilities(far), p)
