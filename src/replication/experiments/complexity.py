"""Measure time and memory of training and of votes, on random images and embeddings.

The variants of a comparison run in turn within each repetition, in an order that rotates. So a ratio compares times of the same
repetition, and a machine that slows down does so for all variants. Each row has the columns of `benchmark.csv`: comparison,
variant, setting (`name=value` pairs separated by semicolons), repetition, quantity and value. The quantities:

seconds
    Of an epoch, or of the vote or the predictions on all test samples.
predicted
    Seconds that the passes through the trunk would take alone: their number times those of a bare pass in the same repetition.
difference
    The largest difference between two results that should be equal.
peak_memory_mb
    Peak memory (MiB): on CUDA of the device; on the CPU of a process that does nothing else, on one thread.
error
    Root mean square difference of votes of sampled references from the vote of all, over test samples and conditions.
stated
    Root mean square of the standard error that such a vote states.
changed
    The share of test samples that get another class by it.
"""

import importlib
import itertools
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from clailearn import algorithms_as_printed as printed
from clailearn.batches import Vectors
from clailearn.encoders import ConvNet, build_classifier, place
from clailearn.inference import Rule, decide, parzen_means, predict_labels, sample_references, standard_error
from clailearn.kernels import Kernel, MahalanobisGaussian, build
from clailearn.learning import collaborative_learning
from clailearn.trainer import precision_context
from replication.datasets.prepared import SPLITS, Prepared
from replication.metrics.passes import trunk_passes
from replication.models.base import Network, batchwise_learning, create
from replication.models.clai import build_clai
from replication.models.run import Run, training_settings
from replication.runs.columns import COLUMNS
from replication.runs.identity import RunId
from replication.runs.jobs import use_threads
from replication.runs.models import CLAI
from replication.runs.record import peak_gpu_memory, peak_memory

Row = tuple[str, str, str, int, str, float]
SCHEDULES = ("printed", "sequential", "joint", "linear")
"""Algorithm 3; its gradient at less cost; all classes in one pass; the same with one reference for each anchor."""
LOSSES = ("clai-c", "clai-m", "cross-entropy", "supervised-contrastive", "bare")
CHANNELS = 3
SAMPLED_RULES: tuple[Rule, ...] = ("printed", "balanced", "parzen")
RARE = 0.02
"""The share of a rare class."""
BATCH_OF_VOTES = 125
"""References in a batch of Algorithm 2, which drops an incomplete one: a divisor of their numbers."""


class Shape(NamedTuple):
    """The sizes of an epoch: M batches of B samples, C classes."""

    batches: int
    batch_size: int
    classes: int

    def __str__(self) -> str:
        return f"M={self.batches};C={self.classes};B={self.batch_size}"


class Case(NamedTuple):
    """A computation to measure. `prepare` builds what it starts from, and returns it."""

    comparison: str
    variant: str
    setting: str
    prepare: Callable[[], Callable[[], Any]]


class Sizes(NamedTuple):
    """The sizes of all comparisons; pairs of numbers are of test samples and of references. Each is timed for `least_seconds`."""

    repetitions: int = 5
    least_seconds: float = 0.2
    exact: Shape = Shape(12, 64, 1)
    check: Shape = Shape(4, 8, 2)
    joint: Shape = Shape(6, 32, 10)
    growing: Shape = Shape(4, 16, 5)
    batches: Sequence[int] = (2, 4, 8, 16)
    classes: Sequence[int] = (2, 5, 10, 20)
    trunks: Sequence[tuple[str, int]] = (("resnet2d", 16), ("convnet", 48))
    pixels: int = 32
    images: int = 1024
    labels: int = 10
    vote: tuple[int, int] = (10000, 50000)
    checked_vote: tuple[int, int] = (500, 5000)
    sampling: tuple[int, int] = (2000, 50000)
    sampled: Sequence[int] = (200, 500, 1000, 2000, 5000, 10000, 20000)


MINIATURE = Sizes(
    repetitions=2, least_seconds=0.01, exact=Shape(4, 8, 1), check=Shape(3, 6, 2), joint=Shape(3, 8, 4),
    growing=Shape(2, 8, 2), batches=(2, 4), classes=(2, 4), trunks=(("resnet2d", 8), ("convnet", 4)),
    pixels=16, images=256, labels=4,
    vote=(200, 1000), checked_vote=(50, 250), sampling=(100, 2000), sampled=(40, 200, 1000),
)  # fmt: skip


def measure(part: str, settings: Mapping[str, Any], device: torch.device) -> pd.DataFrame:
    """Return the rows of a part, a method of `Measurement`; sizes are small where the settings are those of the miniature."""
    measurement = Measurement(settings, device, MINIATURE if settings["miniature"] else Sizes())
    return pd.DataFrame(getattr(measurement, part)(), columns=COLUMNS["benchmark.csv"])


