"""Embeddings in two dimensions: all conditions together (t-SNE, figure 2), and one after another (figure 1)."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from clailearn.kernels import Kernel
from replication.models.embedding import Embedded
from replication.models.run import Run

TSNE_SAMPLES, STAGE_SAMPLES = 5000, 1500
"""Test samples in figures 2 and 1."""
COMPONENTS = 50
"""Principal components that t-SNE sees."""
PERPLEXITY = 30
"""The effective number of neighbours of a sample in t-SNE."""
ITERATIONS = 1000
"""Steps of t-SNE's gradient descent."""


@torch.no_grad()
def _drawn(
    run: Run, kernel: Kernel, test: Embedded, most: int
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Draw at most `most` test samples; return their positions, embeddings (K, n, D) in the kernel's coordinates and labels."""
    positions = np.sort(np.random.default_rng(run.id.seed).permutation(len(test.y))[:most])
    coordinates = kernel.coordinates(test.z[:, torch.from_numpy(positions)]).double().numpy()
    return positions, coordinates, test.y.numpy()[positions]


def tsne(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test embeddings, side by side, by PCA and t-SNE (van der Maaten & Hinton 2008): columns model, x, y, label."""
    _, parts, label = _drawn(run, kernel, test, TSNE_SAMPLES)
    coordinates = np.concatenate(parts, axis=1)
    reduced = PCA(min(COMPONENTS, *coordinates.shape), svd_solver="full").fit_transform(coordinates)
    projected = TSNE(
        perplexity=min(PERPLEXITY, (len(reduced) - 1) / 3),
        max_iter=ITERATIONS,
        init="pca",
        random_state=run.id.seed,
        n_jobs=1,
    ).fit_transform(reduced)
    return pd.DataFrame({"model": run.model, "x": projected[:, 0], "y": projected[:, 1], "label": label})


def stages(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test samples to their first two principal components, before and after the encoder.

    Stage 0 shows the samples as the encoder receives them, stage k the embeddings phi(., k) of condition k, from 1. Columns
    stage, x, y, label.
    """
    drawn, after, label = _drawn(run, kernel, test, STAGE_SAMPLES)
    before = run.data["x_test"].reshape(len(test.y), -1)[drawn].astype(np.float64)
    projected = [PCA(2, svd_solver="full").fit_transform(part) for part in (before, *after)]
    frames = [pd.DataFrame({"stage": k, "x": p[:, 0], "y": p[:, 1], "label": label}) for k, p in enumerate(projected)]
    return pd.concat(frames, ignore_index=True)
