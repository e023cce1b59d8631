"""Time and memory: counts are those of the algorithms, every schedule is timed, and a peak is that of its own process."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from clailearn import algorithms_as_printed as printed
from clailearn.encoders import ConditionedHead, Encoder
from clailearn.kernels import Cosine
from clailearn.learning import collaborative_learning
from clailearn.trainer import Samples
from replication.experiments import schedules
from replication.experiments.schedules import SCHEDULES, Case, Measurement, Shape, trunk_passes
from replication.models.run import training_settings
from replication.report.claims.computed import passes_as_printed
from replication.runs.run import COLUMNS
from replication.runs.settings import merge
from support.repository import REAL

CPU = torch.device("cpu")
BATCHES, BATCH, CLASSES = 5, 4, 3
SIZES = schedules.MINIATURE._replace(
    repetitions=1, joint=Shape(2, 4, 3), growing=Shape(2, 4, 2), batches=(2,), classes=(3,)
)


@pytest.fixture(scope="module")
def measurement() -> Measurement:
    training = {"batch_size": 4, "precision": "float32"}
    own = {"encoder": {"blocks": [1, 1]}, "training": training, "embedding_size": 4}
    return Measurement(merge(REAL, own), CPU, SIZES)


class Counting(nn.Module):
    """A trunk that counts the samples that go through it forward, and those that gradients come back for."""

    features = 4

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.forward_samples, self.backward_samples = nn.Linear(3, 4), 0, 0

    def forward(self, x: Tensor) -> Tensor:
        self.forward_samples += len(x)
        features = self.layer(x)
        features.register_hook(self._count)
        return features

    def _count(self, gradient: Tensor) -> None:
        self.backward_samples += len(gradient)


@pytest.mark.parametrize("variant", SCHEDULES)
def test_counts_are_the_passes_that_each_schedule_makes(measurement: Measurement, variant: str) -> None:
    trunk = Counting()
    encoder = Encoder(trunk, ConditionedHead(4, CLASSES, 2))
    x, y = torch.randn(BATCHES * BATCH, 3), torch.arange(BATCHES * BATCH) % CLASSES
    given = replace(
        training_settings(measurement.settings, CLASSES, 0), epochs=1, batch_size=BATCH,
        schedule="sequential" if variant == "sequential" else "joint", references="all",
    )  # fmt: skip
    if variant == "printed":
        theta: list[Tensor] = list(encoder.parameters())
        printed.learn_multiclass(
            lambda b, k: encoder(b, k)[0], theta, lambda: printed.cosine, printed.target_product, x, y,
            CLASSES, BATCH, 1, 1e-3, torch.randperm,
        )  # fmt: skip
    else:
        collaborative_learning(encoder, Cosine(), Samples(x, y), CLASSES, given, dict, None)
    counted = trunk.forward_samples / BATCH, trunk.backward_samples / BATCH
    assert trunk_passes(variant, BATCHES, CLASSES) == counted
    if variant == "printed":
        sizes = (pd.Series([size]) for size in (BATCHES, CLASSES))
        assert passes_as_printed(*sizes).item() == counted[0] + 2 * counted[1]


@pytest.mark.parametrize(
    ("part", "variants"),
    [
        ("schedules", {("joint", "sequential"), ("joint", "joint")}),
        ("growth", {("batches", "printed"), ("classes", "printed")}),
    ],
)
def test_each_part_times_its_schedules(measurement: Measurement, part: str, variants: set[tuple[str, str]]) -> None:
    if torch.cuda.is_initialized():
        pytest.skip("memory is measured in forks, which what an earlier test started on the GPU does not survive")
    rows = pd.DataFrame(getattr(measurement, part)(), columns=COLUMNS["benchmark.csv"])
    for quantity in ("seconds", "predicted"):
        found = rows[rows["quantity"] == quantity]
        assert (found["value"] > 0).all()
        assert set(zip(found["comparison"], found["variant"], strict=True)) == variants


def test_each_peak_is_that_of_a_process_of_its_own() -> None:
    shape = Shape(BATCHES, BATCH, CLASSES)
    cases = [Case("", "", shape, partial(partial, torch.ones, count, dtype=torch.uint8)) for count in (2**27, 2**20)]
    large, small = (row[-1] for row in schedules.peaks(cases, CPU))
    assert large == pytest.approx(128, abs=8)
    assert small < 16
