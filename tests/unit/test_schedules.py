"""Time and memory: counts are those of the algorithms, every schedule is timed, and a peak is that of its own process."""

from functools import partial

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from clailearn.encoders import ConditionedHead, Encoder
from replication.experiments import algorithms_as_printed as printed
from replication.experiments import schedules
from replication.experiments.schedules import Case
from replication.report.claims.computed import passes_as_printed
from replication.runs.settings import merge
from support.repository import REAL

CPU = torch.device("cpu")
BATCHES, BATCH, CLASSES = 5, 4, 3


def test_counted_passes_are_those_that_algorithm_3_makes() -> None:
    trunk, counted = nn.Linear(3, 4), []

    def count(_: nn.Module, __: object, features: Tensor) -> None:
        """Count a batch that goes forward, and twice one that gradients come back for."""
        counted.append(len(features))
        features.register_hook(lambda gradient: counted.append(2 * len(gradient)))

    trunk.register_forward_hook(count)
    encoder = Encoder(trunk, ConditionedHead(4, CLASSES, 2))
    x, y = torch.randn(BATCHES * BATCH, 3), torch.arange(BATCHES * BATCH) % CLASSES
    printed.learn_multiclass(
        lambda b, k: encoder(b, k)[0], list(encoder.parameters()), lambda: printed.cosine, printed.target_product, x, y,
        CLASSES, BATCH, 1, 1e-3, torch.randperm,
    )  # fmt: skip
    sizes = (pd.Series([size]) for size in (BATCHES, CLASSES))
    assert passes_as_printed(*sizes).item() == sum(counted) / BATCH


def test_every_schedule_is_timed_and_the_memory_of_algorithm_3_is_measured() -> None:
    if torch.cuda.is_initialized():
        pytest.skip("memory is measured in forks, which what an earlier test started on the GPU does not survive")
    training = {"batch_size": 4, "precision": "float32"}
    settings = merge(REAL, {"encoder": {"blocks": [1, 1]}, "training": training, "embedding_size": 4})
    joint, growing = Case("joint", "joint", 2, 3, 4), Case("batches", "printed", 2, 2, 4)
    sizes = schedules.Sizes(1, 0.01, joint=joint, growing=growing, batches=(2,), classes=(3,))
    rows = schedules.measure(settings, CPU, sizes)
    found = {name: rows[rows["quantity"] == name] for name in ("seconds", "peak_memory_mb")}
    variants = {name: set(zip(own["comparison"], own["variant"], strict=True)) for name, own in found.items()}
    grown = {("batches", "printed"), ("classes", "printed")}
    assert variants == {"seconds": grown | {("joint", "sequential"), ("joint", "joint")}, "peak_memory_mb": grown}
    assert (found["seconds"]["value"] > 0).all()


def ones(case: Case) -> partial[Tensor]:
    return partial(torch.ones, case.batches, dtype=torch.uint8)


def test_each_peak_is_that_of_a_process_of_its_own() -> None:
    cases = [Case("", "", count, 1, 1) for count in (2**27, 2**20)]
    large, small, *again = (row[-1] for row in schedules.peaks(cases, ones, CPU, 2))
    assert large == pytest.approx(128, abs=8)
    assert small < 16
    assert again[0] == pytest.approx(large, abs=8)
