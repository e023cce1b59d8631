"""Numerical checks of the mathematics of claims 9 and 10; no data needed.

Each check returns rows with columns of `theory.csv`; a column that a check does not set is empty.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity
from torch import Tensor

from clailearn.alignment import alignment_loss, alignment_scores
from clailearn.inference import RULES, class_scores, decide, parzen_means
from clailearn.kernels import Kernel, MahalanobisGaussian
from replication.runs.run import COLUMNS

Row = dict[str, object]

SHARES, BANDWIDTHS = (0.02, 0.1, 0.3, 0.5), (0.5, 2.0)
"""Class shares p of the positive class, and bandwidths of the kernel in standard deviations of the data."""
DISTANCE, SIZE, SAMPLES = 2.0, 2, 1000
"""Between the class means, in standard deviations; dimensions; number of references, and of test samples."""
BATCHES, DRAWS = (8, 64), 200
"""Sizes of similarity matrices, and their number."""


def check_all(seeds: Sequence[int]) -> pd.DataFrame:
    """Run both checks with every seed of the random draws; columns of `theory.csv`."""
    rows = [row for seed in seeds for check in (check_parzen, check_bound) for row in check(seed)]
    return pd.DataFrame(rows, columns=COLUMNS["theory.csv"]).astype({"size": "Int64"})


def simulate(share: float, bandwidth: float, seed: int) -> tuple[Kernel, Tensor, Tensor, Tensor, NDArray[np.bool_]]:
    """Draw references and test samples of two unit-variance Gaussians, `DISTANCE` apart, as many positive ones as the share says.

    Returns the Gaussian kernel on the data themselves, exp(-|x - x'|^2 / (2 bandwidth^2)); its inputs (1, N, SIZE) for
    references; the labels (N,) of these; its inputs for test samples; decisions (N,) for them by KernelDensity with class priors.
    """
    generator = np.random.default_rng(seed)
    y = (np.arange(SAMPLES) < round(share * SAMPLES)).astype(np.int64)
    reference, test = (generator.standard_normal((SAMPLES, SIZE)) for _ in range(2))
    for x in (reference, test):
        x[:, 0] += DISTANCE * (y - 0.5)
    kernel = MahalanobisGaussian(SIZE, "identity").double()
    scale = 1 / np.sqrt(2 * bandwidth**2 * kernel.matrix[0, 0].item())
    z, z_test = (torch.as_tensor(x * scale).unsqueeze(0) for x in (reference, test))
    exact = int(y.sum()) / SAMPLES
    densities = [KernelDensity(bandwidth=bandwidth).fit(reference[y == k]).score_samples(test) for k in (0, 1)]
    kde = densities[1] + np.log(exact) > densities[0] + np.log(1 - exact)
    return kernel, z, torch.as_tensor(y), z_test, kde


def check_parzen(seed: int) -> list[Row]:
    """Compare the decision rules with the Parzen-window estimate of the Bayes classifier (claim 10).

    The rule `derivation` is the last line of the paper's derivation (equation 14), which multiplies class shares by *sums* of
    similarities, here divided by N. agreement_kde is the share of test samples decided as by scikit-learn's KernelDensity.
    """
    rows: list[Row] = []
    for share, bandwidth in itertools.product(SHARES, BANDWIDTHS):
        kernel, z, labels, z_test, kde = simulate(share, bandwidth, seed)
        means = parzen_means(kernel, z_test, z, labels)
        p, positive, negative = means.share, means.log_positive.exp(), means.log_negative.exp()
        decisions: dict[str, Tensor] = {rule: decide(means, rule) for rule in RULES}
        decisions["derivation"] = p**2 * (2 * positive - 1) - (1 - p) ** 2 * (2 * negative - 1)
        for rule, f in decisions.items():
            agreement = float((class_scores(f).argmax(1).numpy() == kde).mean())
            drawn = {"check": "parzen", "share": share, "bandwidth": bandwidth, "rule": rule, "seed": seed}
            rows.append({**drawn, "quantity": "agreement_kde", "value": agreement})
    return rows


def check_bound(seed: int) -> list[Row]:
    """Check that the alignment loss is at least 1 - A^2, for targets T of +-1 and S (B, B) between noise and T (claim 9)."""
    rows: list[Row] = []
    for size in BATCHES:
        generator = torch.Generator().manual_seed(seed)
        options = {"generator": generator, "dtype": torch.float64}
        anchor, reference = (torch.rand(DRAWS, size, **options).sub(0.5).sign() for _ in range(2))  # type: ignore[call-overload]
        target = anchor.unsqueeze(-1) * reference.unsqueeze(-2)
        mix, scale = torch.rand(2, DRAWS, 1, 1, **options)  # type: ignore[call-overload]
        noise = torch.rand(DRAWS, size, size, **options) * 2 - 1  # type: ignore[call-overload]
        similarity = scale * (mix * target + (1 - mix) * noise)
        loss, aligned = alignment_loss(similarity, target), alignment_scores(similarity, target)[0]
        smallest = float((loss - (1 - aligned**2)).min())
        rows.append({"check": "bound", "size": size, "seed": seed, "quantity": "smallest_margin", "value": smallest})
    return rows
