"""Measure time and memory of training schedules on random images.

The schedules of a comparison run in turn within each repetition, in an order that rotates. So a ratio compares times of the same
repetition, and a machine that slows down does so for all schedules. Rows have the columns of `benchmark.csv`
(docs/architecture.md). Peak memory (MiB) is what an epoch adds to model and data: on CUDA of the device; on the CPU of a process
that does nothing else, on one thread.
"""

import importlib
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import pandas as pd
import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from clailearn import algorithms_as_printed as printed
from clailearn.encoders import move
from clailearn.kernels import MahalanobisGaussian
from clailearn.learning import collaborative_learning
from clailearn.trainer import Samples, precision_context
from replication.models.clai import build_clai
from replication.models.run import training_settings
from replication.runs.run import COLUMNS, peak_gpu_memory, peak_memory, use_threads

Row = tuple[str, str, int, int, int, int, str, float]
SCHEDULES = ("printed", "sequential", "joint")
"""Algorithm 3; its gradient at less cost; all classes in one pass."""
CHANNELS = 3


class Shape(NamedTuple):
    """The sizes of an epoch: M batches of B samples, C classes."""

    batches: int
    batch_size: int
    classes: int


class Case(NamedTuple):
    """A computation to measure. `prepare` builds what it starts from, and returns it."""

    comparison: str
    variant: str
    shape: Shape
    prepare: Callable[[], Callable[[], Any]]

    def row(self, repetition: int, quantity: str, value: float) -> Row:
        """Return a row of `benchmark.csv`."""
        batches, batch_size, classes = self.shape
        return self.comparison, self.variant, batches, classes, batch_size, repetition, quantity, value


class Sizes(NamedTuple):
    """The sizes of all comparisons. Each is timed for `least_seconds`."""

    repetitions: int = 5
    least_seconds: float = 0.2
    joint: Shape = Shape(6, 32, 10)
    growing: Shape = Shape(4, 16, 5)
    batches: Sequence[int] = (2, 4, 8)
    classes: Sequence[int] = (2, 5, 10, 20)


MINIATURE = Sizes(
    repetitions=2, least_seconds=0.01, joint=Shape(3, 8, 4), growing=Shape(2, 8, 2), batches=(2, 4), classes=(2, 4)
)


def measure(settings: Mapping[str, Any], device: torch.device) -> pd.DataFrame:
    """Return the rows of all comparisons; sizes are small where the settings are those of the miniature."""
    measurement = Measurement(settings, device, MINIATURE if settings["miniature"] else Sizes())
    # Memory comes first: before this process has computed anything.
    return pd.DataFrame([*measurement.growth(), *measurement.schedules()], columns=COLUMNS["benchmark.csv"])


def peak(case: Case, cuda: bool) -> float:
    """Return the peak memory (MiB) of this process that a case adds to what was prepared."""
    read = peak_gpu_memory if cuda else peak_memory
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    run = case.prepare()
    before = read()
    run()
    return read() - before


def peaks(cases: Sequence[Case], device: torch.device, repetitions: int) -> list[Row]:
    """Return the peak memory of each case, in each repetition.

    On the CPU each has a process: a fork of this one, which has computed nothing yet.
    """
    again = [(case, repetition) for repetition in range(repetitions) for case in cases]
    importlib.import_module("torch._dynamo")  # The first step of an optimiser would, as memory of the training.
    measured = partial(peak, cuda=device.type == "cuda")
    if device.type == "cuda":
        values = [measured(case) for case, _ in again]
    else:  # The threads of this process do not survive a fork, so there is one.
        with multiprocessing.get_context("fork").Pool(1, use_threads, [1], maxtasksperchild=1) as pool:
            values = pool.map(measured, [case for case, _ in again], chunksize=1)
    return [
        case.row(repetition, "peak_memory_mb", value) for (case, repetition), value in zip(again, values, strict=True)
    ]


@dataclass(frozen=True)
class Measurement:
    """All comparisons, with the settings of a dataset's training."""

    settings: Mapping[str, Any]
    device: torch.device
    sizes: Sizes

    def schedules(self) -> list[Row]:
        """Time an epoch of classes in turn beside all at once."""
        return self._time([self._epoch("joint", variant, self.sizes.joint) for variant in SCHEDULES[1:]])

    def growth(self) -> list[Row]:
        """Measure time and memory of an epoch of Algorithm 3 against the numbers of batches and of classes."""
        sizes = self.sizes
        shapes = [("batches", sizes.growing._replace(batches=number)) for number in sizes.batches]
        shapes += [("classes", sizes.growing._replace(classes=number)) for number in sizes.classes]
        cases = [self._epoch(comparison, SCHEDULES[0], shape) for comparison, shape in shapes]
        return [*peaks(cases, self.device, self.sizes.repetitions), *self._time(cases)]

    def _epoch(self, comparison: str, variant: str, shape: Shape) -> Case:
        return Case(comparison, variant, shape, partial(self._prepare_epoch, shape, variant))

    def _time(self, cases: Sequence[Case]) -> list[Row]:
        """Return the median seconds of each case in each repetition."""
        rows = []
        for repetition in range(self.sizes.repetitions):
            first = repetition % len(cases)
            for case in [*cases[first:], *cases[:first]]:
                timer = Timer("run()", globals={"run": case.prepare()}, num_threads=torch.get_num_threads())
                seconds = timer.blocked_autorange(min_run_time=self.sizes.least_seconds).median
                rows.append(case.row(repetition, "seconds", seconds))
        return rows

    def _prepare_epoch(self, shape: Shape, variant: str) -> Callable[[], None]:
        """Return an epoch of CLaI-M by a schedule, always from the same start."""
        settings, device = self.settings, self.device
        x, labels = random_images(shape, device)
        encoder, kernel = build_clai(settings, "clai-m", CHANNELS, shape.classes, 0)
        move(encoder, device)
        gaussian = cast(MahalanobisGaussian, kernel.to(device))
        learning = replace(
            training_settings(settings, shape.classes, 0), epochs=1, batch_size=shape.batch_size, optimiser="sgd", momentum=0.0,
            learning_rate=1e-3, weight_decay=0.0, learning_rate_schedule="constant", reference_reduction="sum", target="product",
            schedule="joint" if variant == "joint" else "sequential", references="all",
        )  # fmt: skip
        theta: list[Tensor] = [*encoder.parameters(), *kernel.parameters()]

        def phi(batch: Tensor, k: int) -> Tensor:
            with precision_context(device, learning.precision):
                return encoder(batch, k)[0]

        def epoch() -> None:
            if variant != "printed":
                data = Samples(x, labels.cpu())
                collaborative_learning(encoder, kernel, data, shape.classes, learning, dict, None)
                return
            generator = torch.Generator().manual_seed(learning.seed)
            printed.learn_multiclass(
                phi, theta, lambda: printed.mahalanobis(gaussian.matrix), printed.target_product, x, labels, shape.classes,
                shape.batch_size, 1, learning.learning_rate, lambda n: torch.randperm(n, generator=generator),
            )  # fmt: skip

        return epoch


def random_images(shape: Shape, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return images (N, 3, 32, 32), channels-last in memory, and labels (N,), the classes in turn."""
    count = shape.batches * shape.batch_size
    x = torch.randn(count, CHANNELS, 32, 32, generator=torch.Generator().manual_seed(0))
    return x.to(device, memory_format=torch.channels_last), (torch.arange(count) % shape.classes).to(device)
