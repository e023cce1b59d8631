"""Claim 10 on learned embeddings: the printed rule against the Parzen-window Bayes rule, with the class shares of the data."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity
from torch import Tensor

from clai.alignment import one_vs_rest
from clai.inference import decide, log_posteriors, predict_labels, sample_references
from clai.kernels import Kernel
from replication.models.embedding import Embedded, similarity_means
from replication.models.run import Run

AGREEMENT_COLUMNS = ["share", "quantity", "value"]
SAMPLES = 200
"""Test samples that scikit-learn's density estimate decides as well."""
# exp(-d^2 / (2 h^2)) is the Parzen form exp(-d^2) of the kernel's coordinates at this width.
_WIDTH = float(np.sqrt(0.5))


def measure_agreement(run: Run, kernel: Kernel, embedded: Mapping[str, Embedded]) -> pd.DataFrame:
    """Return how often the rules `printed` and `parzen` decide alike on the test samples of a run of CLaI-M.

    Args:
        run: its settings hold `inference`.
        kernel: the learned Gaussian kernel, whose Parzen form is a density up to a constant.
        embedded: the training samples are references, as in the run's evaluation.

    Returns:
        `AGREEMENT_COLUMNS`: for the class share of each condition, conditions with equal shares together,
            agreement: share of test samples that f > 0 of both rules decides alike;
            called_printed, called_parzen: share of test samples called positive;
            kde_error: share of some test samples whose decision by `parzen` differs from that of scikit-learn's KernelDensity.
        For many classes, with an empty share, class_agreement: share of test samples that get the same class.
    """
    test, references = embedded["test"], embedded["train"]
    means = similarity_means(run, kernel, test, references)
    printed, parzen = (decide(means, rule) > 0 for rule in ("printed", "parzen"))
    checked = np.random.default_rng(run.id.seed).permutation(len(test.y))[:SAMPLES]
    rows: list[tuple[float, str, float]] = []
    for k, share in enumerate(means.share[:, 0].tolist()):
        density = _density_rule(run, kernel, embedded, k, share, checked)
        rows += [
            (share, "agreement", float((printed[k] == parzen[k]).double().mean())),
            (share, "called_printed", float(printed[k].double().mean())),
            (share, "called_parzen", float(parzen[k].double().mean())),
            (share, "kde_error", float((parzen[k][torch.from_numpy(checked)].numpy() != density).mean())),
        ]
    if len(means.share) > 1:
        same = predict_labels(decide(means, "printed")) == predict_labels(log_posteriors(means))
        rows.append((float("nan"), "class_agreement", float(same.double().mean())))
    return (
        pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)
        .groupby(["share", "quantity"], as_index=False, dropna=False, sort=False)
        .mean()
    )


@torch.no_grad()
def _density_rule(
    run: Run,
    kernel: Kernel,
    embedded: Mapping[str, Embedded],
    condition: int,
    share: float,
    positions: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return the decisions of the Bayes rule by KernelDensity for the test samples at the positions.

    The density at a sample with a mirrored embedding is the mean over both, as in `similarity_means`.
    """
    references, test = embedded["train"], embedded["test"]
    number, items, weight = run.settings["inference"]["references"], slice(None), torch.ones(len(references.y))
    if number != "all" and number < len(references.y):
        sample = sample_references(references.y, number, run.id.seed)
        items = sample.items  # type: ignore[assignment]
        drawn = references.y[sample.items]
        weight = (sample.population / torch.bincount(drawn))[drawn]
    # Rounding in float32 would decide samples on the boundary.
    x = _coordinates(kernel, references.z[condition][items])
    views = [_coordinates(kernel, z[condition][positions]) for z in (test.z, test.z_mirrored) if z is not None]
    positive = one_vs_rest(references.y[items], run.conditions)[condition] > 0
    densities = [
        KernelDensity(bandwidth=_WIDTH).fit(x[side.numpy()], sample_weight=weight[side].numpy())
        for side in (positive, ~positive)
    ]
    logs = [np.logaddexp.reduce([density.score_samples(view) for view in views]) for density in densities]
    return np.asarray(logs[0] + np.log(share) > logs[1] + np.log1p(-share))


def _coordinates(kernel: Kernel, z: Tensor) -> NDArray[np.float64]:
    return kernel.coordinates(z).double().numpy()
