"""Two-dimensional views of embeddings: all conditions together (t-SNE, figure 2), and one after another (figure 1)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from clai.kernels import Kernel

Floats = NDArray[np.floating[Any]]


def draw_samples(y: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Positions of at most `count` samples, a seeded choice in ascending order."""
    return np.sort(np.random.default_rng(seed).permutation(len(y))[:count])


@torch.no_grad()
def tsne(kernel: Kernel, z: Tensor, y: NDArray[np.int64], settings: Mapping[str, Any], seed: int) -> pd.DataFrame:
    """t-SNE (van der Maaten & Hinton 2008) of the embeddings of all conditions side by side.

    Args:
        z: (K, N, L); each sample is described by its K L coordinates, reduced by PCA first.
        settings: config.yaml's `tsne`: `samples`, `perplexity`, `components` (of the PCA), `iterations`.

    Returns:
        x, y, label of the drawn samples.
    """
    chosen = draw_samples(y, settings["samples"], seed)
    seen = kernel.coordinates(z[:, torch.from_numpy(chosen)]).permute(1, 0, 2).flatten(1).double().numpy()
    components = min(settings["components"], *seen.shape)
    reduced = PCA(components, svd_solver="full").fit_transform(seen)
    view = TSNE(
        perplexity=min(settings["perplexity"], (len(seen) - 1) / 3),
        max_iter=settings["iterations"],
        init="pca",
        random_state=seed,
        n_jobs=1,
    ).fit_transform(reduced)
    return pd.DataFrame({"x": view[:, 0], "y": view[:, 1], "label": y[chosen]})


@torch.no_grad()
def stages(
    kernel: Kernel, z: Tensor, before: Floats, y: NDArray[np.int64], settings: Mapping[str, Any], seed: int
) -> pd.DataFrame:
    """First two principal components before the encoder (stage 0) and of phi(., k) for each condition (stage k, from 1).

    Args:
        z: (K, N, L). before: (N, D), the samples as the encoder receives them.
        settings: config.yaml's `stages`: `samples`.

    Returns:
        stage, x, y, label of the drawn samples.
    """
    chosen = draw_samples(y, settings["samples"], seed)
    seen = kernel.coordinates(z[:, torch.from_numpy(chosen)]).double().numpy()
    views = [PCA(2, svd_solver="full").fit_transform(part) for part in [before[chosen].astype(np.float64), *seen]]
    frames = [pd.DataFrame({"stage": k, "x": v[:, 0], "y": v[:, 1], "label": y[chosen]}) for k, v in enumerate(views)]
    return pd.concat(frames, ignore_index=True)
