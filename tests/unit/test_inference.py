"""Streaming inference equals the algorithms that build S, with every rule and over samples of the references."""

import numpy as np
import pytest
import torch
from torch import Tensor

from clailearn import inference
from clailearn.alignment import one_vs_rest
from clailearn.calibration import calibrated, fit_calibration
from clailearn.errors import InputError
from clailearn.inference import (
    RULES,
    class_scores,
    decide,
    log_posteriors,
    mean_of_views,
    parzen_means,
    sample_references,
    scores_by,
)
from clailearn.kernels import Cosine, MahalanobisGaussian
from replication.experiments import algorithms_as_printed as printed
from support.training import printed_similarity

SIZE, TEST, REFERENCE, BATCH = 5, 17, 60, 6
KERNELS = {"cosine": Cosine(), "gaussian": MahalanobisGaussian(SIZE, "full").double()}


def embeddings(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Test (K, P, L), reference (K, R, L), labels (R,) in which every class occurs, unequally often."""
    generator = torch.Generator().manual_seed(classes)
    conditions = 1 if classes == 2 else classes
    test, reference = (
        torch.randn(conditions, n, SIZE, generator=generator, dtype=torch.float64) for n in (TEST, REFERENCE)
    )
    labels = (torch.rand(REFERENCE, generator=generator) ** 2 * classes).long()
    return test, reference, labels


@pytest.mark.parametrize("name", KERNELS)
def test_paper_rule_is_algorithm_2(name: str) -> None:
    test, reference, labels = embeddings(2)
    kernel = KERNELS[name]
    f = decide(parzen_means(kernel, test, reference, labels, block=7), "printed")
    y = (2 * labels - 1).double()
    expected = printed.infer_binary(lambda z: z, printed_similarity(kernel), test[0], reference[0], y, BATCH)
    torch.testing.assert_close(f[0], expected, rtol=0, atol=1e-12)
    assert torch.equal(class_scores(f).argmax(1), (expected > 0).long())


@pytest.mark.parametrize("name", KERNELS)
def test_paper_rule_is_algorithm_4(name: str) -> None:
    """Embedding is the identity here: sample i under condition k has its own embedding, looked up by its index."""
    test, reference, labels = embeddings(4)
    kernel = KERNELS[name]
    f = decide(parzen_means(kernel, test, reference, labels, block=7), "printed")
    both = torch.cat([test, reference], dim=1)

    def phi(index: Tensor, k: int) -> Tensor:
        return both[k, index[:, 0].long()]

    index = torch.arange(TEST + REFERENCE, dtype=torch.float64)[:, None]
    x, x_r = index[:TEST], index[TEST:]
    expected = printed.infer_multiclass(phi, printed_similarity(kernel), x, x_r, labels, 4, BATCH)
    torch.testing.assert_close(f.T, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(calibrated(f.T.detach(), None), expected.softmax(1).detach(), rtol=0, atol=1e-12)
    assert torch.equal(class_scores(f).argmax(1), expected.argmax(1))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("held", [2**24, 20])
def test_all_rules_follow_from_one_pass(name: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule from S written out, against the same means, also where few samples fit into memory at once."""
    monkeypatch.setattr(inference, "SUMS", held)
    test, reference, labels = embeddings(3)
    kernel, y = KERNELS[name], one_vs_rest(labels, 3).double()
    means = parzen_means(kernel, test, reference, labels, block=8)
    s = kernel(test, reference)
    positive, negative = (y > 0).double(), (y < 0).double()
    counts = positive.sum(1, keepdim=True), negative.sum(1, keepdim=True)
    mean_positive = (s @ positive.unsqueeze(-1)).squeeze(-1) / counts[0]
    mean_negative = (s @ negative.unsqueeze(-1)).squeeze(-1) / counts[1]
    density_positive, density_negative = (((1 + s) / 2) @ side.unsqueeze(-1) for side in (positive, negative))
    expected = {
        "printed": (s @ y.unsqueeze(-1)).squeeze(-1) / REFERENCE,
        "centred": (s @ (y - y.mean(1, keepdim=True)).unsqueeze(-1)).squeeze(-1) / REFERENCE,
        "balanced": mean_positive - mean_negative,
        "parzen": ((density_positive - density_negative) / (density_positive + density_negative)).squeeze(-1),
    }
    assert set(expected) == set(RULES)
    for rule in RULES:
        torch.testing.assert_close(decide(means, rule), expected[rule], rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_log_odds_are_exact_however_far_a_class_is_and_can_be_calibrated(classes: int) -> None:
    kernel, places, labels = MahalanobisGaussian(1, "identity"), 100.0 * torch.arange(classes), torch.arange(classes)
    z = places.expand(1 if classes == 2 else classes, -1).unsqueeze(-1)
    means = parzen_means(kernel, z, z, labels, block=1)
    assert torch.equal(decide(means, "parzen"), (2 * torch.eye(classes) - 1)[-len(z) :])
    scores = scores_by(means, "parzen")
    distances = (places.unsqueeze(1) - places).square()
    wrong = distances > 0
    torch.testing.assert_close(scores[wrong], -distances[wrong], rtol=1e-3, atol=0)
    probabilities = calibrated(scores, fit_calibration(scores, labels, log_odds=True), log_odds=True)
    np.testing.assert_allclose(probabilities, np.eye(classes), atol=1e-6)


def test_a_label_without_class_is_refused() -> None:
    z = torch.randn(3, 4, 3)
    with pytest.raises(ValueError, match="label 3, but there are 3 classes"):
        parzen_means(Cosine(), z, z, torch.tensor([0, 1, 2, 3]), block=4)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", KERNELS)
def test_a_vote_of_sampled_references_is_unbiased(name: str, classes: int) -> None:
    test, reference, labels = embeddings(classes)
    reference[:, :, 0] += labels
    kernel, draws = KERNELS[name], 400
    exact = parzen_means(kernel, test, reference, labels, block=64)
    sampled = []
    for seed in range(draws):
        items, population = sample_references(labels, 21, seed)
        sampled.append(parzen_means(kernel, test, reference[:, items], labels[items], population, block=64))
    assert all(torch.equal(means.share, exact.share) for means in sampled)
    for rule in [rule for rule in RULES if rule != "parzen"]:  # a ratio, unbiased to first order only
        f = torch.stack([decide(means, rule) for means in sampled])
        spread = f.std(0)
        assert (spread > 1e-4).all(), "nothing was sampled, so nothing was tested"
        assert ((f.mean(0) - decide(exact, rule)).abs() < 4.5 * spread / draws**0.5).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_log_posteriors_are_those_of_the_parzen_rule_and_stay_finite(classes: int) -> None:
    test, reference, labels = embeddings(classes)
    means = parzen_means(KERNELS["gaussian"], test, reference, labels, block=64)
    torch.testing.assert_close(log_posteriors(means).exp(), (1 + decide(means, "parzen")) / 2, rtol=1e-9, atol=0)
    none = means._replace(log_positive=torch.full_like(means.log_positive, -torch.inf))
    assert torch.isfinite(log_posteriors(none)).all()


def test_a_sample_has_equally_many_of_each_class_as_far_as_there_are() -> None:
    labels = torch.tensor([0] * 100 + [1] * 3 + [2] * 40)
    items, population = sample_references(labels, 50, seed=1)
    assert torch.bincount(labels[items]).tolist() == [24, 3, 23]
    assert population.tolist() == [100, 3, 40]
    assert len(set(items.tolist())) == 50
    assert torch.equal(items, items.sort().values)
    again, other = (sample_references(labels, 50, seed)[0] for seed in (1, 2))
    assert torch.equal(items, again)
    assert not torch.equal(items, other)
    with pytest.raises(InputError, match=r"found 2 references to draw, expected at least one for each of 3 classes"):
        sample_references(labels, 2, seed=1)


def test_the_vote_of_several_views_is_that_of_their_mean_similarity() -> None:
    torch.manual_seed(1)
    kernel = MahalanobisGaussian(4, "full").double()
    views = [torch.randn(3, 7, 4, dtype=torch.float64) for _ in range(3)]
    references, labels = torch.randn(3, 90, 4, dtype=torch.float64), torch.arange(90) % 3
    means = [parzen_means(kernel, z, references, labels, block=32) for z in views]
    f = decide(mean_of_views(*means), "printed")
    similarity = torch.stack([kernel(z, references) for z in views]).mean(0)
    expected = torch.einsum("kpn,kn->kp", similarity, one_vs_rest(labels, 3).double()) / len(labels)
    torch.testing.assert_close(f, expected)


def test_a_sample_far_from_all_references_in_both_views_has_the_means_of_one() -> None:
    kernel, labels = MahalanobisGaussian(1, "identity"), torch.tensor([0, 1])
    far, references = torch.full((1, 1, 1), 40.0), torch.tensor([[[0.0], [1.0]]])
    means = parzen_means(kernel, far, references, labels, block=8)
    joined = mean_of_views(means, means)
    for actual, expected in zip(joined, means, strict=True):
        torch.testing.assert_close(actual, expected)


def test_the_opposite_of_references_has_finite_log_odds() -> None:
    """Rounding makes the Parzen similarity of this sample and its opposite negative."""
    torch.manual_seed(0)
    z = torch.randn(1, 1, 3)
    for first, second, decision in ((z, -z, -1.0), (-z, z, 1.0), (-z, -z, 0.0)):
        means = parzen_means(Cosine(), z, torch.cat([first, second], 1), torch.tensor([0, 1]), block=2)
        assert decide(means, "parzen").item() == decision
        assert scores_by(means, "parzen").isfinite().all()
