"""Streaming inference equals the algorithms that build S, and its Parzen rule the Parzen-window Bayes classifier."""

import numpy as np
import printed
import pytest
import torch
from sklearn.neighbors import KernelDensity
from torch import Tensor

from clai.alignment import one_vs_rest
from clai.inference import RULES, decide, parzen_means, predict_labels, probabilities
from clai.kernels import Cosine, Kernel, MahalanobisGaussian

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


def printed_similarity(kernel: Kernel) -> printed.Similarity:
    return printed.cosine if isinstance(kernel, Cosine) else printed.mahalanobis(kernel.matrix.detach())


@pytest.mark.parametrize("name", KERNELS)
def test_paper_rule_is_algorithm_2(name: str) -> None:
    test, reference, labels = embeddings(2)
    kernel = KERNELS[name]
    f = decide(parzen_means(kernel, test, reference, one_vs_rest(labels, 1).double(), block=7), "paper")
    y = (2 * labels - 1).double()
    expected = printed.infer_binary(lambda z: z, printed_similarity(kernel), test[0], reference[0], y, BATCH)
    torch.testing.assert_close(f[0], expected, rtol=0, atol=1e-12)
    assert torch.equal(predict_labels(f), (expected > 0).long())


@pytest.mark.parametrize("name", KERNELS)
def test_paper_rule_is_algorithm_4(name: str) -> None:
    """Embedding is the identity here: sample i under condition k has its own embedding, looked up by its index."""
    test, reference, labels = embeddings(4)
    kernel = KERNELS[name]
    f = decide(parzen_means(kernel, test, reference, one_vs_rest(labels, 4).double(), block=7), "paper")
    both = torch.cat([test, reference], dim=1)

    def phi(index: Tensor, k: int) -> Tensor:
        return both[k, index[:, 0].long()]

    index = torch.arange(TEST + REFERENCE, dtype=torch.float64)[:, None]
    x, x_r = index[:TEST], index[TEST:]
    expected = printed.infer_multiclass(phi, printed_similarity(kernel), x, x_r, labels, 4, BATCH)
    torch.testing.assert_close(f.T, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(probabilities(f), expected.softmax(1), rtol=0, atol=1e-12)
    assert torch.equal(predict_labels(f), expected.argmax(1))


@pytest.mark.parametrize("name", KERNELS)
def test_all_rules_follow_from_one_pass(name: str) -> None:
    """Each rule from S written out, against the same means."""
    test, reference, labels = embeddings(3)
    kernel, y = KERNELS[name], one_vs_rest(labels, 3).double()
    means = parzen_means(kernel, test, reference, y, block=8)
    s = kernel(test, reference)
    positive, negative = (y > 0).double(), (y < 0).double()
    counts = positive.sum(1, keepdim=True), negative.sum(1, keepdim=True)
    mean_positive = (s @ positive.unsqueeze(-1)).squeeze(-1) / counts[0]
    mean_negative = (s @ negative.unsqueeze(-1)).squeeze(-1) / counts[1]
    density_positive, density_negative = (((1 + s) / 2) @ side.unsqueeze(-1) for side in (positive, negative))
    expected = {
        "paper": (s @ y.unsqueeze(-1)).squeeze(-1) / REFERENCE,
        "centred": (s @ (y - y.mean(1, keepdim=True)).unsqueeze(-1)).squeeze(-1) / REFERENCE,
        "balanced": mean_positive - mean_negative,
        "parzen": ((density_positive - density_negative) / (density_positive + density_negative)).squeeze(-1),
    }
    assert set(expected) == set(RULES)
    for rule in RULES:
        torch.testing.assert_close(decide(means, rule), expected[rule], rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_parzen_rule_is_the_bayes_classifier_on_kernel_densities(share: float) -> None:
    """scikit-learn's KernelDensity at bandwidth h has windows exp(-|x - x'|^2 / 2 h^2)."""
    generator = np.random.default_rng(0)
    bandwidth, x, test = 0.4, generator.normal(size=(300, 3)), generator.normal(size=(50, 3))
    y = np.arange(300) < share * 300
    x[y] += 1
    log_density = [KernelDensity(bandwidth=bandwidth).fit(x[y == k]).score_samples(test) for k in (False, True)]
    posterior = 1 / (1 + np.exp(log_density[0] - log_density[1]) * (1 - y.mean()) / y.mean())

    kernel = MahalanobisGaussian(3, "identity").double()
    scale = 1 / np.sqrt(2 * bandwidth**2 * kernel.matrix[0, 0].item())
    z, z_test = (torch.from_numpy(a * scale).unsqueeze(0) for a in (x, test))
    signs = one_vs_rest(torch.from_numpy(y.astype(np.int64)), 1).double()
    f = decide(parzen_means(kernel, z_test, z, signs, block=64), "parzen")
    np.testing.assert_allclose((1 + f[0].numpy()) / 2, posterior, rtol=0, atol=1e-10)


def test_parzen_rule_still_decides_where_every_window_underflows() -> None:
    kernel = MahalanobisGaussian(2, "identity")
    reference = torch.tensor([[[0.0, 0.0], [10.0, 0.0]]])
    test = torch.tensor([[[-400.0, 0.0], [400.0, 0.0]]])
    means = parzen_means(kernel, test, reference, torch.tensor([[-1.0, 1.0]]), block=4)
    assert decide(means, "parzen").tolist() == [[-1.0, 1.0]]


def test_far_from_all_data_the_paper_rule_is_left_with_its_offset() -> None:
    kernel = MahalanobisGaussian(2, "identity")
    signs = one_vs_rest(torch.arange(10) // 9, 1)
    means = parzen_means(kernel, torch.full((1, 1, 2), 1e3), torch.randn(1, 10, 2), signs, block=4)
    assert decide(means, "paper").item() == pytest.approx(1 - 2 * 0.1)
    assert decide(means, "centred").item() == pytest.approx(0)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_block_size_changes_nothing(block: int) -> None:
    test, reference, labels = embeddings(3)
    y = one_vs_rest(labels, 3).double()
    for kernel in KERNELS.values():
        one, other = (parzen_means(kernel, test, reference, y, block=b) for b in (13, block))
        torch.testing.assert_close(one.log_positive, other.log_positive, rtol=0, atol=1e-12)
        torch.testing.assert_close(one.log_negative, other.log_negative, rtol=0, atol=1e-12)


def test_a_condition_without_positive_references_is_refused() -> None:
    z = torch.randn(2, 4, 3)
    signs = torch.tensor([[1.0, 1.0, -1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])
    with pytest.raises(ValueError, match="condition 1 has no positive"):
        parzen_means(Cosine(), z, z, signs, 4)
