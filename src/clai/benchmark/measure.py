"""Time and memory of training and inference, on random images and random embeddings: the printed algorithms against the fast
ones, the schedules against each other and against cross-entropy on the same trunk, and what sampled references cost in accuracy.

Every function gives tidy rows (comparison, variant, setting, repetition, quantity, value). The variants of a comparison run in
turn within each repetition, in an order that rotates, after an untimed warm-up; a ratio is one of times of the same repetition.

Quantities: `seconds`; `predicted`, the seconds that a count of the trunk's forward and backward passes gives at the times that
the bare trunk took in the same repetition; `difference`, the largest one between two results that should be equal;
`peak_memory_mb` (MiB), of a process that does nothing else (on CUDA: of its device memory); those of `measure_sampling`.
"""

import itertools
import logging
import multiprocessing
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from clai import algorithms_as_printed as printed
from clai.batches import Images, Vectors
from clai.benchmark.analysis import predicted_seconds
from clai.encoders import Encoder
from clai.experiments.training import build_clai, build_classifier
from clai.inference import decide, parzen_means, predict_labels, sample_references, standard_error
from clai.kernels import Kernel, MahalanobisGaussian, build
from clai.learning import batchwise_learning, collaborative_learning
from clai.trainer import TrainingSettings, precision_context

Row = tuple[str, str, str, int, str, float]
COLUMNS = ["comparison", "variant", "setting", "repetition", "quantity", "value"]
CHANNELS = 3
SCHEDULES = ("printed", "sequential", "joint", "linear")

logger = logging.getLogger("clai.benchmark.measure")


@dataclass(frozen=True)
class Work:
    """One training run to be timed: `variant` printed, sequential, joint (all references) or linear (joint, one reference)."""

    variant: str
    batches: int
    batch_size: int
    classes: int
    settings: Mapping[str, Any]
    device: str

    @property
    def setting(self) -> str:
        return f"M={self.batches};C={self.classes};B={self.batch_size}"

    def peak_memory(self) -> float:
        """MiB that the run adds to what model and data take."""
        run = _prepare(self, "clai-m")[0]
        before = _peak(self.device)
        run()
        return _peak(self.device) - before


@dataclass(frozen=True)
class Vote:
    """An inference whose memory is measured: `variant` printed or streamed, with random embeddings."""

    variant: str
    family: str
    test: int
    references: int
    classes: int
    batch_size: int
    settings: Mapping[str, Any]
    device: str

    @property
    def setting(self) -> str:
        return f"kernel={self.family};P={self.test};R={self.references};C={self.classes}"

    def peak_memory(self) -> float:
        """MiB of the whole process, libraries and embeddings included."""
        device, size = torch.device(self.device), self.settings["embedding_size"]
        embedded = _embeddings(self.test, self.references, self.classes, size, torch.float32, device)
        kernel = build(self.family, size, self.settings["kernel"]["metric"]).to(device)
        if self.variant == "printed":
            _vote_printed(kernel, *embedded, self.batch_size)
        else:
            _vote_streamed(kernel, *embedded, self.settings["inference"]["block"])
        return _peak(self.device)


Case = Work | Vote


def measure_all(settings: Mapping[str, Any], device: torch.device) -> pd.DataFrame:
    """All comparisons, columns `COLUMNS`.

    Args:
        settings: those of config.yaml for one dataset, and its `benchmark` block.
    """
    measures: dict[str, Callable[..., list[Row]]] = {
        "exact": measure_exact, "joint": measure_joint, "epoch": measure_epochs, "scaling": measure_scaling,
        "inference": measure_inference, "sampling": measure_sampling,
    }  # fmt: skip
    rows: list[Row] = []
    training = logging.getLogger("clai")
    level = training.level
    training.setLevel(logging.WARNING)  # one line an epoch would be many, and be measured
    logger.setLevel(logging.INFO)
    try:
        for name, measure in measures.items():
            start = time.perf_counter()
            rows += measure(**settings["benchmark"][name], settings=settings, device=device)
            logger.info("%s measured in %.0f s", name, time.perf_counter() - start)
    finally:
        training.setLevel(level)
    return pd.DataFrame(rows, columns=COLUMNS)