def time_in_turn(cases: Sequence[Case], sizes: Sizes) -> list[Row]:
    """Return the median seconds of each case in each repetition, after a run that warms up."""
    rows: list[Row] = []
    for repetition in range(sizes.repetitions):
        first = repetition % len(cases)
        for case in [*cases[first:], *cases[:first]]:
            timer = Timer("run()", globals={"run": case.prepare()}, num_threads=torch.get_num_threads())
            times = timer.blocked_autorange(min_run_time=sizes.least_seconds)
            rows.append((*case[:3], repetition, "seconds", times.median))
    return rows


def peak(case: Case, cuda: bool, added: bool) -> float:
    """Return the peak memory (MiB) of this process in a case, or what the case adds to what was prepared."""
    read = peak_gpu_memory if cuda else peak_memory
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    run = case.prepare()
    before = read() if added else 0.0
    run()
    return read() - before


def peaks(cases: Sequence[Case], device: torch.device, added: bool) -> list[Row]:
    """Return the peak memory of each case. On the CPU each has a process: a fork of this one, which has computed nothing yet."""
    importlib.import_module("torch._dynamo")  # The first step of an optimiser would, as memory of the training.
    measured = partial(peak, cuda=device.type == "cuda", added=added)
    if device.type == "cuda":
        values = [measured(case) for case in cases]
    else:  # The threads of this process do not survive a fork, so there is one.
        with multiprocessing.get_context("fork").Pool(1, use_threads, [1], maxtasksperchild=1) as pool:
            values = pool.map(measured, cases, chunksize=1)
    return [(*case[:3], 0, "peak_memory_mb", value) for case, value in zip(cases, values, strict=True)]


def difference(first: Case, second: Case) -> Row:
    """Compare the results of two cases, tensors."""
    pairs = zip(first.prepare()(), second.prepare()(), strict=True)
    return (*second[:3], 0, "difference", max(float((a - b).detach().abs().max()) for a, b in pairs))


