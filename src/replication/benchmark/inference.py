"""Measure inference on random embeddings: Algorithm 4 as printed, the streamed vote, and votes of sampled references."""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clai import algorithms_as_printed as printed
from clai.inference import decide, parzen_means, predict_labels, sample_references, standard_error
from clai.kernels import Kernel, MahalanobisGaussian, build
from replication.benchmark.memory import peak, peaks_alone
from replication.benchmark.timing import Row, time_in_turn, wait


@dataclass(frozen=True)
class InferenceCase:
    """An inference on random embeddings whose memory is measured.

    variant: `printed` (Algorithm 4) or `streamed`. family: of the kernel. test, references: numbers of samples.
    batch_size: of the references in Algorithm 4.
    """

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
        """Return the sizes as the column `setting` has them."""
        return f"kernel={self.family};P={self.test};R={self.references};C={self.classes}"

    def peak_memory(self) -> float:
        """Run the inference and return the MiB of the whole process, libraries and embeddings included."""
        device, size = torch.device(self.device), self.settings["embedding_size"]
        embedded = random_embeddings(self.test, self.references, self.classes, size, torch.float32, device)
        kernel = build(self.family, size, self.settings["kernel"]["metric"]).to(device)
        if self.variant == "printed":
            vote_printed(kernel, *embedded, self.batch_size)
        else:
            vote_streamed(kernel, *embedded)
        return peak(self.device)


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
    """Measure time and peak memory of the vote of Algorithm 4, which builds the matrix S, and of the streamed vote.

    The rows of `difference` compare both votes in double precision.

    Args:
        test, references: numbers of samples.
        batch_size: of the references in Algorithm 4, which drops an incomplete batch: a divisor of `references` and
            `check_references`.
        printed_classes: by kernel, the number of classes timed. Algorithm 4 takes classes one after another, each at the
            same cost, so a few of them tell the time of all.
        check_test, check_references: sizes in double precision.
    """
    size = settings["embedding_size"]
    rows: list[Row] = []
    cases: list[InferenceCase] = []
    for family, timed in printed_classes.items():
        z, z_reference, labels = random_embeddings(test, references, timed, size, torch.float32, device)
        kernel = build(family, size, settings["kernel"]["metric"]).to(device)
        setting = f"kernel={family};P={test};R={references};C={timed}"
        run_printed = partial(vote_printed, kernel, z, z_reference, labels, batch_size)
        run_streamed = partial(vote_streamed, kernel, z, z_reference, labels)
        preparations = {
            "printed": (setting, lambda run=run_printed: run),
            "streamed": (setting, lambda run=run_streamed: run),
        }
        rows += time_in_turn("inference", preparations, repetitions, device)
        embedded = random_embeddings(check_test, check_references, classes, size, torch.float64, device)
        precise = build(family, size, settings["kernel"]["metric"]).to(device).double()
        difference = (vote_printed(precise, *embedded, batch_size) - vote_streamed(precise, *embedded)).abs().max()
        setting = f"kernel={family};P={check_test};R={check_references};C={classes}"
        rows.append(("inference", "streamed", setting, 0, "difference", float(difference)))
        cases += [
            InferenceCase(variant, family, test, references, conditions, batch_size, settings, device.type)
            for variant, conditions in (("printed", 1), ("streamed", 1), ("streamed", classes))
        ]
    peaks = zip(cases, peaks_alone(cases), strict=True)
    return rows + [("inference", case.variant, case.setting, 0, "peak_memory_mb", value) for case, value in peaks]


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
    """Measure how far the votes of sampled references are from the vote of all, with the Gaussian kernel.

    The task has `classes` classes of equal shares, or two, of which the positive one has the share `share`. A repetition
    is a sample of references. Quantities for each decision rule:

    error
        Root mean square difference from the vote of all, over test samples and conditions.
    stated
        Root mean square of the standard error that the vote states.
    changed
        Share of test samples that get another class.
    seconds
        Of a vote.

    Args:
        numbers: the numbers of sampled references.
    """
    size = settings["embedding_size"]
    kernel = build("gaussian", size, settings["kernel"]["metric"]).to(device)
    rows: list[Row] = []
    for conditions, positive in ((classes, 1 / classes), (1, share)):
        z, z_reference, labels = random_embeddings(test, references, conditions, size, torch.float32, device, positive)
        whole = parzen_means(kernel, z, z_reference, labels)
        for number, repetition in itertools.product(numbers, range(repetitions)):
            items, population = sample_references(labels.cpu(), number, repetition)
            rows_sampled = items.to(device)
            start = time.perf_counter()
            means = parzen_means(kernel, z, z_reference[:, rows_sampled], labels[rows_sampled], population)
            wait(device)
            seconds = time.perf_counter() - start
            for rule in ("printed", "balanced", "parzen"):
                f, f_all = decide(means, rule), decide(whole, rule)
                quantities = {
                    "seconds": seconds,
                    "error": float((f - f_all).square().mean().sqrt()),
                    "stated": float(standard_error(means, rule).square().mean().sqrt()),
                    "changed": float((predict_labels(f) != predict_labels(f_all)).double().mean()),
                }
                setting = f"C={max(conditions, 2)};share={positive:g};R={references};n={number}"
                rows += [
                    ("sampling", rule, setting, repetition, quantity, value) for quantity, value in quantities.items()
                ]
    return rows


def random_embeddings(
    test: int, references: int, conditions: int, size: int, dtype: torch.dtype, device: torch.device, share: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw test (K, P, L) and reference (K, R, L) embeddings and the labels (R,) of the references.

    Condition k shifts the embeddings of class k; a single condition shifts those of class 1.

    Args:
        test, references, conditions, size: P, R, K and L.
        share: of class 1 where K = 1. Classes have equal shares where it is 0, or K is more.
    """
    generator = torch.Generator().manual_seed(0)
    classes = max(conditions, 2)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.arange(count) % classes
        if conditions == 1 and share:
            labels = (torch.arange(count) < share * count).long()
        labels = labels[torch.randperm(count, generator=generator)]
        z = torch.randn(conditions, count, size, generator=generator)
        shifted = labels == (torch.tensor([[1]]) if conditions == 1 else torch.arange(conditions)[:, None])
        z[:, :, 0] += 3 * shifted
        return z.to(device, dtype), labels.to(device)

    (z, _), (z_reference, labels) = draw(test), draw(references)
    return z, z_reference, labels


@torch.no_grad()
def vote_printed(kernel: Kernel, z: Tensor, z_reference: Tensor, labels: Tensor, batch_size: int) -> Tensor:
    """Return f (K, P) of Algorithm 4, or of Algorithm 2 for one condition, with phi a look-up of the embeddings."""
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


def vote_streamed(kernel: Kernel, z: Tensor, z_reference: Tensor, labels: Tensor) -> Tensor:
    """Return f (K, P) of the decision rule `printed`, without S in memory."""
    return decide(parzen_means(kernel, z, z_reference, labels), "printed")