def describe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`dataset.json` of the evidence: what the measurements rest on."""
    title = settings["benchmark"]["title"] + (" (miniature synthetic)" if settings["miniature"] else "")
    return {"title": title, "miniature": settings["miniature"], "source": "random", "files": [], "licence": "generated"}


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
    """Algorithm 3 as printed against the same with the anchor's gradient collected: an epoch of one class, all pairs of batches.

    `check_batches` and `check_batch_size` are those of an epoch of two classes in double precision, after which the parameters of
    both are compared, for either kernel.
    """
    works = [Work(variant, batches, batch_size, 1, settings, device.type) for variant in ("printed", "sequential")]
    rows = _timed("exact", works, repetitions, device)
    precise = {**settings, "training": {**settings["training"], "precision": "float64"}}
    for model in ("clai-c", "clai-m"):
        states = []
        for variant in ("printed", "sequential"):
            work = Work(variant, check_batches, check_batch_size, 2, precise, device.type)
            states.append(_prepare(work, model)[1]())
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
    """All classes from one trunk pass against one class after another: an epoch, all pairs of batches."""
    works = [Work(variant, batches, batch_size, classes, settings, device.type) for variant in ("sequential", "joint")]
    return _timed("joint", works, repetitions, device)


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
    """Time and peak memory of an epoch of every variant against the number of batches M and of classes C."""
    shapes = [("batches", m, classes_of_batches) for m in batches]
    shapes += [("classes", batches_of_classes, c) for c in classes]
    rows: list[Row] = []
    measured: list[tuple[str, Work]] = []
    for comparison, m, c in shapes:
        works = [Work(variant, m, batch_size, c, settings, device.type) for variant in SCHEDULES]
        rows += _timed(comparison, works, repetitions, device)
        measured += [(comparison, work) for work in works]
    peaks = zip(measured, _alone([work for _, work in measured]), strict=True)
    return rows + [
        (comparison, work.variant, work.setting, 0, "peak_memory_mb", peak) for (comparison, work), peak in peaks
    ]


def measure_epochs(
    *, items: int, image_size: int, classes: int, repetitions: int, settings: Mapping[str, Any], device: torch.device
) -> list[Row]:
    """An epoch of the linear schedule with either kernel, one of cross-entropy, and the bare forward and backward of their trunk.

    The first three draw batches, augment and optimise as in training on `items` images of `classes` classes; the bare trunk gets
    the same batches ready-made and does nothing else.
    """
    x, labels = _images(items, image_size, classes)
    data = Images(x, labels, [127.5] * CHANNELS, [64.0] * CHANNELS, settings["training"]["augmentation"], device)
    one = {**settings, "training": {**settings["training"], "epochs": 1, "schedule": "joint", "references": 1}}
    learning = TrainingSettings.of(one, classes, 0)
    group = 2 * learning.batch_size

    def clai(model: str) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            trained = build_clai(settings, model, CHANNELS, classes, 0)
            encoder, kernel = _placed(trained.encoder, device), trained.kernel.to(device)
            return lambda: collaborative_learning(encoder, kernel, data, classes, learning, dict, None)

        return prepare

    def cross_entropy() -> Callable[[], object]:
        classifier = _placed(build_classifier(settings, CHANNELS, classes, 0), device)

        def objective(inputs: Any, wanted: Tensor) -> Tensor:
            with precision_context(device, learning.precision):
                logits = classifier(inputs)
            return nn.functional.cross_entropy(logits, wanted)

        return lambda: batchwise_learning(classifier, objective, data, learning, dict, None)

    def bare() -> Callable[[], object]:
        trunk = _placed(build_classifier(settings, CHANNELS, classes, 0).trunk, device)
        ready = [data.batch(own, None)[0] for own in torch.arange(items // group * group).split(group)]

        def run() -> None:
            for inputs in ready:
                trunk.zero_grad(set_to_none=True)
                with precision_context(device, learning.precision):
                    features = trunk(inputs)
                features.backward(torch.ones_like(features))

        return run

    preparations = {"clai-c": clai("clai-c"), "clai-m": clai("clai-m"), "cross-entropy": cross_entropy, "bare": bare}
    setting = f"N={items};C={classes};B={learning.batch_size}"
    return _in_turn("epoch", {key: (setting, make) for key, make in preparations.items()}, repetitions, device)


def measure_inference(
    *,
    test: int,
    references: int,
    classes: int,
    batch_size: int,
    printed_classes: Mapping[str, int],
    check_test: int,
    check_references: int,
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """The vote of Algorithm 4, which builds S, against the streamed one, for given embeddings, and their peaks of memory.

    Args:
        batch_size: of the references in Algorithm 4; a divisor of `references` and `check_references`, as it drops what is left.
        printed_classes: kernel -> how many of the classes are timed, by both: Algorithm 4 takes them one after another, each the
            same work on embeddings of its own.
        check_test, check_references: sizes at which both are compared in double precision.
    """
    size, block = settings["embedding_size"], settings["inference"]["block"]
    rows: list[Row] = []
    votes: list[Vote] = []
    for family, timed in printed_classes.items():
        z, z_reference, labels = _embeddings(test, references, timed, size, torch.float32, device)
        kernel = build(family, size, settings["kernel"]["metric"]).to(device)
        setting = f"kernel={family};P={test};R={references};C={timed}"
        slow = partial(_vote_printed, kernel, z, z_reference, labels, batch_size)
        fast = partial(_vote_streamed, kernel, z, z_reference, labels, block)
        preparations = {"printed": (setting, lambda run=slow: run), "streamed": (setting, lambda run=fast: run)}
        rows += _in_turn("inference", preparations, repetitions, device)
        embedded = _embeddings(check_test, check_references, classes, size, torch.float64, device)
        precise = build(family, size, settings["kernel"]["metric"]).to(device).double()
        gap = (_vote_printed(precise, *embedded, batch_size) - _vote_streamed(precise, *embedded, block)).abs().max()
        setting = f"kernel={family};P={check_test};R={check_references};C={classes}"
        rows.append(("inference", "streamed", setting, 0, "difference", float(gap)))
        votes += [
            Vote(variant, family, test, references, counted, batch_size, settings, device.type)
            for variant, counted in (("printed", 1), ("streamed", 1), ("streamed", classes))
        ]
    peaks = zip(votes, _alone(votes), strict=True)
    return rows + [("inference", vote.variant, vote.setting, 0, "peak_memory_mb", peak) for vote, peak in peaks]


def measure_sampling(
    *,
    test: int,
    references: int,
    classes: int,
    share: float,
    numbers: Sequence[int],
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Votes of sampled references against the vote of all, with the Gaussian kernel, for `classes` alike and for two of which one
    has a share of `share`.

    Quantities, per rule, number of references and sample (repetition): `error`, root mean square over test samples and
    conditions of the difference from the vote of all; `stated`, the same of the standard error that the vote states of itself;
    `changed`, the share of test samples that are given another class; and `seconds` of a vote.
    """
    size, block = settings["embedding_size"], settings["inference"]["block"]
    kernel = build("gaussian", size, settings["kernel"]["metric"]).to(device)
    rows: list[Row] = []
    for conditions, positive in ((classes, 1 / classes), (1, share)):
        z, z_reference, labels = _embeddings(test, references, conditions, size, torch.float32, device, positive)
        whole = parzen_means(kernel, z, z_reference, labels, block)
        for number, repetition in itertools.product(numbers, range(repetitions)):
            items, population = sample_references(labels.cpu(), number, repetition)
            chosen = items.to(device)
            start = time.perf_counter()
            means = parzen_means(kernel, z, z_reference[:, chosen], labels[chosen], block, population)
            _wait(device)
            seconds = time.perf_counter() - start
            for rule in ("printed", "balanced", "parzen"):
                f, f_all = decide(means, rule), decide(whole, rule)
                found = {
                    "seconds": seconds,
                    "error": float((f - f_all).square().mean().sqrt()),
                    "stated": float(standard_error(means, rule).square().mean().sqrt()),
                    "changed": float((predict_labels(f) != predict_labels(f_all)).double().mean()),
                }
                setting = f"C={max(conditions, 2)};share={positive:g};R={references};n={number}"
                rows += [("sampling", rule, setting, repetition, quantity, value) for quantity, value in found.items()]
    return rows


