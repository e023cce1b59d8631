"""Collaborative Inference: similarity sums over a reference set, streamed, and the decision rules made from them.

Algorithms 2 and 4 build S for all test and reference samples and compute f = S y (y'y)^-1. Since y'y = N, f is a sum over
references, split here into sums over positives and over negatives of the Parzen form G = (1 + S) / 2 of each similarity:

    f = (1/N) sum_n S_n y_n = 2 [p g+ - (1 - p) g-] + (1 - 2p)

with class share p and mean Parzen similarities g+ and g-. All four rules are functions of (g+, g-, p), so one pass with fixed
memory serves them all. The pass keeps sums by class of the references, from which the positives and negatives of every
condition follow: S times the indicator matrix of the classes. An inner-product kernel needs no S for that product: with
unit-length embeddings it is Z (Z_R' Y), an (L x C) matrix of sums and one product with it.

Over a sample of the references (`sample_references`) the same means are estimates: a class stands for all its members, whatever
its share of the sample, and `standard_error` says how far f may be from its value over all references.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from clai.errors import InputError
from clai.kernels import Kernel

Rule = Literal["printed", "centred", "balanced", "parzen"]
RULES: tuple[Rule, ...] = ("printed", "centred", "balanced", "parzen")


class ParzenMeans(NamedTuple):
    """Mean Parzen similarities to positives and negatives of each condition, for P test samples.

    `log_positive`, `log_negative`: their logarithms (K, P). `share`: shares of positives (K, 1). `error_positive`,
    `error_negative`: standard errors of the means over a sample of the references, relative to the means, (K, P); 0 over all.
    """

    log_positive: Tensor
    log_negative: Tensor
    share: Tensor
    error_positive: Tensor
    error_negative: Tensor


class Sample(NamedTuple):
    """References drawn from a larger set: their `items` (n,), ascending, and how many of each class the set has, (classes,)."""

    items: Tensor
    population: Tensor


def sample_references(labels: Tensor, number: int, seed: int) -> Sample:
    """`number` references without replacement, as equally many of each class as there are.

    Equally many, because g+ and g- then have errors alike however rare the positives are; with class shares as in the set, a
    rare class would be known from few samples. Shares and means are not biased by it: `parzen_means` gives each class the
    weight that it has in the set.

    Args:
        labels: class indices of all references (R,), 0 to classes - 1, each present.

    Raises:
        InputError: `number` allows fewer than two samples of a class that has them, so that no error could be estimated.
    """
    population = torch.bincount(labels)
    if number < 2 * len(population):
        raise InputError(
            f"inference.references is {number}, fewer than two for each of {len(population)} classes: give a larger number or all"
        )
    sizes, left = torch.zeros_like(population), min(number, len(labels))
    while left:  # what a small class leaves over goes to the others; the first classes get a remainder
        growing = (sizes < population).nonzero()[:, 0][:left]
        step = torch.minimum((population - sizes)[growing], torch.tensor(max(1, left // len(growing))))
        sizes[growing] += step
        left -= int(step.sum())
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(labels), generator=generator)
    chosen = [shuffled[labels[shuffled] == c][: int(size)] for c, size in enumerate(sizes)]
    return Sample(torch.cat(chosen).sort().values, population)


@torch.no_grad()
def parzen_means(
    kernel: Kernel,
    test: Tensor,
    reference: Tensor,
    labels: Tensor,
    block: int,
    population: Tensor | None = None,
    equal: bool = False,
) -> ParzenMeans:
    """Mean Parzen similarity of each test sample to the positives and to the negatives of each condition.

    Args:
        kernel: a kernel of `clai.kernels`.
        test: embeddings (K, P, L).
        reference: embeddings (K, R, L).
        labels: class indices of the references (R,): K classes, or two (the positive one is 1) for K = 1.
        block: samples a side of the blocks in which similarities are computed; memory is block x block similarities.
        population: members of each class (classes,) in the set that the references are a sample of; None: they are the set.
        equal: whether every class counts alike, whatever its members.

    Raises:
        ValueError: a class has no reference, or a label no class.
    """
    conditions, classes, labels = len(test), max(len(test), 2), labels.to(test.device)
    counts = torch.bincount(labels, minlength=classes)
    if len(counts) > classes:
        raise ValueError(f"a reference has label {len(counts) - 1}, but there are {classes} classes")
    if (counts == 0).any():
        raise ValueError(f"class {int((counts == 0).nonzero()[0])} has no reference sample")
    whole = counts if population is None else population.to(counts.device)
    first, second = _log_sums(kernel, test, reference, labels, classes, block, bool((whole > counts).any()))

    # Strata are classes: variance of each class's mean by simple random sampling without replacement.
    n, mass = counts.to(test.dtype), (torch.ones_like(whole) if equal else whole).to(test.dtype)
    log_mean = first - n.log()
    variance = torch.zeros_like(log_mean)
    if second is not None:
        spread = (second + n.log() - 2 * first).expm1().clamp_min(0)  # E G^2 / (E G)^2 - 1
        variance = (spread / (n - 1).clamp_min(1) * (1 - n / whole)).nan_to_num(0.0)
    log_weighted = log_mean + mass.log()
    positives = torch.eye(classes, dtype=torch.bool, device=test.device)[-conditions:].unsqueeze(1)  # (K, 1, classes)
    means, errors = [], []
    for side in (positives, ~positives):
        log_sum = log_weighted.masked_fill(~side, -math.inf).logsumexp(-1)
        weight = (log_weighted - log_sum.unsqueeze(-1)).exp().nan_to_num(0.0)
        errors.append((weight.square() * variance).masked_fill(~side, 0).sum(-1).sqrt())
        means.append(log_sum - (side * mass).sum(-1).log())
    share = (positives * mass).sum(-1) / mass.sum()
    return ParzenMeans(means[0], means[1], share, errors[0], errors[1])


def _log_sums(
    kernel: Kernel, test: Tensor, reference: Tensor, labels: Tensor, classes: int, block: int, squares: bool
) -> tuple[Tensor, Tensor | None]:
    """Logarithms of sum_n G_n and, if asked for, of sum_n G_n^2 over the references of each class, each (K, P, classes)."""
    if kernel.inner_product:
        return _log_sums_in_closed_form(kernel, test, reference, labels, classes, block, squares)
    powers = (1, 2) if squares else (1,)
    members = [(labels == c).nonzero()[:, 0] for c in range(classes)]
    result = test.new_empty(len(powers), len(test), test.shape[1], classes)
    for k, z in enumerate(test):
        of_class = [reference[k, own].split(block) for own in members]
        for first in range(0, len(z), block):
            rows = slice(first, first + block)
            # Sums are kept relative to the largest term so far, so that they do not underflow far from all references.
            largest = z.new_full((len(z[rows]), 1), torch.finfo(z.dtype).min)
            sums = z.new_zeros(len(powers), len(z[rows]), classes)
            for c, blocks in enumerate(of_class):
                for references in blocks:
                    parzen = kernel.log_parzen(z[rows], references)
                    now = torch.maximum(largest, parzen.amax(1, keepdim=True))
                    parzen.sub_(now).exp_()
                    for power, total in zip(powers, sums, strict=True):
                        total.mul_((power * (largest - now)).exp())
                        total[:, c] += parzen.sum(1) if power == 1 else parzen.square_().sum(1)
                    largest = now
            for power, total in zip(powers, sums, strict=True):
                result[power - 1, k, rows] = total.log() + power * largest
    return result[0], result[1] if squares else None


def _log_sums_in_closed_form(
    kernel: Kernel, test: Tensor, reference: Tensor, labels: Tensor, classes: int, block: int, squares: bool
) -> tuple[Tensor, Tensor | None]:
    """`_log_sums` of S = <z, z_n>: sum_n S_n = <z, sum_n z_n> and sum_n S_n^2 = z' (sum_n z_n z_n') z."""
    conditions, size = len(test), test.shape[-1]
    member = nn.functional.one_hot(labels, classes).to(test.dtype)
    total = test.new_zeros(conditions, size, classes)
    outer = test.new_zeros(classes, conditions, size, size)
    for references, own in zip(reference.split(block, dim=1), member.split(block), strict=True):
        z = kernel.coordinates(references)
        total += z.mT @ own
        if squares:
            for c in range(classes):
                outer[c] += (z * own[:, c : c + 1]).mT @ z
    n = member.sum(0)
    z = kernel.coordinates(test)
    first = z @ total
    log_first = ((n + first) / 2).clamp_min(0).log()
    if not squares:
        return log_first, None
    second = torch.stack([((z @ matrix) * z).sum(-1) for matrix in outer], dim=-1)
    return log_first, ((n + 2 * first + second) / 4).clamp_min(0).log()


def decide(means: ParzenMeans, rule: Rule) -> Tensor:
    """f, shape (K, P): above 0 says the condition's class (binary); the largest over conditions says the class (multiclass).

    * `printed`: f = S y (y'y)^-1 (equation 12, line 318). Its offset 1 - 2p remains far from all data.
    * `centred`: the same with labels centred, (1/N) S (y - mean y) = 4 p (1 - p) (g+ - g-).
    * `balanced`: mean similarity to positives minus mean similarity to negatives, 2 (g+ - g-).
    * `parzen`: the Bayes rule with Parzen densities, (p g+ - (1-p) g-) / (p g+ + (1-p) g-), twice the posterior minus 1.
    """
    p, positive, negative = means.share, means.log_positive.exp(), means.log_negative.exp()
    if rule == "printed":
        return 2 * (p * positive - (1 - p) * negative) + (1 - 2 * p)
    if rule == "centred":
        return 4 * p * (1 - p) * (positive - negative)
    if rule == "balanced":
        return 2 * (positive - negative)
    if rule == "parzen":
        odds = means.log_positive - means.log_negative + p.log() - torch.log1p(-p)
        return torch.tanh(odds / 2).nan_to_num(0.0)
    raise ValueError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")


def standard_error(means: ParzenMeans, rule: Rule) -> Tensor:
    """Standard error of f, (K, P), from the sampling of the references; to first order for `parzen`, 0 over all references.

    The two means rest on different strata, so their errors are independent.
    """
    p = means.share
    positive, negative = (
        log.exp() * error
        for log, error in ((means.log_positive, means.error_positive), (means.log_negative, means.error_negative))
    )
    if rule == "printed":
        return 2 * torch.hypot(p * positive, (1 - p) * negative)
    if rule == "centred":
        return 4 * p * (1 - p) * torch.hypot(positive, negative)
    if rule == "balanced":
        return 2 * torch.hypot(positive, negative)
    if rule == "parzen":
        return (1 - decide(means, rule).square()) / 2 * torch.hypot(means.error_positive, means.error_negative)
    raise ValueError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")


def probabilities(f: Tensor) -> Tensor:
    """Probabilities, shape (P, classes): the paper's softmax over f (K > 1), or our [(1 - f) / 2, (1 + f) / 2] (K = 1)."""
    if len(f) > 1:
        return f.T.softmax(1)
    positive = ((1 + f[0]) / 2).clamp(0, 1)
    return torch.stack([1 - positive, positive], 1)


def predict_labels(f: Tensor) -> Tensor:
    """Class indices (P,): argmax over conditions (Algorithm 4), or the sign of f (Algorithm 2)."""
    return f.argmax(0) if len(f) > 1 else (f[0] > 0).long()
