"""Measure training on random images: the schedules, and Algorithm 3 as printed."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clai import algorithms_as_printed as printed
from clai.batches import Vectors
from clai.encoders import Encoder, build_classifier
from clai.kernels import Kernel, MahalanobisGaussian
from clai.learning import collaborative_learning
from clai.trainer import TrainingSettings, precision_context
from replication.benchmark.analysis import predicted_seconds
from replication.benchmark.memory import peak, peaks_alone
from replication.benchmark.timing import Row, time_in_turn, wait
from replication.models.run import training_settings
from replication.models.training import build_clai

CHANNELS = 3
IMAGE_SIZE = 32
"""Pixels a side."""
SCHEDULES = ("printed", "sequential", "joint", "linear")


@dataclass(frozen=True)
class TrainingCase:
    """An epoch to be measured.

    variant: `printed` (Algorithm 3), `sequential` or `joint` (both with all references), or `linear` (joint with one
    reference). settings: those of config.yaml for one dataset.
    """

    variant: str
    batches: int
    batch_size: int
    classes: int
    settings: Mapping[str, Any]
    device: str

    @property
    def setting(self) -> str:
        """Return the sizes as the column `setting` has them."""
        return f"M={self.batches};C={self.classes};B={self.batch_size}"

    def peak_memory(self) -> float:
        """Train, and return the MiB that this adds to the memory of model and data."""
        run = _prepare_epoch(self, "clai-m")[0]
        before = peak(self.device)
        run()
        return peak(self.device) - before


def measure_exact(
    *,
    batches: int,
    batch_size: int,
    check_batches: int,
    check_batch_size: int,
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Time Algorithm 3 as printed and the schedule `sequential`, which has the same gradient, in an epoch of one class.

    Both compare all pairs of batches; `sequential` collects the gradient of an anchor batch before it goes back through
    the trunk. The rows of `difference` compare the parameters of both, for either kernel, after an epoch of two classes
    in double precision.

    Args:
        check_batches, check_batch_size: sizes of the epoch in double precision.
    """
    cases = [
        TrainingCase(variant, batches, batch_size, 1, settings, device.type) for variant in ("printed", "sequential")
    ]
    rows = _timed("exact", cases, repetitions, device)
    precise = {**settings, "training": {**settings["training"], "precision": "float64"}}
    for model in ("clai-c", "clai-m"):
        states = []
        for variant in ("printed", "sequential"):
            case = TrainingCase(variant, check_batches, check_batch_size, 2, precise, device.type)
            run, parameters = _prepare_epoch(case, model)
            run()
            states.append(parameters())
        largest = max(float((states[0][key] - states[1][key]).abs().max()) for key in states[0])
        setting = f"model={model};M={check_batches};C=2;B={check_batch_size}"
        rows.append(("exact", "sequential", setting, 0, "difference", largest))
    return rows