# --- training ---------------------------------------------------------------------------------------------------------


def _timed(comparison: str, works: Sequence[Work], repetitions: int, device: torch.device) -> list[Row]:
    """Seconds of an epoch of each work, and those that the bare trunk's passes predict."""
    first = works[0]
    trunk_passes: list[tuple[float, float]] = []

    def passes() -> Callable[[], object]:
        trunk = _placed(build_classifier(first.settings, CHANNELS, 2, 0).trunk, device)
        x = _tensors(first)[0][: first.batch_size]
        precision = first.settings["training"]["precision"]

        def run() -> None:
            times = [_forward_backward(trunk, x, precision) for _ in range(5)]
            trunk_passes.append((float(np.median([t[0] for t in times])), float(np.median([t[1] for t in times]))))

        return run

    def preparation(work: Work) -> Callable[[], Callable[[], object]]:
        return lambda: _prepare(work, "clai-m")[0]

    for work in works:  # the shapes of two batches are those of all
        _prepare(replace(work, batches=2), "clai-m")[0]()
    preparations = {work.variant: (work.setting, preparation(work)) for work in works}
    rows = _in_turn(comparison, {**preparations, "trunk": (first.setting, passes)}, repetitions, device, warm=False)
    for repetition, (forward, backward) in enumerate(trunk_passes):
        for work in works:
            value = predicted_seconds(work.variant, work.batches, work.classes, forward, backward)
            rows.append((comparison, work.variant, work.setting, repetition, "predicted", value))
    return [row for row in rows if row[1] != "trunk"]


