"""Measure time and memory of training schedules on random images.

The schedules of a comparison run in turn within each repetition, in an order that rotates. So a ratio compares times of the same
repetition, and a machine that slows down does so for all schedules. Rows have the columns of `benchmark.csv`
(docs/architecture.md). Peak memory (MiB) is what an epoch adds to model and data: on CUDA of the device; on the CPU of a process
that does nothing else, on one thread.
"""

import importlib
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import pandas as pd
import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from clailearn.encoders import move
from clailearn.kernels import MahalanobisGaussian
from clailearn.learning import collaborative_learning
from clailearn.trainer import Samples, precision_context
from replication.experiments import algorithms_as_printed as printed
from replication.models.clai import build_clai
from replication.models.run import training_settings
from replication.runs.run import COLUMNS, peak_memory, use_threads

Row = tuple[str, str, int, int, int, int, str, float]
"""A row of `benchmark.csv`."""
CHANNELS = 3


class Case(NamedTuple):
    """An epoch to measure, of M batches of B samples and C classes.

    variant: `printed` (Algorithm 3), `sequential` (its gradient at less cost) or `joint` (all classes in one pass).
    """

    comparison: str
    variant: str
    batches: int
    classes: int
    batch_size: int


Prepare = Callable[[Case], Callable[[], Any]]
"""Builds what a case starts from, and returns its computation."""


class Sizes(NamedTuple):
    """The sizes of all comparisons. Each is timed for `least_seconds`."""

    repetitions: int
    least_seconds: float
    joint: Case = Case("joint", "joint", 6, 10, 32)
    growing: Case = Case("batches", "printed", 4, 5, 16)
    batches: Sequence[int] = (2, 4, 8)
    classes: Sequence[int] = (2, 5, 10, 20)


MINIATURE: dict[str, Any] = {
    "joint": Case("joint", "joint", 3, 4, 8), "growing": Case("batches", "printed", 2, 2, 8),
    "batches": (2, 4), "classes": (2, 4),
}  # fmt: skip


def measure(settings: Mapping[str, Any], device: torch.device, sizes: Sizes) -> pd.DataFrame:
    """Measure an epoch of Algorithm 3 as batches and classes grow, and time classes in turn beside all at once.

    settings: those of a dataset's training.
    """
    prepare = partial(prepare_epoch, settings, device)
    growth = [sizes.growing._replace(batches=number) for number in sizes.batches]
    growth += [sizes.growing._replace(comparison="classes", classes=number) for number in sizes.classes]
    schedules = [sizes.joint._replace(variant=variant) for variant in ("sequential", "joint")]
    # Memory comes first: before this process has computed anything.
    rows = peaks(growth, prepare, device, sizes.repetitions)
    rows += [row for cases in (growth, schedules) for row in times(cases, prepare, sizes)]
    return pd.DataFrame(rows, columns=COLUMNS["benchmark.csv"])


def peak(case: Case, prepare: Prepare, cuda: bool) -> float:
    """Return the peak memory (MiB) of this process, or of its GPU, that a case adds to what was prepared."""

    def read() -> float:
        return float(torch.cuda.max_memory_allocated() / 2**20) if cuda else peak_memory()

    if cuda:
        torch.cuda.reset_peak_memory_stats()
    run = prepare(case)
    before = read()
    run()
    return read() - before


def peaks(cases: Sequence[Case], prepare: Prepare, device: torch.device, repetitions: int) -> list[Row]:
    """Return the peak memory of each case, in each repetition.

    On the CPU each has a process: a fork of this one, which has computed nothing yet.
    """
    again = list(cases) * repetitions
    importlib.import_module("torch._dynamo")  # The first step of an optimiser would, as memory of the training.
    measured = partial(peak, prepare=prepare, cuda=device.type == "cuda")
    if device.type == "cuda":
        values = list(map(measured, again))
    else:  # The threads of this process do not survive a fork, so there is one.
        with multiprocessing.get_context("fork").Pool(1, use_threads, [1], maxtasksperchild=1) as pool:
            values = pool.map(measured, again, chunksize=1)
    pairs = enumerate(zip(again, values, strict=True))
    return [(*case, number // len(cases), "peak_memory_mb", value) for number, (case, value) in pairs]


def times(cases: Sequence[Case], prepare: Prepare, sizes: Sizes) -> list[Row]:
    """Return the median seconds of each case in each repetition."""
    rows = []
    for repetition in range(sizes.repetitions):
        first = repetition % len(cases)
        for case in [*cases[first:], *cases[:first]]:
            timer = Timer("run()", globals={"run": prepare(case)}, num_threads=torch.get_num_threads())
            seconds = timer.blocked_autorange(min_run_time=sizes.least_seconds).median
            rows.append((*case, repetition, "seconds", seconds))
    return rows


EPOCH: dict[str, Any] = {
    "epochs": 1, "optimiser": "sgd", "momentum": 0.0, "learning_rate": 1e-3, "weight_decay": 0.0,
    "learning_rate_schedule": "constant", "reference_reduction": "sum", "references": "all",
}  # fmt: skip
"""How an epoch that is measured trains, whatever the settings of trainings are: as Algorithm 3 prints it."""


def prepare_epoch(settings: Mapping[str, Any], device: torch.device, case: Case) -> Callable[[], None]:
    """Return an epoch of CLaI-M by a schedule, always from the same start: on random images, the classes in turn."""
    count = case.batches * case.batch_size
    x = torch.randn(count, CHANNELS, 32, 32, generator=torch.Generator().manual_seed(0))
    x = x.to(device, memory_format=torch.channels_last)
    labels = (torch.arange(count) % case.classes).to(device)
    encoder, kernel = build_clai(settings, "clai-m", CHANNELS, case.classes, 0)
    move(encoder, device)
    gaussian = cast(MahalanobisGaussian, kernel.to(device))
    learning = replace(
        training_settings(settings, case.classes, 0), **EPOCH, batch_size=case.batch_size, target="product",
        schedule="joint" if case.variant == "joint" else "sequential",
    )  # fmt: skip
    theta: list[Tensor] = [*encoder.parameters(), *kernel.parameters()]

    def phi(batch: Tensor, k: int) -> Tensor:
        with precision_context(device, learning.precision):
            return encoder(batch, k)[0]

    def epoch() -> None:
        if case.variant != "printed":
            data = Samples(x, labels.cpu())
            collaborative_learning(encoder, kernel, data, case.classes, learning, dict, None)
            return
        generator = torch.Generator().manual_seed(learning.seed)
        printed.learn_multiclass(
            phi, theta, lambda: printed.mahalanobis(gaussian.matrix), printed.target_product, x, labels, case.classes,
            case.batch_size, 1, learning.learning_rate, lambda n: torch.randperm(n, generator=generator),
        )  # fmt: skip

    return epoch
