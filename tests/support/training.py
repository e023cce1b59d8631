"""Settings of a small training, for tests to change, kernels as printed, and small data."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from clailearn.encoders import MLP, ConditionedHead, Encoder
from clailearn.kernels import Kernel
from clailearn.trainer import Samples, TrainingSettings
from replication.datasets.prepared import Prepared
from replication.experiments import algorithms_as_printed as printed

SETTINGS = TrainingSettings(
    epochs=4, batch_size=8, optimiser="adamw", learning_rate=1e-2, momentum=0.0, weight_decay=0.0,
    learning_rate_schedule="one_cycle", warmup=0.25, precision="float32", schedule="joint", references=1,
    reference_reduction="mean", pair_weighting="none", samples_per_class=None, target="zero", seed=0,
)  # fmt: skip


class Recorded(Samples):
    """Samples that keep the batches drawn from them."""

    def __init__(self, x: Tensor, labels: Tensor) -> None:
        super().__init__(x, labels)
        self.batches: list[tuple[Tensor, Tensor]] = []

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        self.batches.append(super().batch(items, generator))
        return self.batches[-1]


def samples() -> Samples:
    """Return 64 samples of three classes, which the signs of two inputs decide."""
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    return Samples(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long())


def small_encoder(dropout: float = 0.2) -> Encoder:
    """Return an encoder of them, always with the same weights."""
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Dropout(dropout), MLP(3, 8, 1))
    return Encoder(trunk, ConditionedHead(8, 3, 4))


def printed_similarity(kernel: Kernel) -> printed.Similarity:
    """Return the printed form of a kernel, on its parameters as they are now."""
    if kernel.name == "cosine":
        return printed.cosine
    return printed.mahalanobis(kernel.root.tril().T @ kernel.root.tril())


def pictures(train: int = 96, val: int = 30, test: int = 60) -> Prepared:
    """Return pictures of three classes in turn, told apart by the channel that is bright."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", train), ("val", val), ("test", test)):
        y = np.arange(n) % 3
        x = rng.integers(0, 100, (n, 10, 10, 3))
        x[np.arange(n), :, :, y] += 100
        arrays |= {f"x_{split}": x.astype(np.uint8), f"y_{split}": y}
    norm = {"mean": [80.0] * 3, "sd": [50.0] * 3}
    info = {"kind": "images", "classes": ["a", "b", "c"], "normalisation": {"train": norm, "test": norm}}
    return Prepared(info, arrays)


def rows() -> Prepared:
    """Return rows of four features of three classes in turn, which shift one feature each."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", 240), ("val", 90), ("test", 90)):
        y = np.arange(n) % 3
        arrays |= {f"x_{split}": (rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32), f"y_{split}": y}
    norm = {"train": {"mean": [0.0] * 4, "sd": [1.0] * 4}}
    return Prepared({"kind": "features", "classes": ["a", "b", "c"], "normalisation": norm}, arrays)


def recordings(stays: int = 40) -> Prepared:
    """Return stays of twelve hours; in every other one the event of the last three shows in the first variable."""
    rng = np.random.default_rng(0)
    stay, hour = np.repeat(np.arange(stays), 12), np.tile(np.arange(12), stays)
    y = ((stay % 2 == 0) & (hour >= 9)).astype(np.int64)
    x = rng.normal(size=(len(y), 2)).astype(np.float32)
    x[:, 0] += 3 * y
    rows = {"x": x, "y": y, "groups": stay, "patients": stay, "hours": hour.astype(np.float32), "folds": stay % 3 - 1}
    info = {"kind": "recordings", "classes": ["no", "yes"], "variables": ["a", "b"]}
    return Prepared(info, {f"{name}_all": values for name, values in rows.items()})