def measure_joint(
    *,
    batches: int,
    batch_size: int,
    classes: int,
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Time an epoch that takes all classes from one trunk pass, and one that takes a class after another.

    Both compare all pairs of batches.
    """
    cases = [
        TrainingCase(variant, batches, batch_size, classes, settings, device.type)
        for variant in ("sequential", "joint")
    ]
    return _timed("joint", cases, repetitions, device)


def measure_scaling(
    *,
    batches: Sequence[int],
    classes: Sequence[int],
    batch_size: int,
    classes_of_batches: int,
    batches_of_classes: int,
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Measure time and peak memory of an epoch of every schedule over numbers of batches M and of classes C.

    Args:
        batches, classes: the values of M and of C.
        classes_of_batches, batches_of_classes: C while M varies, and M while C varies.
    """
    shapes = [("batches", m, classes_of_batches) for m in batches]
    shapes += [("classes", batches_of_classes, c) for c in classes]
    rows: list[Row] = []
    measured: list[tuple[str, TrainingCase]] = []
    for comparison, m, c in shapes:
        cases = [TrainingCase(variant, m, batch_size, c, settings, device.type) for variant in SCHEDULES]
        rows += _timed(comparison, cases, repetitions, device)
        measured += [(comparison, case) for case in cases]
    peaks = zip(measured, peaks_alone([case for _, case in measured]), strict=True)
    return rows + [
        (comparison, case.variant, case.setting, 0, "peak_memory_mb", value) for (comparison, case), value in peaks
    ]


def _timed(comparison: str, cases: Sequence[TrainingCase], repetitions: int, device: torch.device) -> list[Row]:
    """Time an epoch of each case, and predict its seconds from those of a bare pass in the same repetition."""
    first = cases[0]
    passes: list[tuple[float, float]] = []

    def prepare_trunk() -> Callable[[], object]:
        trunk = placed(build_classifier(first.settings, CHANNELS, 2, 0).trunk, device)
        x = _tensors(first)[0][: first.batch_size]
        precision = first.settings["training"]["precision"]

        def run() -> None:
            times = [_forward_backward(trunk, x, precision) for _ in range(5)]
            passes.append((float(np.median([t[0] for t in times])), float(np.median([t[1] for t in times]))))

        return run

    def preparation(case: TrainingCase) -> Callable[[], Callable[[], object]]:
        return lambda: _prepare_epoch(case, "clai-m")[0]

    for case in cases:  # A warm-up with two batches, which have the shapes of all.
        _prepare_epoch(replace(case, batches=2), "clai-m")[0]()
    preparations = {case.variant: (case.setting, preparation(case)) for case in cases}
    rows = time_in_turn(
        comparison, {**preparations, "trunk": (first.setting, prepare_trunk)}, repetitions, device, warm_up=False
    )
    for repetition, (forward, backward) in enumerate(passes):
        for case in cases:
            value = predicted_seconds(case.variant, case.batches, case.classes, forward, backward)
            rows.append((comparison, case.variant, case.setting, repetition, "predicted", value))
    return [row for row in rows if row[1] != "trunk"]


def _prepare_epoch(case: TrainingCase, model: str) -> tuple[Callable[[], object], Callable[[], dict[str, Tensor]]]:
    """Return a function that trains for an epoch, always from the same start, and one that copies the parameters."""
    device = torch.device(case.device)
    x, labels = _tensors(case)
    trained = build_clai(case.settings, model, CHANNELS, case.classes, 0)
    encoder, kernel = placed(trained.encoder, device), trained.kernel.to(device)
    base = training_settings(case.settings, case.classes, 0)
    learning = replace(
        base, epochs=1, batch_size=case.batch_size, optimiser="sgd", momentum=0.0, learning_rate=1e-3,
        weight_decay=0.0, learning_rate_schedule="constant", reference_reduction="sum", target="product",
        schedule="joint" if case.variant in ("joint", "linear") else "sequential",
        references=1 if case.variant == "linear" else "all",
    )  # fmt: skip
    if learning.precision == "float64":
        x, encoder, kernel = x.double(), encoder.double(), kernel.double()

    def epoch() -> None:
        collaborative_learning(encoder, kernel, Vectors(x, labels.cpu()), case.classes, learning, dict, None)

    def printed_epoch() -> None:
        _learn_printed(encoder, kernel, x, labels, case.classes, learning)

    def parameters() -> dict[str, Tensor]:
        named = itertools.chain(encoder.named_parameters(), kernel.named_parameters())
        return {name: parameter.detach().clone() for name, parameter in named}

    return printed_epoch if case.variant == "printed" else epoch, parameters


def _learn_printed(
    encoder: Encoder, kernel: Kernel, x: Tensor, labels: Tensor, classes: int, learning: TrainingSettings
) -> None:
    """Run Algorithm 3 as printed on the same encoder, kernel, order of samples and precision of the trunk."""
    generator = torch.Generator().manual_seed(learning.seed)
    encoder.train()

    def phi(batch: Tensor, k: int) -> Tensor:
        with precision_context(batch.device, learning.precision):
            return encoder(batch, k)[0]

    def similarity() -> printed.Similarity:
        return printed.mahalanobis(kernel.matrix) if isinstance(kernel, MahalanobisGaussian) else printed.cosine

    theta: list[Tensor] = [*encoder.parameters(), *kernel.parameters()]
    # The one condition of a binary task is class 1, which Algorithm 3 would call class 0.
    y = 1 - labels if classes == 1 else labels
    printed.learn_multiclass(
        phi, theta, similarity, printed.target_product, x, y, classes, learning.batch_size, learning.epochs,
        learning.learning_rate, lambda n: torch.randperm(n, generator=generator),
    )  # fmt: skip


def _forward_backward(trunk: nn.Module, x: Tensor, precision: Any) -> tuple[float, float]:
    """Return the seconds of the forward and of the backward pass of a trunk over a batch."""
    trunk.zero_grad(set_to_none=True)
    start = time.perf_counter()
    with precision_context(x.device, precision):
        features = trunk(x)
    wait(x.device)
    middle = time.perf_counter()
    features.backward(torch.ones_like(features))
    wait(x.device)
    return middle - start, time.perf_counter() - middle


def images(items: int, image_size: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random images (items, image_size, image_size, 3) and labels (items,), the classes in turn."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (items, image_size, image_size, CHANNELS), dtype=np.uint8)
    return x, np.arange(items, dtype=np.int64) % classes


def _tensors(case: TrainingCase) -> tuple[Tensor, Tensor]:
    """Return normalised random images (N, 3, H, W), channels-last in memory, and labels (N,), both on the device."""
    x, labels = images(case.batches * case.batch_size, IMAGE_SIZE, max(case.classes, 2))
    normalised = ((torch.from_numpy(x).float() - 127.5) / 64).permute(0, 3, 1, 2)
    return normalised.to(case.device), torch.from_numpy(labels).to(case.device)


def placed(module: Any, device: torch.device) -> Any:
    """Return the module in training mode on the device, its convolutions channels-last in memory as in training."""
    return module.to(device=device, memory_format=torch.channels_last).train()
