"""Collaborative Inference: sums of similarities over a reference set, and the decision rules that follow from them.

Algorithms 2 and 4 build S for all test and reference samples and compute f = S y (y'y)^-1. Since y'y = N, f is a sum over
references. With the Parzen form G = (1 + S) / 2 of each similarity, it splits into sums over positives and over negatives:

    f = (1/N) sum_n S_n y_n = 2 [p g+ - (1 - p) g-] + (1 - 2p)

with class share p and mean Parzen similarities g+ and g-. All four rules are functions of (g+, g-, p), so one pass in fixed
memory serves them all. The pass keeps a sum for each class of the references, which is S times the indicator matrix Y of the
classes. The positives and negatives of every condition follow from these sums. A kernel that is an inner product of coordinates
needs no S: with coordinates Z, the product is Z (Z_R' Y), where Z_R' Y is an (L x C) matrix of sums.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from clailearn.alignment import checked_embeddings, checked_labels
from clailearn.errors import InputError
from clailearn.kernels import Kernel

Rule = Literal["printed", "centred", "balanced", "parzen"]
RULES: tuple[Rule, ...] = ("printed", "centred", "balanced", "parzen")
BLOCK, GPU_BLOCK = 1024, 4096
"""Samples a side of a block of similarities, on a CPU the fastest of those measured on two cores. It bounds memory."""
SUMS = 2**24
"""Sums of test samples, by condition and class, that are held at once."""


class ParzenMeans(NamedTuple):
    """Mean Parzen similarities of P test samples to positives and negatives of each of K conditions.

    * `log_positive`, `log_negative`: logarithms of the means, (K, P).
    * `share`: share of positives, (K, 1).
    """

    log_positive: Tensor
    log_negative: Tensor
    share: Tensor


def sample_references(labels: Tensor, number: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw references without replacement, equally many of each class as far as it has them; all where `number` is larger.

    Returns those drawn (n,), ascending, and the members of each class (classes,) in the whole set.

    Equal numbers give g+ and g- errors of like size however rare the positives are. They bias neither shares nor means:
    `parzen_means` gives each class its weight in the set.

    labels: class indices of all references (R,), 0 to classes - 1, each present.

    Raises InputError where `number` is less than one for each class.
    """
    population = torch.bincount(labels)
    if number < len(population):
        raise InputError(
            f"found {number} references to draw, expected at least one for each of {len(population)} classes; give a larger "
            "number (inference.references in the settings, max_references of an estimator)"
        )
    sizes, left = torch.zeros_like(population), min(number, len(labels))
    while left:  # the other classes share the part that a small class cannot fill; the first classes get a remainder
        growing = (sizes < population).nonzero()[:, 0][:left]
        step = torch.minimum((population - sizes)[growing], torch.tensor(max(1, left // len(growing))))
        sizes[growing] += step
        left -= int(step.sum())
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(labels), generator=generator)
    drawn = [shuffled[labels[shuffled] == c][: int(size)] for c, size in enumerate(sizes)]
    return torch.cat(drawn).sort().values, population


@torch.no_grad()
def parzen_means(
    kernel: Kernel,
    test: Tensor,
    reference: Tensor,
    labels: Tensor,
    population: Tensor | None = None,
    block: int | None = None,
    classes: int | None = None,
) -> ParzenMeans:
    """Return the mean Parzen similarities of each test sample to positives and negatives of each condition.

    Args:
        test: embeddings (K, P, L); of one embedding for C > 2 classes (1, P, L), and the result has K = C all the same.
        reference: embeddings (K, R, L), or (1, R, L).
        labels: class indices of the references (R,). Of two classes the positive one is 1.
        population: members of each class (classes,) in the set from which the references were drawn; None: all were.
        block: samples a side of a block of similarities; memory holds block x block of them. None: what suits the device.
        classes: C; None: K, or two for K = 1.

    Raises:
        ValueError: a class has no reference, or a label no class.
    """
    classes = classes or max(len(test), 2)
    block = block or (BLOCK if test.device.type == "cpu" else GPU_BLOCK)
    conditions, labels = 1 if classes == 2 else classes, labels.to(test.device)
    counts = torch.bincount(labels, minlength=classes)
    if len(counts) > classes:
        raise ValueError(f"a reference has label {len(counts) - 1}, but there are {classes} classes")
    if (counts == 0).any():
        raise ValueError(f"class {int((counts == 0).nonzero()[0])} has no reference sample")
    mass = (counts if population is None else population.to(counts.device)).to(test.dtype)
    rows = max(1, SUMS // (max(len(test), conditions) * classes))
    if test.shape[1] > rows:
        of_parts = [parzen_means(kernel, z, reference, labels, population, block, classes) for z in test.split(rows, 1)]
        positive, negative = (torch.cat(logs, 1) for logs in list(zip(*of_parts, strict=True))[:2])
        return ParzenMeans(positive, negative, of_parts[0].share)
    # The members that were drawn stand for all members of their class.
    log_sums = _log_sums(kernel, test, reference, labels, classes, block) - counts.to(test.dtype).log() + mass.log()
    # The positive class of each condition, (K, 1, classes). Two classes have one condition, that of class 1.
    positives = torch.eye(classes, dtype=torch.bool, device=test.device)[-conditions:].unsqueeze(1)
    positive, negative = (
        log_sums.masked_fill(~side, -math.inf).logsumexp(-1) - (side * mass).sum(-1).log()
        for side in (positives, ~positives)
    )
    return ParzenMeans(positive, negative, (positives * mass).sum(-1) / mass.sum())


def mean_of_views(*views: ParzenMeans) -> ParzenMeans:
    """Return the means of views of the same test samples, such as images and their mirror images, to the same references.

    The similarity of a test sample to a reference is then the mean over its views. All views have the same references.
    """
    positive, negative = (
        torch.stack(logs).logsumexp(0) - math.log(len(views))
        for logs in ([view.log_positive for view in views], [view.log_negative for view in views])
    )
    return ParzenMeans(positive, negative, views[0].share)


def _log_sums(kernel: Kernel, test: Tensor, reference: Tensor, labels: Tensor, classes: int, block: int) -> Tensor:
    """Return logarithms of sum_n G_n over references of each class, (K, P, classes)."""
    if kernel.inner_product:
        return _log_sums_in_closed_form(kernel, test, reference, labels, classes, block)
    # In the order of classes, a class is a slice of a block, and its sum needs no product with indicators.
    order = labels.argsort(stable=True)
    labels, reference = labels[order], reference[:, order]
    parts = [part.unique_consecutive(return_counts=True) for part in labels.cpu().split(block)]
    result = test.new_empty(len(test), test.shape[1], classes)
    for k, z in enumerate(test):
        for first in range(0, len(z), block):
            rows = slice(first, first + block)
            # Sums relative to the largest term of the class so far do not underflow, however far the class is.
            largest = z.new_full((len(z[rows]), classes), torch.finfo(z.dtype).min)
            sums = torch.zeros_like(largest)
            for references, (present, sizes) in zip(reference[k].split(block), parts, strict=True):
                parzen = kernel.log_parzen(z[rows], references)
                for c, part in zip(present.tolist(), parzen.split(sizes.tolist(), 1), strict=True):
                    now = torch.maximum(largest[:, c], part.amax(1))
                    part.sub_(now.unsqueeze(1)).exp_()
                    sums[:, c] = sums[:, c] * (largest[:, c] - now).exp() + part.sum(1)
                    largest[:, c] = now
            result[k, rows] = sums.log() + largest
    return result


def _log_sums_in_closed_form(
    kernel: Kernel, test: Tensor, reference: Tensor, labels: Tensor, classes: int, block: int
) -> Tensor:
    """Return `_log_sums` of an inner product: sum_n S_n = <z, sum_n z_n>."""
    member = nn.functional.one_hot(labels, classes).to(test.dtype)
    total = test.new_zeros(len(test), test.shape[-1], classes)
    for references, indicator in zip(reference.split(block, dim=1), member.split(block), strict=True):
        total += kernel.coordinates(references).mT @ indicator
    similarity = kernel.coordinates(test) @ total
    return ((member.sum(0) + similarity) / 2).clamp_min(torch.finfo(similarity.dtype).tiny).log()


def decide(means: ParzenMeans, rule: Rule) -> Tensor:
    """Return f, shape (K, P): f > 0 is the positive class (binary); the condition of the largest f is the class (multiclass).

    * `printed`: f = S y (y'y)^-1 (equation 10). Far from all data, its offset 1 - 2p remains.
    * `centred`: the same with labels centred, (1/N) S (y - mean y) = 4 p (1 - p) (g+ - g-).
    * `balanced`: the mean similarity to positives minus the mean similarity to negatives, 2 (g+ - g-).
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
        return torch.tanh(_log_odds(means) / 2)
    raise ValueError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")


def vote(kernel: Kernel, embeddings: Tensor, references: Tensor, labels: Tensor, rule: Rule = "printed") -> Tensor:
    """Return f of samples by the votes of references: (P, C), whose largest is the class; of two classes (P,), f > 0 for class 1.

    Args:
        kernel: compares embeddings.
        embeddings: of P samples, (P, L), or (K, P, L) under K conditions.
        references: embeddings of R references, (R, L) or (K, R, L).
        labels: class indices of the references (R,), 0 to C - 1, each present.
        rule: see `decide`.
    """
    embeddings, references = checked_embeddings(kernel, embeddings, references)
    labels = checked_labels(labels, references, references.shape[-2]).long()
    classes = max(int(labels.max()) + 1, 2)
    if embeddings.ndim == references.ndim == 2:
        embeddings, references = embeddings.unsqueeze(0), references.unsqueeze(0)
    conditions = 1 if classes == 2 else classes
    if embeddings.ndim != 3 or len(embeddings) not in (1, conditions) or len(references) != len(embeddings):
        raise ValueError(
            f"found embeddings of shape {tuple(embeddings.shape)} and references of shape {tuple(references.shape)}, expected "
            f"(P, L) and (R, L), or ({conditions}, P, L) and ({conditions}, R, L) for labels of {classes} classes"
        )
    with torch.autocast(embeddings.device.type, enabled=False):
        f = decide(parzen_means(kernel, embeddings, references, labels, classes=classes), rule)
    return f[0] if len(f) == 1 else f.T


def log_posteriors(means: ParzenMeans) -> Tensor:
    """Return logarithms (K, P) of the posterior of each condition's class by Parzen densities; `parzen` is twice it minus 1.

    Every condition has embeddings of its own, so the posteriors of a sample need not add up to 1. A softmax of their
    logarithms normalises them.
    """
    return nn.functional.logsigmoid(_log_odds(means)).clamp_min(math.log(torch.finfo(means.share.dtype).tiny))


def _log_odds(means: ParzenMeans) -> Tensor:
    """Return the logarithm of the Parzen posterior odds, (K, P); 0 where both densities are 0."""
    p = means.share
    return (means.log_positive - means.log_negative + p.log() - torch.log1p(-p)).nan_to_num(
        0.0, posinf=math.inf, neginf=-math.inf
    )


def scores_by(means: ParzenMeans, rule: Rule) -> Tensor:
    """Return scores of the classes (P, C), of which the largest is the class; of two classes one is the negative of the other.

    They are f of the rule. By `parzen`, whose f rounds to 1 far from the references, they are logarithms of posteriors; of two
    classes those of the odds.
    """
    if rule != "parzen":
        return class_scores(decide(means, rule))
    odds = _log_odds(means).nan_to_num()
    if len(odds) == 1:
        return class_scores(odds)
    # Far from the references the logarithm would round to 0 for several classes. Beyond `most` 1 / odds keeps their order.
    most = 80.0 if odds.dtype == torch.float32 else 700.0
    far = -most * math.exp(-most) / odds.clamp_min(most)
    return class_scores(torch.where(odds > most, far, nn.functional.logsigmoid(odds)))


def class_scores(f: Tensor) -> Tensor:
    """Return f of K conditions, (K, P), as scores of the classes, (P, C), of two -f and f.

    The largest is the class: the argmax over conditions (Algorithm 4), or the sign of f (Algorithm 2).
    """
    return f.T if len(f) > 1 else torch.cat([-f, f]).T