def _prepare(work: Work, model: str) -> tuple[Callable[[], object], Callable[[], dict[str, Tensor]]]:
    """An epoch of a work from the same start: as something to run, and to run and give the parameters after it."""
    device = torch.device(work.device)
    x, labels = _tensors(work)
    trained = build_clai(work.settings, model, CHANNELS, work.classes, 0)
    encoder, kernel = _placed(trained.encoder, device), trained.kernel.to(device)
    base = TrainingSettings.of(work.settings, work.classes, 0)
    learning = replace(
        base, epochs=1, batch_size=work.batch_size, optimiser="sgd", learning_rate=1e-3, weight_decay=0.0,
        learning_rate_schedule="constant", reference_reduction="sum", target="product",
        schedule="joint" if work.variant in ("joint", "linear") else "sequential",
        references=1 if work.variant == "linear" else "all",
    )  # fmt: skip
    if learning.precision == "float64":
        x, encoder, kernel = x.double(), encoder.double(), kernel.double()

    def fast() -> None:
        collaborative_learning(encoder, kernel, Vectors(x, labels.cpu()), work.classes, learning, dict, None)

    def slow() -> None:
        _learn_printed(encoder, kernel, x, labels, work.classes, learning)

    run = slow if work.variant == "printed" else fast

    def run_for_parameters() -> dict[str, Tensor]:
        run()
        named = itertools.chain(encoder.named_parameters(), kernel.named_parameters())
        return {name: parameter.detach().clone() for name, parameter in named}

    return run, run_for_parameters


def _learn_printed(
    encoder: Encoder, kernel: Kernel, x: Tensor, labels: Tensor, classes: int, learning: TrainingSettings
) -> None:
    """Algorithm 3 on the same encoder, kernel, order of samples and arithmetic of the trunk."""
    generator = torch.Generator().manual_seed(learning.seed)
    encoder.train()

    def phi(batch: Tensor, k: int) -> Tensor:
        with precision_context(batch.device, learning.precision):
            return encoder(batch, k)[0]

    def similarity() -> printed.Similarity:
        return printed.mahalanobis(kernel.matrix) if isinstance(kernel, MahalanobisGaussian) else printed.cosine

    theta: list[Tensor] = [*encoder.parameters(), *kernel.parameters()]
    # The only condition of a binary task has class 1 as its own.
    y = 1 - labels if classes == 1 else labels
    printed.learn_multiclass(
        phi, theta, similarity, printed.target_product, x, y, classes, learning.batch_size, learning.epochs,
        learning.learning_rate, lambda n: torch.randperm(n, generator=generator),
    )  # fmt: skip


def _forward_backward(trunk: nn.Module, x: Tensor, precision: Any) -> tuple[float, float]:
    """Seconds of a trunk's forward and of its backward pass over a batch."""
    trunk.zero_grad(set_to_none=True)
    start = time.perf_counter()
    with precision_context(x.device, precision):
        features = trunk(x)
    _wait(x.device)
    middle = time.perf_counter()
    features.backward(torch.ones_like(features))
    _wait(x.device)
    return middle - start, time.perf_counter() - middle


def _images(items: int, image_size: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (items, image_size, image_size, CHANNELS), dtype=np.uint8)
    return x, np.arange(items, dtype=np.int64) % classes


def _tensors(work: Work) -> tuple[Tensor, Tensor]:
    """Normalised random images in channels-last layout and their labels, on the device."""
    size = work.settings["benchmark"]["epoch"]["image_size"]
    x, labels = _images(work.batches * work.batch_size, size, max(work.classes, 2))
    images = ((torch.from_numpy(x).float() - 127.5) / 64).permute(0, 3, 1, 2)
    return images.to(work.device), torch.from_numpy(labels).to(work.device)


def _placed(module: Any, device: torch.device) -> Any:
    """On the device, its convolutions in channels-last layout, as in training."""
    return module.to(device=device, memory_format=torch.channels_last).train()


