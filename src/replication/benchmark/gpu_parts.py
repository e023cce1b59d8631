"""The parts of the check of a GPU (`replication.benchmark.gpu_check`).

A part gives findings: what was measured, what was expected, and whether it holds. The CPU runs all parts but the one that only
CUDA can answer.
"""

import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from clai.checkpoints import Checkpoint
from clai.kernels import build
from clai.learning import group_size
from clai.trainer import TrainingSettings
from replication.benchmark.inference import random_embeddings, vote_printed, vote_streamed
from replication.benchmark.timing import wait
from replication.benchmark.training import measure_exact
from replication.datasets.prepared import Prepared
from replication.models.hardware import choose_precision
from replication.models.run import Run
from replication.models.training import train_clai
from replication.runs.identity import RunId
from replication.runs.models import CLAI
from replication.runs.settings import benchmark_settings, cell_settings, cells, dataset_settings, merge

EXACT = 1e-9  # largest difference of two results in double precision that counts as none
CLASSES = 10


class Skipped(Exception):
    """A part does not apply here; the message says why."""


@dataclass(frozen=True)
class Finding:
    """One result of a part; `holds` is None where nothing was expected."""

    quantity: str
    value: float | str | None
    expected: str = ""
    holds: bool | None = None


@dataclass(frozen=True)
class Check:
    """What the parts share.

    Args:
        repository: folder that holds config.yaml.
        settings: all settings.
        device: to be checked.
        folder: where parts leave their files.
        deadline: on the clock of `time.monotonic`; a training that reaches it saves its state and ends.
        size: rows of the matrices whose product tells the device's peak.
    """

    repository: Path
    settings: Mapping[str, Any]
    device: torch.device
    folder: Path
    deadline: float
    size: int

    def code(self) -> list[str]:
        """Return the files of the library."""
        return [str(path) for path in sorted((self.repository / "src").rglob("*.py"))]

    def cases(self) -> dict[str, dict[str, Any]]:
        """Return the settings that are checked: CLaI-M as in table 1, and each of CLaI's cells of the study `wide`."""
        found = {"cifar10": dataset_settings(self.settings, "cifar10") | {"model": "clai-m"}}
        found |= {f"wide-{cell}": cell_settings(self.settings, "wide", cell) for cell in cells(self.settings, "wide")}
        return {name: self._fixed(case) for name, case in found.items() if case["model"] in CLAI}

    def _fixed(self, case: dict[str, Any]) -> dict[str, Any]:
        precision = choose_precision(case["training"]["precision"], self.device)
        return merge(case, {"training": {"precision": precision, "samples": None}})

    def run(self, case: Mapping[str, Any], groups: int, epochs: int) -> Run:
        """Return a run on random images of 32 x 32 pixels, as many as so many steps an epoch take."""
        changes = {"training": {"epochs": epochs}, "inference": {"validation_samples": None}}
        settings = merge(case, changes)
        items = groups * group_size(TrainingSettings.of(settings, CLASSES, 0), 10**9)
        run_id = RunId("random", "check", 0)
        return Run(_random_images(items), settings, run_id, self.device)


class Watched(Checkpoint):
    """A checkpoint that tells `watch` the number of states that it was offered, one a step; True makes the training stop."""

    def __init__(self, path: Path, fingerprint: str, seconds: float, watch: Callable[[int], bool]) -> None:
        super().__init__(path, fingerprint, seconds)
        self.watch, self.offered = watch, 0

    def offer(self, after: str, state: Callable[[], Mapping[str, Any]]) -> None:
        """Tell `watch`, then save if it is time to."""
        self.offered += 1
        if self.watch(self.offered):
            self._stop = "the check"
        super().offer(after, state)


def exactness(check: Check) -> list[Finding]:
    """Compare the fast schedule with Algorithm 3 and the streamed vote with Algorithm 4, in double precision."""
    settings, sizes = benchmark_settings(check.settings), check.settings["benchmark"]
    findings = []
    for _, _, setting, _, quantity, value in measure_exact(**sizes["exact"], settings=settings, device=check.device):
        if quantity == "difference":
            findings.append(Finding(f"parameters after an epoch, {setting}", value, f"< {EXACT}", value < EXACT))
    size, vote = settings["embedding_size"], sizes["inference"]
    for family in ("cosine", "gaussian"):
        kernel = build(family, size, "full").to(check.device).double()
        shape = (vote["check_test"], vote["check_references"], vote["classes"], size)
        embedded = random_embeddings(*shape, torch.float64, check.device)
        streamed = vote_streamed(kernel, *embedded)
        value = float((vote_printed(kernel, *embedded, vote["batch_size"]) - streamed).abs().max())
        findings.append(Finding(f"votes, kernel={family}", value, f"< {EXACT}", value < EXACT))
    return findings


