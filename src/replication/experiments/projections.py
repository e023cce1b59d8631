"""Two-dimensional views of embeddings: all conditions together (t-SNE, figure 2), and one after another (figure 1)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from clai.kernels import Kernel
from replication.models.embedding import Embedded
from replication.models.run import Run
from replication.runs.columns import COLUMNS
from replication.runs.outputs import PICTURED_MODEL

Floats = NDArray[np.floating[Any]]
TSNE_SAMPLES = 5000
"""Test samples in figure 2."""
COMPONENTS = 50
"""Principal components that t-SNE sees."""
PERPLEXITY = 30
"""The effective number of neighbours of a sample in t-SNE."""
ITERATIONS = 1000
"""Steps of t-SNE's gradient descent."""
STAGE_SAMPLES = 1500
"""Test samples in figure 1."""


def draw_samples(count: int, most: int, seed: int) -> NDArray[np.int64]:
    """Return the positions of at most `most` of `count` samples, drawn with the seed, in ascending order."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:most])


@torch.no_grad()
def kernel_coordinates(kernel: Kernel, embedded: Embedded, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the embeddings at the positions, (K, n, L), in coordinates whose distances order pairs as the kernel does."""
    return kernel.coordinates(embedded.z[:, torch.from_numpy(positions)]).double().numpy()


def tsne(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test embeddings of all conditions side by side by t-SNE (van der Maaten & Hinton 2008).

    Each drawn sample is described by its K L coordinates, reduced by PCA first. Columns x, y, label.
    """
    drawn = draw_samples(len(test.y), TSNE_SAMPLES, run.id.seed)
    coordinates = np.concatenate(kernel_coordinates(kernel, test, drawn), axis=1)
    components = min(COMPONENTS, *coordinates.shape)
    reduced = PCA(components, svd_solver="full").fit_transform(coordinates)
    view = TSNE(
        perplexity=min(PERPLEXITY, (len(reduced) - 1) / 3),
        max_iter=ITERATIONS,
        init="pca",
        random_state=run.id.seed,
        n_jobs=1,
    ).fit_transform(reduced)
    return pd.DataFrame({"x": view[:, 0], "y": view[:, 1], "label": test.y.numpy()[drawn]})


def stages(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test samples to their first two principal components, before and after the encoder.

    Stage 0 shows the samples as the encoder receives them, stage k the embeddings phi(., k) of condition k, from 1. Columns
    stage, x, y, label.
    """
    drawn = draw_samples(len(test.y), STAGE_SAMPLES, run.id.seed)
    before = run.data["x_test"].reshape(len(test.y), -1)[drawn].astype(np.float64)
    parts = [before, *kernel_coordinates(kernel, test, drawn)]
    views = [PCA(2, svd_solver="full").fit_transform(part) for part in parts]
    label = test.y.numpy()[drawn]
    frames = [pd.DataFrame({"stage": k, "x": v[:, 0], "y": v[:, 1], "label": label}) for k, v in enumerate(views)]
    return pd.concat(frames, ignore_index=True)


def project(models: Iterable[tuple[Run, Kernel, Embedded]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `tsne.csv.gz` of all models, given by run, kernel and test embeddings, and `stages.csv.gz` of `PICTURED_MODEL`."""
    columns = COLUMNS["tsne.csv.gz"]
    views, conditioning = [], pd.DataFrame(columns=COLUMNS["stages.csv.gz"])
    for run, kernel, test in models:
        views.append(tsne(run, kernel, test).assign(model=run.model)[columns])
        if run.model == PICTURED_MODEL:
            conditioning = stages(run, kernel, test)
    return pd.concat(views) if views else pd.DataFrame(columns=columns), conditioning
