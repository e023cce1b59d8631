"""Numerical checks of the mathematics: of claims 9 and 10, of the loss floors of figure 3 and of docs/theory.md; no data needed.

Each check returns tidy rows (check, setting, quantity, value). A setting is `name=value` pairs joined by semicolons.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity
from torch import Tensor

from clai.alignment import (
    Target,
    TargetMatrix,
    alignment_loss,
    alignment_scores,
    one_vs_rest,
    target_matrix,
)
from clai.inference import RULES, ParzenMeans, decide, parzen_means, predict_labels
from clai.kernels import Kernel, MahalanobisGaussian, build

Row = tuple[str, str, str, float]

SEEDS = (0, 1, 2)
CHECKS: dict[str, dict[str, Any]] = {
    "parzen": {
        "shares": [0.02, 0.1, 0.3, 0.5],
        "bandwidths": [0.5, 2.0],
        "distance": 2.0,
        "size": 2,
        "samples": 1000,
    },
    "bound": {"sizes": [8, 64], "draws": 200},
    "floor": {"sizes": [8, 32], "shares": [0.1, 0.2, 0.5], "points": 300, "steps": 300, "learning_rate": 0.1},
    "ideal": {"shares": [0.02, 0.1, 0.5], "points": 300},
    "collapse": {"shares": [0.02, 0.1, 0.5], "points": 300, "step": 0.001},
}
"""The arguments of each check, under its name."""
MINIATURE_SEEDS = (0,)
MINIATURE_CHECKS = CHECKS | {"floor": CHECKS["floor"] | {"sizes": [8], "points": 150}}


def check_all(checks: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> pd.DataFrame:
    """Run all checks with every seed.

    Args:
        checks: as `CHECKS`. `ideal` and `collapse` draw nothing and run once.
        seeds: of the random draws.

    Returns:
        Columns check, setting, quantity, value.
    """
    rows: list[Row] = []
    for seed in seeds:
        rows += check_parzen(**checks["parzen"], seed=seed)
        rows += check_bound(**checks["bound"], seed=seed)
        rows += check_floor(**checks["floor"], seed=seed)
    rows += check_ideal(**checks["ideal"])
    rows += check_collapse(**checks["collapse"])
    return pd.DataFrame(rows, columns=["check", "setting", "quantity", "value"])


def check_parzen(
    *, shares: Sequence[float], bandwidths: Sequence[float], distance: float, size: int, samples: int, seed: int
) -> list[Row]:
    """Compare the decision rules with the Parzen-window estimate of the Bayes classifier (claim 10).

    The data are two unit-variance Gaussians in `size` dimensions, their means `distance` apart. The kernel is the Gaussian one on
    the data themselves, exp(-|x - x'|^2 / (2 bandwidth^2)). The rule `derivation` is the last line of the paper's derivation
    (line 389), which multiplies class shares by *sums* of similarities; the other rules are those of `clai.inference`.

    Args:
        shares: class shares p of the positive class.
        bandwidths: of the kernel, in standard deviations of the data.
        distance: between the class means, in standard deviations.
        size: dimensions.
        samples: number of references, and of test samples.
        seed: of the data.

    Returns:
        For each share, bandwidth and rule:
            agreement_kde: share decided as by scikit-learn's KernelDensity with class priors.
        For each share and bandwidth:
            identity_error: max |S y / N - (2 [p g+ - (1 - p) g-] + 1 - 2p)|.
            f_far: f of the rule `printed` far from all data, where it should be 1 - 2p.
            band_error: share of test samples that contradict docs/theory.md: `printed` and `parzen` should decide differently
                where p g+ - (1 - p) g- lies between 0 and p - 1/2, and nowhere else.
    """
    rows: list[Row] = []
    for share, bandwidth in itertools.product(shares, bandwidths):
        generator = np.random.default_rng(seed)
        reference, y = _two_gaussians(generator, samples, share, distance, size)
        test, _ = _two_gaussians(generator, samples, share, distance, size)
        kernel = MahalanobisGaussian(size, "identity").double()
        scale = 1 / np.sqrt(2 * bandwidth**2 * kernel.matrix[0, 0].item())
        z, z_test = (torch.as_tensor(x * scale).unsqueeze(0) for x in (reference, test))
        labels = torch.as_tensor(y)
        means = parzen_means(kernel, z_test, z, labels)

        exact = int(y.sum()) / samples
        densities = [KernelDensity(bandwidth=bandwidth).fit(reference[y == k]).score_samples(test) for k in (0, 1)]
        kde = densities[1] + np.log(exact) > densities[0] + np.log(1 - exact)
        decisions: dict[str, NDArray[np.int64]] = {rule: predict_labels(decide(means, rule)).numpy() for rule in RULES}
        decisions["derivation"] = predict_labels(_derivation(means)).numpy()
        for rule, predicted in decisions.items():
            setting = f"share={share:g};bandwidth={bandwidth:g};rule={rule};seed={seed}"
            rows.append(("parzen", setting, "agreement_kde", float((predicted == kde).mean())))

        direct = kernel(z_test, z) @ one_vs_rest(labels, 1).double().unsqueeze(-1) / samples
        error = (direct.squeeze(-1) - decide(means, "printed")).abs().max()
        far = decide(parzen_means(kernel, z_test[:, :1] + 1e3 * size, z, labels), "printed")
        setting = f"share={share:g};bandwidth={bandwidth:g};seed={seed}"
        rows.append(("parzen", setting, "identity_error", float(error)))
        rows.append(("parzen", setting, "f_far", float(far)))
        p = means.share
        margin = (p * means.log_positive.exp() - (1 - p) * means.log_negative.exp()).numpy()[0]
        between = (margin > min(0, exact - 0.5)) & (margin <= max(0, exact - 0.5))
        differs = decisions["printed"] != decisions["parzen"]
        rows.append(("parzen", setting, "band_error", float((between != differs).mean())))
    return rows


def alignment(similarity: Tensor, target: Tensor) -> Tensor:
    """Return the kernel alignment A(S, T) = <S, T> / (||S|| ||T||) over the last two dimensions (equation 5, line 142)."""
    inner = (similarity * target).sum((-2, -1))
    return inner / (similarity.norm(dim=(-2, -1)) * target.norm(dim=(-2, -1))).clamp_min(1e-12)


def check_bound(*, sizes: Sequence[int], draws: int, seed: int) -> list[Row]:
    """Check the relation of the alignment loss to the kernel alignment A, for targets T of +-1 and S in [-1, 1] (claim 9).

    The loss is at least 1 - A^2, with equality if S is the best multiple of T.

    Args:
        sizes: batch sizes B.
        draws: number of matrices S (B, B), drawn between pure noise and T itself.
        seed: of the draws.

    Returns:
        For each B: smallest_margin of loss - (1 - A^2).
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
        rows.append(("bound", f"size={size};seed={seed}", "smallest_margin", float((loss - (1 - aligned**2)).min())))
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


def check_ideal(*, shares: Sequence[float], points: int) -> list[Row]:
    """Check f of the rule `printed` where learning has succeeded, S = T.

    Under `product` f is 1 for positives and -1 for negatives; under `zero` it is 1 and -p.

    Args:
        shares: class shares p of the positive class.
        points: number of samples; each is a reference, too.

    Returns:
        For each target and share: f_error, the largest difference from the values above.
    """
    rows: list[Row] = []
    for share in shares:
        signs, p = _signs(points, share)
        negatives: tuple[tuple[Target, float], ...] = (("product", -1.0), ("zero", -p))
        for target, negative in negatives:
            ideal, _ = target_matrix(signs, signs, target)
            f = (ideal @ signs.mT)[0, :, 0] / points
            expected = signs[0].clamp_min(negative)
            setting = f"target={target};share={share:g}"
            rows.append(("ideal", setting, "f_error", float((f - expected).abs().max())))
    return rows


def check_collapse(*, shares: Sequence[float], points: int, step: float) -> list[Row]:
    """Check what an encoder that tells nothing apart attains, and how the loss leaves the state S = 1 (docs/theory.md).

    Args:
        shares: class shares p of the positive class.
        points: number of embeddings; each is its own partner, too.
        step: distance in coordinates of the kernel, and for the cosine kernel angle in radians, by which the positives leave.

    Returns:
        For each target and share, of the constant S that suits the target (`product` 1, `masked` -1, `zero` 0):
            loss_error and, where S is not 0, alignment_error: absolute difference from the formulae of docs/theory.md;
            centred_alignment, near 1 under `masked`: it centres S times the root of the weights, which is not constant.
        For each kernel and share under `product`, of embeddings that all coincide:
            gradient: the largest partial derivative of the loss, where it should be 0.
            descent: (loss before - loss after the step) / (step^2 p (1 - p)), which should be near 16 (Gaussian), 4 (cosine).
    """
    rows: list[Row] = []
    constants: tuple[tuple[Target, float], ...] = (("product", 1.0), ("masked", -1.0), ("zero", 0.0))
    for share in shares:
        signs, p = _signs(points, share)
        losses = {"product": 8 * p * (1 - p), "masked": 4 * p / (2 - p), "zero": p * (2 - p)}
        alignments = {"product": (1 - 2 * p) ** 2, "masked": ((2 - 3 * p) / (2 - p))}
        for target, constant in constants:
            matrix = target_matrix(signs, signs, target)
            similarity = torch.full_like(matrix.values, constant)
            setting = f"target={target};share={share:g}"
            loss = float(alignment_loss(similarity, matrix))
            rows.append(("collapse", setting, "loss_error", abs(loss - losses[target])))
            if constant:
                aligned, centred = (float(score) for score in alignment_scores(similarity, matrix))
                rows.append(("collapse", setting, "alignment_error", abs(aligned - alignments[target])))
                rows.append(("collapse", setting, "centred_alignment", centred))
        for name in ("cosine", "gaussian"):
            gradient, descent = _leave_collapse(build(name, 2, "identity").double(), signs, step)
            setting = f"kernel={name};share={share:g}"
            rows.append(("collapse", setting, "gradient", gradient))
            rows.append(("collapse", setting, "descent", descent / (p * (1 - p))))
    return rows


def _signs(points: int, share: float) -> tuple[Tensor, float]:
    """Return signs (1, points), positives first, and the exact share of positives."""
    positives = round(share * points)
    return one_vs_rest((torch.arange(points) < positives).long(), 1).double(), positives / points


def _leave_collapse(kernel: Kernel, signs: Tensor, step: float) -> tuple[float, float]:
    """Return the largest partial derivative of the loss where all embeddings coincide, and its fall by `step`, over step^2."""
    target = target_matrix(signs, signs, "product")
    z = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, signs.shape[-1], 2).clone().requires_grad_()
    loss = alignment_loss(kernel(z, z), target).sum()
    (gradient,) = torch.autograd.grad(loss, z)
    # Orthogonal to z, so that the cosine kernel sees an angle; in units of the kernel's coordinates, whose scale is isotropic.
    unit = kernel.coordinates(z)[0, 0].norm().detach()
    moved = z.detach().clone()
    moved[0, signs[0] > 0, 1] = np.tan(step) if kernel.inner_product else step / unit
    with torch.no_grad():
        after = alignment_loss(kernel(moved, moved), target).sum()
    return float(gradient.abs().max()), float(loss.detach() - after) / step**2


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