# --- inference --------------------------------------------------------------------------------------------------------


def _embeddings(
    test: int, references: int, conditions: int, size: int, dtype: torch.dtype, device: torch.device, share: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Test (K, P, L) and reference (K, R, L) embeddings and labels (R,): under each condition its own class is shifted.

    share: of class 1 where K = 1; classes are alike otherwise, or where it is 0.
    """
    generator = torch.Generator().manual_seed(0)
    classes = max(conditions, 2)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.arange(count) % classes
        if conditions == 1 and share:
            labels = (torch.arange(count) < share * count).long()
        labels = labels[torch.randperm(count, generator=generator)]
        z = torch.randn(conditions, count, size, generator=generator)
        own = labels == (torch.tensor([[1]]) if conditions == 1 else torch.arange(conditions)[:, None])
        z[:, :, 0] += 3 * own
        return z.to(device, dtype), labels.to(device)

    (z, _), (z_reference, labels) = draw(test), draw(references)
    return z, z_reference, labels


@torch.no_grad()
def _vote_printed(kernel: Kernel, z: Tensor, z_reference: Tensor, labels: Tensor, batch_size: int) -> Tensor:
    """Algorithm 4, or 2 for one condition, with phi a look-up of given embeddings: f (K, P)."""
    similarity = printed.mahalanobis(kernel.matrix) if isinstance(kernel, MahalanobisGaussian) else printed.cosine
    index, index_reference = (torch.arange(part.shape[1], device=part.device) for part in (z, z_reference))
    both = torch.cat([z, z_reference], 1)
    x, x_r = index.to(z.dtype)[:, None], (len(index) + index_reference).to(z.dtype)[:, None]

    def phi(batch: Tensor, k: int) -> Tensor:
        return both[k, batch[:, 0].long()]

    if len(z) == 1:
        y = (2 * labels - 1).to(z.dtype)
        return printed.infer_binary(lambda batch: phi(batch, 0), similarity, x, x_r, y, batch_size)[None]
    return printed.infer_multiclass(phi, similarity, x, x_r, labels, len(z), batch_size).T


def _vote_streamed(kernel: Kernel, z: Tensor, z_reference: Tensor, labels: Tensor, block: int) -> Tensor:
    return decide(parzen_means(kernel, z, z_reference, labels, block), "printed")


# --- clocks and memory ------------------------------------------------------------------------------------------------


def _in_turn(
    comparison: str,
    preparations: Mapping[str, tuple[str, Callable[[], Callable[[], object]]]],
    repetitions: int,
    device: torch.device,
    warm: bool = True,
) -> list[Row]:
    """Seconds of each variant: variant -> (setting, a function that prepares it and gives what is timed)."""
    rows: list[Row] = []
    names = list(preparations)
    if warm:
        for _, prepare in preparations.values():
            prepare()()
    for repetition in range(repetitions):
        first = repetition % len(names)
        for name in names[first:] + names[:first]:
            setting, prepare = preparations[name]
            run = prepare()
            _wait(device)
            start = time.perf_counter()
            run()
            _wait(device)
            rows.append((comparison, name, setting, repetition, "seconds", time.perf_counter() - start))
    return rows


def _wait(device: torch.device) -> None:
    """Until the device has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _alone(cases: Sequence[Case]) -> list[float]:
    """Peak memory (MiB) of each case, in a process that does nothing else.

    They are forked, one after another, from a fresh process that has imported what they need and done nothing yet.
    """
    command = [sys.executable, "-c", "from clai.benchmark.measure import serve; serve()"]
    given = pickle.dumps((list(cases), torch.get_num_threads()))
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True)
    return list(pickle.loads(done.stdout))


def serve() -> None:
    """The fresh process of `_alone`: cases come pickled on standard input, peaks go out on standard output."""
    cases, threads = pickle.load(sys.stdin.buffer)
    # An optimiser's first step imports much of torch, which is no memory of the training.
    weight = nn.Parameter(torch.zeros(()))
    weight.grad = torch.zeros(())
    torch.optim.SGD([weight]).step()
    context = multiprocessing.get_context("fork")
    peaks = []
    for case in cases:
        with context.Pool(1, torch.set_num_threads, [threads]) as child:
            peaks.append(child.apply(case.peak_memory))
    sys.stdout.buffer.write(pickle.dumps(peaks))


def _peak(device: str) -> float:
    """Peak memory so far in MiB: of the device, or of this process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
