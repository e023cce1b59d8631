"""Time prediction from the same embeddings: the streamed vote, and classifiers that a user of scikit-learn would take."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from torch import Tensor

from clai.inference import predict_labels
from clai.kernels import build
from replication.benchmark.inference import random_embeddings, vote_streamed
from replication.benchmark.timing import Row, time_in_turn


def measure_classifiers(
    *, test: int, references: int, classes: int, repetitions: int, settings: Mapping[str, Any], device: torch.device
) -> list[Row]:
    """Time the predictions of CLaI's vote with either kernel, of k nearest neighbours and of a support vector machine.

    All get the same embeddings on the device of training; those of all conditions side by side for scikit-learn, which computes
    on the CPU, as `CLaIClassifier.transform` gives them. Its classifiers have their default parameters and are fitted before.

    Args:
        test, references: numbers of samples; the classifiers are fitted on the references.
    """
    size = settings["embedding_size"]
    z, z_reference, labels = random_embeddings(test, references, classes, size, torch.float32, device)
    fitted = [
        classifier.fit(_side_by_side(z_reference), labels.cpu().numpy())
        for classifier in (KNeighborsClassifier(), SVC())
    ]
    x = _side_by_side(z)

    def vote(family: str) -> Callable[[], object]:
        kernel = build(family, size, settings["kernel"]["metric"]).to(device)
        return lambda: predict_labels(vote_streamed(kernel, z, z_reference, labels))

    runs = {"clai-c": vote("cosine"), "clai-m": vote("gaussian")}
    runs |= {name: partial(model.predict, x) for name, model in zip(("k-neighbours", "svm"), fitted, strict=True)}
    setting = f"P={test};R={references};C={classes}"
    preparations = {variant: (setting, lambda run=run: run) for variant, run in runs.items()}
    with threadpool_limits(torch.get_num_threads()):
        return time_in_turn("classifiers", preparations, repetitions, device)


def _side_by_side(z: Tensor) -> np.ndarray:
    """Return embeddings (K, N, L) as an array (N, K L)."""
    return z.transpose(0, 1).flatten(1).cpu().numpy()