@dataclass(frozen=True)
class Measurement:
    """All comparisons, with the settings of a dataset's training."""

    settings: Mapping[str, Any]
    device: torch.device
    sizes: Sizes

    def schedules(self) -> list[Row]:
        """Time Algorithm 3 beside the schedule of its gradient (`exact`), and classes in turn beside all at once (`joint`)."""
        rows = self._time_schedules("exact", SCHEDULES[:2], self.sizes.exact)
        rows += self._time_schedules("joint", SCHEDULES[1:3], self.sizes.joint)
        for model in ("clai-c", "clai-m"):
            rows.append(difference(*self._epochs("exact", SCHEDULES[:2], self.sizes.check, model, double=True)))
        return rows

    def growth(self) -> list[Row]:
        """Measure time and memory of an epoch of every schedule against the numbers of batches and of classes."""
        sizes = self.sizes
        shapes = [("batches", sizes.growing._replace(batches=number)) for number in sizes.batches]
        shapes += [("classes", sizes.growing._replace(classes=number)) for number in sizes.classes]
        cases = [case for comparison, shape in shapes for case in self._epochs(comparison, SCHEDULES, shape)]
        rows = peaks(cases, self.device, added=True)
        for comparison, shape in shapes:
            rows += self._time_schedules(comparison, SCHEDULES, shape)
        return rows

    def _epochs(
        self, comparison: str, variants: Sequence[str], shape: Shape, model: str = "clai-m", double: bool = False
    ) -> list[Case]:
        setting = f"model={model};{shape}" if double else str(shape)
        prepare = partial(self._prepare_epoch, shape, model, double)
        return [Case(comparison, variant, setting, partial(prepare, variant)) for variant in variants]

    def _time_schedules(self, comparison: str, variants: Sequence[str], shape: Shape) -> list[Row]:
        """Time an epoch of each schedule, and predict its seconds from those of a bare pass in the same repetition."""
        bare = [Case("", name, "", partial(self._prepare_pass, shape, name == "both")) for name in ("forward", "both")]
        rows = time_in_turn([*self._epochs(comparison, variants, shape), *bare], self.sizes)
        seconds = {(row[1], row[3]): row[5] for row in rows}
        rows = [row for row in rows if row[0]]
        for variant, repetition in itertools.product(variants, range(self.sizes.repetitions)):
            forward, backward = trunk_passes(variant, shape.batches, shape.classes)
            once = seconds["forward", repetition]
            predicted = forward * once + backward * (seconds["both", repetition] - once)
            rows.append((comparison, variant, str(shape), repetition, "predicted", predicted))
        return rows

    def epochs(self) -> list[Row]:
        """Time epochs of CLaI, one reference an anchor, and of other losses; `bare` passes as many samples, the limit."""
        rows: list[Row] = []
        sizes = self.sizes
        for trunk, width in sizes.trunks:
            setting = f"trunk={trunk};width={width};N={sizes.images};C={sizes.labels};B={self.settings['training']['batch_size']}"
            cases = [Case("epoch", loss, setting, partial(self._prepare_loss, trunk, width, loss)) for loss in LOSSES]
            rows += time_in_turn(cases, sizes)
        return rows

    def votes(self) -> list[Row]:
        """Measure the vote of Algorithm 2, which builds the matrix S, and the streamed vote; Algorithm 4 costs C times that."""
        votes = [self._votes(family, *self.sizes.vote) for family in ("cosine", "gaussian")]
        rows = peaks([case for cases in votes for case in cases], self.device, added=False)
        for cases in votes:
            rows += time_in_turn(cases, self.sizes)
        for family in ("cosine", "gaussian"):
            rows.append(difference(*self._votes(family, *self.sizes.checked_vote, dtype=torch.float64)))
        return rows

    def _votes(self, family: str, test: int, references: int, dtype: torch.dtype = torch.float32) -> list[Case]:
        setting = f"kernel={family};P={test};R={references};C=1"
        prepare = partial(self._prepare_vote, family, test, references, dtype)
        return [Case("inference", variant, setting, partial(prepare, variant)) for variant in ("printed", "streamed")]

    def sampling(self) -> list[Row]:
        """Compare votes of sampled references with the vote of all, with classes of equal shares and with a rare one."""
        rows: list[Row] = []
        sizes, kernel = self.sizes, self._kernel("gaussian")
        for shares in ([1 / sizes.labels] * sizes.labels, [1 - RARE, RARE]):
            z, z_reference, labels = self._random_embeddings(*sizes.sampling, shares)
            whole = parzen_means(kernel, z, z_reference, labels)
            for number, seed in itertools.product(sizes.sampled, range(sizes.repetitions)):
                setting = f"C={len(shares)};share={shares[-1]:g};R={len(labels)};n={number}"
                items, population = sample_references(labels.cpu(), number, seed)
                drawn = items.to(self.device)
                means = parzen_means(kernel, z, z_reference[:, drawn], labels[drawn], population)
                for rule in SAMPLED_RULES:
                    f, f_all = decide(means, rule), decide(whole, rule)
                    quantities = {
                        "error": (f - f_all).square().mean().sqrt(),
                        "stated": standard_error(means, rule).square().mean().sqrt(),
                        "changed": (predict_labels(f) != predict_labels(f_all)).double().mean(),
                    }
                    rows += [("sampling", rule, setting, seed, name, float(v)) for name, v in quantities.items()]
        return rows

    def _random_embeddings(self, test: int, references: int, shares: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
        """Draw test (K, P, L) and reference (K, R, L) embeddings, class k shifted under condition k, and labels (R,)."""
        generator = torch.Generator().manual_seed(0)
        conditions = torch.arange(len(shares))[1 if len(shares) == 2 else 0 :]

        def draw(count: int) -> tuple[Tensor, Tensor]:
            labels = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
            z = torch.randn(len(conditions), count, self.settings["embedding_size"], generator=generator)
            z[:, :, 0] += 3 * (labels == conditions[:, None])
            return z.to(self.device), labels.to(self.device)

        (z, _), (z_reference, labels) = draw(test), draw(references)
        return z, z_reference, labels

    def _kernel(self, family: str) -> Kernel:
        return build(family, self.settings["embedding_size"], self.settings["kernel"]["metric"]).to(self.device)

    def _prepare_epoch(self, shape: Shape, model: str, double: bool, variant: str) -> Callable[[], list[Tensor]]:
        """Return an epoch of a schedule, always from the same start, which returns the parameters after it."""
        settings, device = self.settings, self.device
        x, labels = random_images(shape, device)
        encoder, kernel = build_clai(settings, model, CHANNELS, shape.classes, 0)
        place(encoder, device)
        kernel.to(device)
        learning = replace(
            training_settings(settings, shape.classes, 0), epochs=1, batch_size=shape.batch_size, optimiser="sgd", momentum=0.0,
            learning_rate=1e-3, weight_decay=0.0, learning_rate_schedule="constant", reference_reduction="sum", target="product",
            schedule="joint" if variant in ("joint", "linear") else "sequential", references=1 if variant == "linear" else "all",
        )  # fmt: skip
        if double:
            learning = replace(learning, precision="float32")  # without autocast
            x, encoder, kernel = x.double(), encoder.double(), kernel.double()
        theta: list[Tensor] = [*encoder.parameters(), *kernel.parameters()]

        def phi(batch: Tensor, k: int) -> Tensor:
            with precision_context(device, learning.precision):
                return encoder(batch, k)[0]

        def epoch() -> list[Tensor]:
            if variant != "printed":
                data = Vectors(x, labels.cpu())
                collaborative_learning(encoder, kernel, data, shape.classes, learning, dict, None)
                return theta
            # The one condition of a binary task is class 1, which Algorithm 3 would call class 0.
            y = 1 - labels if shape.classes == 1 else labels
            generator = torch.Generator().manual_seed(learning.seed)
            printed.learn_multiclass(
                phi, theta, partial(_printed_similarity, kernel), printed.target_product, x, y, shape.classes, shape.batch_size,
                1, learning.learning_rate, lambda n: torch.randperm(n, generator=generator),
            )  # fmt: skip
            return theta

        return epoch

    def _prepare_pass(self, shape: Shape, backward: bool) -> Callable[[], None]:
        """Return the pass of a batch through the bare trunk, or the pass and that of its gradients."""
        trunk = build_classifier(self.settings, CHANNELS, 2, 0).trunk
        place(trunk, self.device)
        batch = random_images(shape, self.device)[0][: shape.batch_size]
        return partial(_pass_through, trunk, [batch], self.settings["training"]["precision"], backward)

    def _prepare_loss(self, trunk: str, width: int, loss: str) -> Callable[[], object]:
        """Return an epoch of one of `LOSSES`. All but `bare` draw batches, augment and optimise as in training."""
        items, pixels = self.sizes.images, self.sizes.pixels
        x = np.random.default_rng(0).integers(0, 256, (items, pixels, pixels, CHANNELS), dtype=np.uint8)
        y = np.arange(items, dtype=np.int64) % self.sizes.labels
        statistics = {"mean": [127.5] * CHANNELS, "sd": [64.0] * CHANNELS}
        info = {"kind": "images", "classes": range(self.sizes.labels), "normalisation": {"train": statistics}}
        data = Prepared(info, {f"{name}_{split}": part for split in SPLITS for name, part in (("x", x), ("y", y))})
        training = {"epochs": 1, "samples": None, "schedule": "joint", "references": 1}
        own = {
            "encoder": {**self.settings["encoder"], "trunk": trunk, "width": width},
            "training": {**self.settings["training"], **training},
            "normalise_test_separately": False,
        }
        run = Run(data, {**self.settings, **own}, RunId("benchmark", loss, 0), self.device)
        model = cast(Network, create("cross-entropy" if loss == "bare" else loss)).build(run)
        train, network = run.splits.train, model.network
        place(model.module, self.device)
        if isinstance(network.trunk, ConvNet):
            network.trunk.whiten(train.batch(torch.arange(min(items, 512)), None)[0])
        if loss == "bare":
            group = 2 * run.training.batch_size
            batches = [train.batch(block, None)[0] for block in torch.arange(items // group * group).split(group)]
            return partial(_pass_through, network.trunk, batches, run.training.precision)
        if loss in CLAI:
            return partial(model.learn, run, dict, None)
        return partial(batchwise_learning, network, partial(model.loss, run), train, run.training, dict, None)

    def _prepare_vote(
        self, family: str, test: int, references: int, dtype: torch.dtype, variant: str
    ) -> Callable[[], Tensor]:
        """Return a vote on random embeddings of two classes, which returns f (1, P); phi of Algorithm 2 is the identity."""
        z, z_reference, labels = self._random_embeddings(test, references, [0.5, 0.5])
        kernel, z, z_reference = self._kernel(family).to(dtype), z.to(dtype), z_reference.to(dtype)
        if variant == "streamed":
            return lambda: decide(parzen_means(kernel, z, z_reference, labels), "printed")
        given = (_printed_similarity(kernel), z[0], z_reference[0], (2 * labels - 1).to(dtype), BATCH_OF_VOTES)
        return torch.no_grad()(lambda: printed.infer_binary(lambda batch: batch, *given)[None])


def _pass_through(trunk: nn.Module, batches: Sequence[Tensor], precision: Any, backward: bool = True) -> None:
    for x in batches:
        trunk.zero_grad(set_to_none=True)
        with precision_context(x.device, precision):
            features = trunk(x)
        if backward:
            features.backward(torch.ones_like(features))


def random_images(shape: Shape, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return images (N, 3, 32, 32), channels-last in memory, and labels (N,), the classes in turn."""
    count = shape.batches * shape.batch_size
    x = torch.randn(count, CHANNELS, 32, 32, generator=torch.Generator().manual_seed(0))
    return x.to(device, memory_format=torch.channels_last), (torch.arange(count) % max(shape.classes, 2)).to(device)


def _printed_similarity(kernel: Kernel) -> printed.Similarity:
    return printed.mahalanobis(kernel.matrix) if isinstance(kernel, MahalanobisGaussian) else printed.cosine
