"""Time and memory: variants do the same work, counts are those of the algorithms, and summaries follow from the rows."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from clailearn import algorithms_as_printed as printed
from clailearn.batches import Vectors
from clailearn.encoders import ConditionedHead, Encoder
from clailearn.kernels import Cosine
from clailearn.learning import collaborative_learning
from replication.experiments import complexity
from replication.experiments.complexity import LOSSES, SCHEDULES, Case, Measurement, Shape
from replication.metrics.passes import trunk_passes
from replication.models.run import training_settings
from replication.runs.columns import COLUMNS
from replication.runs.settings import merge
from support.repository import REAL

CPU = torch.device("cpu")
BATCHES, BATCH, CLASSES = 5, 4, 3
SIZES = complexity.MINIATURE._replace(
    repetitions=1, exact=Shape(2, 4, 1), joint=Shape(2, 4, 3), growing=Shape(2, 4, 2), batches=(2,), classes=(3,),
    trunks=(("resnet2d", 2), ("convnet", 2)), pixels=9, images=16, labels=3,
    vote=(2000, 5000), sampling=(20, 1000), sampled=(40,),
)  # fmt: skip


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
        schedule="sequential" if variant == "sequential" else "joint", references=1 if variant == "linear" else "all",
    )  # fmt: skip
    if variant == "printed":
        theta: list[Tensor] = list(encoder.parameters())
        printed.learn_multiclass(
            lambda b, k: encoder(b, k)[0], theta, lambda: printed.cosine, printed.target_product, x, y,
            CLASSES, BATCH, 1, 1e-3, torch.randperm,
        )  # fmt: skip
    else:
        collaborative_learning(encoder, Cosine(), Vectors(x, y), CLASSES, given, dict, None)
    counted = trunk.forward_samples / BATCH, trunk.backward_samples / BATCH
    assert trunk_passes(variant, BATCHES, CLASSES) == counted


@pytest.mark.parametrize(
    ("part", "variants"),
    [
        ("schedules", {"exact": SCHEDULES[:2], "joint": SCHEDULES[1:3]}),
        ("growth", {"batches": SCHEDULES, "classes": SCHEDULES}),
        ("epochs", {"epoch": LOSSES}),
        ("votes", {"inference": ("printed", "streamed")}),
    ],
)
def test_each_part_times_its_variants_which_give_equal_results(
    measurement: Measurement, part: str, variants: dict[str, tuple[str, ...]]
) -> None:
    if torch.cuda.is_initialized():
        pytest.skip(
            "memory is measured in forks, and what a test before has started on the GPU does not survive a fork"
        )
    rows = pd.DataFrame(getattr(measurement, part)(), columns=COLUMNS["benchmark.csv"])
    seconds = rows[rows["quantity"] == "seconds"]
    assert (seconds["value"] > 0).all()
    assert {name: set(own) for name, own in seconds.groupby("comparison")["variant"]} == {
        name: set(own) for name, own in variants.items()
    }
    differences = rows[rows["quantity"] == "difference"]["value"]
    assert len(differences) == (2 if part in ("schedules", "votes") else 0)
    assert (differences < 1e-9).all()
    if part == "votes":  # S has 40 MB.
        peaks = rows[rows["quantity"] == "peak_memory_mb"]
        memory = peaks.pivot_table(index="setting", columns="variant", values="value")
        assert (memory["printed"] - memory["streamed"] > 30).all()


def test_votes_of_sampled_references_state_their_error(measurement: Measurement) -> None:
    rows = pd.DataFrame(measurement.sampling(), columns=COLUMNS["benchmark.csv"])
    found = rows.pivot_table(index=["variant", "setting"], columns="quantity", values="value")
    assert len(found) == 6
    assert (found["stated"] / found["error"]).between(0.5, 2).all()


def test_each_peak_is_that_of_a_process_of_its_own() -> None:
    cases = [Case("", "", "", partial(partial, torch.ones, count, dtype=torch.uint8)) for count in (2**27, 2**20)]
    large, small = (row[-1] for row in complexity.peaks(cases, CPU, added=True))
    assert large == pytest.approx(128, abs=8)
    assert small < 16