def repetition(check: Check) -> list[Finding]:
    """Train twice, and once more with an interruption in the middle of an epoch: are the parameters the same bytes?"""
    findings = []
    for name, case in check.cases().items():
        run = check.run(case, groups=4, epochs=2)
        for mode in ("default", "deterministic"):
            try:
                with _algorithms(mode):
                    first, again = _trained_on(run, check.folder), _trained_on(run, check.folder)
                    _trained_on(run, check.folder, lambda step: step == 7)  # stops in the middle of epoch 2
                    resumed = _trained_on(run, check.folder, resume=True)
            except RuntimeError as error:  # an operation without a deterministic algorithm
                findings.append(Finding(f"{mode} algorithms, {name}", _place(error), "0", False))
                continue
            for what, other in (("two equal trainings", again), ("an interrupted training", resumed)):
                apart = max(float((first[key].double() - other[key].double()).abs().max()) for key in first)
                findings.append(Finding(f"{what}, {mode} algorithms, {name}", apart, "0", apart == 0))
    return findings


def synchronisation(check: Check) -> list[Finding]:
    """Make CUDA raise an error wherever the host waits for the device in a step."""
    if check.device.type != "cuda":
        raise Skipped("only CUDA can tell where the host waits for it")
    findings = []
    for name, case in check.cases().items():

        def watch(step: int) -> bool:
            # The first steps set up the optimiser and libraries; after the last one the epoch reads its figures.
            torch.cuda.set_sync_debug_mode("error" if 2 <= step < 8 else "default")
            return False

        try:
            _trained_on(check.run(case, groups=8, epochs=1), check.folder, watch)
            findings.append(Finding(f"steps that wait, {name}", 0, "0", True))
        except RuntimeError as error:
            findings.append(Finding(f"steps that wait, {name}", _place(error), "none", False))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return findings


def rate(check: Check) -> list[Finding]:
    """Compare the operations a second of a training step with those of a large product of matrices in its precision."""
    findings: list[Finding] = []
    peaks: dict[str, float] = {}
    for name, case in check.cases().items():
        precision = case["training"]["precision"]
        if precision not in peaks:
            peaks[precision] = _peak(check, getattr(torch, precision))
            findings.append(Finding(f"operations a second, product in {precision}", peaks[precision]))
        operations, seconds = _operations(check, case), _seconds(check, case)
        findings += [
            Finding(f"seconds a step, {name}", seconds),
            Finding(f"operations a step, {name}", operations),
            Finding(f"fraction of the product's rate, {name}", operations / seconds / peaks[precision]),
        ]
    return findings


def _random_images(items: int) -> Prepared:
    """Return random training images and a hundred of each other split, the classes in turn."""
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", items), ("val", 100), ("test", 100)):
        arrays[f"x_{split}"] = generator.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        arrays[f"y_{split}"] = np.arange(n, dtype=np.int64) % CLASSES
    used = {"mean": [127.5] * 3, "sd": [74.0] * 3}
    info = {
        "kind": "images",
        "classes": [str(k) for k in range(CLASSES)],
        "normalisation": {"train": used, "test": used},
    }
    return Prepared(info, arrays)


def _trained_on(
    run: Run, folder: Path, watch: Callable[[int], bool] = lambda step: False, resume: bool = False
) -> dict[str, Tensor]:
    """Train from the start, or from the state that the last training has left; return the parameters, none if it stopped."""
    path = folder / "check.pt"
    if not resume:
        path.unlink(missing_ok=True)
    with Watched(path, "check", math.inf, watch) as checkpoint:
        try:
            encoder, kernel = train_clai(run, checkpoint)[0]
        except SystemExit:
            return {}
    path.unlink(missing_ok=True)
    return nn.ModuleList([encoder, kernel]).state_dict()


def _operations(check: Check, case: Mapping[str, Any]) -> float:
    """Count the floating-point operations of a training step, loss and optimiser included."""
    counts: list[int] = []

    def watch(step: int) -> bool:
        counts.append(counter.get_total_flops())
        return step == 2

    with FlopCounterMode(display=False) as counter:
        _trained_on(check.run(case, groups=2, epochs=1), check.folder, watch)
    (check.folder / "check.pt").unlink()
    return counts[1] - counts[0]


def _seconds(check: Check, case: Mapping[str, Any], warm_up: int = 10, steps: int = 30) -> float:
    """Time a training step: the mean of `steps` after `warm_up`."""
    moments: list[float] = []

    def watch(step: int) -> bool:
        if step in (warm_up, warm_up + steps):
            wait(check.device)
            moments.append(time.perf_counter())
        return step == warm_up + steps

    _trained_on(check.run(case, groups=warm_up + steps, epochs=1), check.folder, watch)
    (check.folder / "check.pt").unlink()
    return (moments[1] - moments[0]) / steps


def _peak(check: Check, dtype: torch.dtype) -> float:
    """Return the operations a second of a product of two random square matrices: the median of ten products."""
    a, b = (torch.randn(check.size, check.size, device=check.device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(13):
        wait(check.device)
        start = time.perf_counter()
        a @ b
        wait(check.device)
        seconds.append(time.perf_counter() - start)
    return 2 * check.size**3 / median(seconds[3:])


@contextmanager
def _algorithms(mode: str) -> Iterator[None]:
    """Use torch's algorithms as they are, or only those that it calls deterministic."""
    torch.use_deterministic_algorithms(mode == "deterministic")
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _place(error: BaseException) -> str:
    """Return the first error of a chain in one line, with the last place in this library that it went through."""
    while error.__context__ is not None:
        error = error.__context__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "clai" in Path(frame.filename).parts]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: {str(error).splitlines()[0]}"
