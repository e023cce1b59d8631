"""Numerical checks of the mathematics behind claims 9 and 10 and behind the loss floors of figure 3; no data needed.

Each check returns tidy rows (check, setting, quantity, value). A setting is `name=value` pairs joined by semicolons.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.neighbors import KernelDensity
from torch import Tensor

from clai.alignment import TargetMatrix, alignment, alignment_loss, one_vs_rest, target_matrix
from clai.inference import RULES, ParzenMeans, decide, parzen_means, predict_labels
from clai.kernels import Kernel, MahalanobisGaussian, build

Row = tuple[str, str, str, float]


def check_all(settings: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> pd.DataFrame:
    """Run all checks with every seed.

    Args:
        settings: the arguments of each check, under its name: `parzen`, `bound`, `floor`.

    Returns:
        Columns check, setting, quantity, value.
    """
    rows: list[Row] = []
    for seed in seeds:
        rows += check_parzen(**settings["parzen"], seed=seed)
        rows += check_bound(**settings["bound"], seed=seed)
        rows += check_floor(**settings["floor"], seed=seed)
    return pd.DataFrame(rows, columns=["check", "setting", "quantity", "value"])


def check_parzen(
    *, shares: Sequence[float], bandwidths: Sequence[float], distance: float, size: int, samples: int, seed: int
) -> list[Row]:
    """Compare the decision rules with the Bayes classifier and with its Parzen-window estimate (claim 10).

    The data are two unit-variance Gaussians in `size` dimensions, their means `distance` apart. The kernel is the Gaussian one on
    the data themselves, exp(-|x - x'|^2 / (2 bandwidth^2)). The rule `derivation` is the last line of the paper's derivation
    (line 392), which multiplies class shares by *sums* of similarities; the other rules are those of `clai.inference`.

    Args:
        shares: class shares p of the positive class.
        bandwidths: of the kernel, in standard deviations of the data.
        distance: between the class means, in standard deviations.
        size: dimensions.
        samples: number of references, and of test samples.
        seed: of the data.

    Returns:
        For each share, bandwidth and rule, and for `bayes` and `kde` themselves:
            agreement_bayes: share of test samples decided as by the true Bayes rule.
            agreement_kde: share decided as by scikit-learn's KernelDensity with class priors.
            accuracy, called_positive: share of test samples decided rightly, and decided positive.
        For each share and bandwidth:
            identity_error: max |S y / N - (2 [p g+ - (1 - p) g-] + 1 - 2p)|.
            f_far: f of the rule `printed` far from all data, where it should be 1 - 2p.
    """
    rows: list[Row] = []
    for share, bandwidth in itertools.product(shares, bandwidths):
        generator = np.random.default_rng(seed)
        reference, y = _two_gaussians(generator, samples, share, distance, size)
        test, truth = _two_gaussians(generator, samples, share, distance, size)
        kernel = MahalanobisGaussian(size, "identity").double()
        scale = 1 / np.sqrt(2 * bandwidth**2 * kernel.matrix[0, 0].item())
        z, z_test = (torch.as_tensor(x * scale).unsqueeze(0) for x in (reference, test))
        labels = torch.as_tensor(y)
        means = parzen_means(kernel, z_test, z, labels, 1024)

        exact = int(y.sum()) / samples
        log_odds = distance * test[:, 0] + np.log(exact / (1 - exact))
        densities = [KernelDensity(bandwidth=bandwidth).fit(reference[y == k]).score_samples(test) for k in (0, 1)]
        kde = densities[1] + np.log(exact) > densities[0] + np.log(1 - exact)
        decisions: dict[str, NDArray[np.int64]] = {rule: predict_labels(decide(means, rule)).numpy() for rule in RULES}
        decisions["derivation"] = predict_labels(_derivation(means)).numpy()
        decisions |= {"bayes": (log_odds > 0).astype(int), "kde": kde.astype(int)}
        for rule, predicted in decisions.items():
            setting = f"share={share:g};bandwidth={bandwidth:g};rule={rule};seed={seed}"
            rows.append(("parzen", setting, "agreement_bayes", float((predicted == decisions["bayes"]).mean())))
            rows.append(("parzen", setting, "agreement_kde", float((predicted == decisions["kde"]).mean())))
            rows.append(("parzen", setting, "accuracy", float((predicted == truth).mean())))
            rows.append(("parzen", setting, "called_positive", float(predicted.mean())))

        direct = kernel(z_test, z) @ one_vs_rest(labels, 1).double().unsqueeze(-1) / samples
        error = (direct.squeeze(-1) - decide(means, "printed")).abs().max()
        far = decide(parzen_means(kernel, z_test[:, :1] + 1e3 * size, z, labels, 1024), "printed")
        setting = f"share={share:g};bandwidth={bandwidth:g};seed={seed}"
        rows.append(("parzen", setting, "identity_error", float(error)))
        rows.append(("parzen", setting, "f_far", float(far)))
    return rows


def check_bound(*, sizes: Sequence[int], draws: int, seed: int) -> list[Row]:
    """Check the relation of the alignment loss to the kernel alignment A, for targets T of +-1 and S in [-1, 1] (claim 9).

    The loss is at least 1 - A^2, with equality if S is the best multiple of T. The alignment distance
    d^2 = |S/|S| - T/|T||^2 equals 2 - 2A. The loss equals d^2 only for normalised S and T.

    Args:
        sizes: batch sizes B.
        draws: number of matrices S (B, B), drawn between pure noise and T itself.
        seed: of the draws.

    Returns:
        For each B: smallest_margin of loss - (1 - A^2); identity_error, max |d^2 - (2 - 2A)|; rank_correlation (Spearman) of
        the loss and 1 - A.
    """
    rows: list[Row] = []
    for size in sizes:
        generator = torch.Generator().manual_seed(seed)
        options = {"generator": generator, "dtype": torch.float64}
        anchor, reference = (torch.rand(draws, size, **options).sub(0.5).sign() for _ in range(2))  # type: ignore[call-overload]
        target = anchor.unsqueeze(-1) * reference.unsqueeze(-2)
        mix, scale = torch.rand(2, draws, 1, 1, **options)  # type: ignore[call-overload]
        noise = torch.rand(draws, size, size, **options) * 2 - 1  # type: ignore[call-overload]
        similarity = scale * (mix * target + (1 - mix) * noise)
        loss, aligned = alignment_loss(similarity, TargetMatrix(target, None)), alignment(similarity, target)
        squared = (_normalised(similarity) - _normalised(target)).square().sum((-2, -1))
        ranks = spearmanr(loss.numpy(), 1 - aligned.numpy())
        setting = f"size={size};seed={seed}"
        rows.append(("bound", setting, "smallest_margin", float((loss - (1 - aligned**2)).min())))
        rows.append(("bound", setting, "identity_error", float((squared - (2 - 2 * aligned)).abs().max())))
        rows.append(("bound", setting, "rank_correlation", float(ranks.statistic)))
    return rows


def check_floor(
    *, sizes: Sequence[int], shares: Sequence[float], points: int, steps: int, learning_rate: float, seed: int
) -> list[Row]:
    """Compare the loss floor of each kernel with target `zero` with the loss that free embeddings reach.

    Every point counts also as its own partner, which keeps the loss of n points up to (1 - p) / n above the floor.

    Args:
        sizes: embedding dimensions L.
        shares: class shares p of the positive class.
        points: number of embeddings.
        steps, learning_rate: of Adam; the learning rate is the peak of one cycle.
        seed: of the embeddings' start.

    Returns:
        For each kernel, L and share: floor, attained.
    """
    rows: list[Row] = []
    for name in ("cosine", "gaussian"):
        for size in sizes:
            kernel = build(name, size, "identity").double()
            for share in shares:
                positives = round(share * points)
                floor = kernel.loss_floor("zero", positives / points, size)
                attained = _attained_loss(kernel, size, points, positives, steps, learning_rate, seed)
                setting = f"kernel={name};size={size};share={share:g};seed={seed}"
                if floor is not None:
                    rows.append(("floor", setting, "floor", floor))
                rows.append(("floor", setting, "attained", attained))
    return rows


def _attained_loss(
    kernel: Kernel, size: int, points: int, positives: int, steps: int, learning_rate: float, seed: int
) -> float:
    """Return the loss of free embeddings, without an encoder, after Adam on the loss over all their pairs.

    Positives start together and away from the negatives, as in the arrangement that the floor rests on. From a common cloud the
    Gaussian kernel tends to end in a local minimum with the positives in the middle.
    """
    signs = one_vs_rest((torch.arange(points) < positives).long(), 1).double()
    target = target_matrix(signs, signs, "zero")
    # At this spread the Gaussian similarity of two negatives is about 0, as is the cosine.
    z = torch.randn(1, points, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    z *= np.sqrt(np.log(2) / 2)
    z[:, :positives] *= 0.1
    z[:, :positives, 0] += 1.5 * np.sqrt(size)
    z.requires_grad_()
    optimiser = torch.optim.Adam([z], lr=learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        alignment_loss(kernel(z, z), target).sum().backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return float(alignment_loss(kernel(z, z), target))


def _two_gaussians(
    generator: np.random.Generator, samples: int, share: float, distance: float, size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return samples (N, size) and their classes (N,)."""
    y = (np.arange(samples) < round(share * samples)).astype(np.int64)
    x = generator.standard_normal((samples, size))
    x[:, 0] += distance * (y - 0.5)
    return x, y


def _derivation(means: ParzenMeans) -> Tensor:
    """Return (N+/N) sum over positives of S_n - (N-/N) sum over negatives of S_n, divided by N, shape (1, P)."""
    p = means.share
    return p**2 * (2 * means.log_positive.exp() - 1) - (1 - p) ** 2 * (2 * means.log_negative.exp() - 1)


def _normalised(matrix: Tensor) -> Tensor:
    return matrix / matrix.norm(dim=(-2, -1), keepdim=True)
