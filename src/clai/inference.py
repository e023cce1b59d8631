"""Collaborative Inference: similarity sums over a reference set, streamed, and the decision rules made from them.

Algorithms 2 and 4 build S for all test and reference samples and compute f = S y (y'y)^-1. Since y'y = N, f is a sum over
references, split here into sums over positives and over negatives of the Parzen form G = (1 + S) / 2 of each similarity:

    f = (1/N) sum_n S_n y_n = 2 [p g+ - (1 - p) g-] + (1 - 2p)

with class share p and mean Parzen similarities g+ and g-. All four rules are functions of (g+, g-, p), so one pass with fixed
memory serves them all; an inner-product kernel needs no pass, as sum_n <z, z_n> = <z, sum_n z_n>.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from clai.kernels import Cosine, Kernel

Rule = Literal["paper", "centred", "balanced", "parzen"]
RULES: tuple[Rule, ...] = ("paper", "centred", "balanced", "parzen")


class ParzenMeans(NamedTuple):
    """Logarithms of mean Parzen similarities to positives and negatives, each (K, P), and the shares of positives (K, 1)."""

    log_positive: Tensor
    log_negative: Tensor
    share: Tensor


@torch.no_grad()
def parzen_means(kernel: Kernel, test: Tensor, reference: Tensor, signs: Tensor, block: int) -> ParzenMeans:
    """Mean Parzen similarity of each test sample to the positives and to the negatives of each condition.

    Args:
        kernel: a kernel of `clai.kernels`.
        test: embeddings (K, P, L).
        reference: embeddings (K, R, L).
        signs: labels of the references as signs (K, R), both signs present in each condition.
        block: samples a side of the blocks in which similarities are computed; memory is block x block similarities.

    Raises:
        ValueError: a condition has no positive or no negative reference.
    """
    counts = (signs > 0).sum(1), (signs < 0).sum(1)
    for name, count in zip(("positive", "negative"), counts, strict=True):
        if (count == 0).any():
            raise ValueError(f"condition {int((count == 0).nonzero()[0])} has no {name} reference sample")
    share = (counts[0].to(test.dtype) / signs.shape[1]).unsqueeze(1)
    means = []
    for wanted, count in zip((1, -1), counts, strict=True):
        rows = [_log_sum(kernel, test[k], reference[k][signs[k] * wanted > 0], block) for k in range(len(test))]
        means.append(torch.stack(rows) - count.to(test.dtype).log().unsqueeze(1))
    return ParzenMeans(means[0], means[1], share)


def _log_sum(kernel: Kernel, test: Tensor, reference: Tensor, block: int) -> Tensor:
    """log sum_n (1 + S_n) / 2 over references (R, L) for each of (P, L), shape (P,)."""
    if isinstance(kernel, Cosine):
        # sum_n <z, z_n> = <z, sum_n z_n>: one product with the sum of the references.
        total = kernel.inner_product_embedding(reference).sum(0)
        parzen = (len(reference) + kernel.inner_product_embedding(test) @ total) / 2
        return parzen.clamp_min(0).log()
    rows = []
    for anchors in test.split(block):
        log_sum = torch.full((len(anchors),), -math.inf, dtype=test.dtype, device=test.device)
        for references in reference.split(block):
            log_sum = torch.logaddexp(log_sum, kernel.log_parzen(anchors, references).logsumexp(-1))
        rows.append(log_sum)
    return torch.cat(rows)


def decide(means: ParzenMeans, rule: Rule) -> Tensor:
    """f, shape (K, P): above 0 says the condition's class (binary); the largest over conditions says the class (multiclass).

    * `paper`: f = S y (y'y)^-1 (equation 12, line 343). Its offset 1 - 2p remains far from all data.
    * `centred`: the same with labels centred, (1/N) S (y - mean y) = 4 p (1 - p) (g+ - g-).
    * `balanced`: mean similarity to positives minus mean similarity to negatives, 2 (g+ - g-).
    * `parzen`: the Bayes rule with Parzen densities, (p g+ - (1-p) g-) / (p g+ + (1-p) g-), twice the posterior minus 1.
    """
    p, positive, negative = means.share, means.log_positive.exp(), means.log_negative.exp()
    if rule == "paper":
        return 2 * (p * positive - (1 - p) * negative) + (1 - 2 * p)
    if rule == "centred":
        return 4 * p * (1 - p) * (positive - negative)
    if rule == "balanced":
        return 2 * (positive - negative)
    if rule == "parzen":
        odds = means.log_positive - means.log_negative + p.log() - torch.log1p(-p)
        return torch.tanh(odds / 2).nan_to_num(0.0)
    raise ValueError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")


def probabilities(f: Tensor) -> Tensor:
    """The paper's mapping to probabilities, shape (P, classes): softmax over f (K > 1), or [(1 - f) / 2, (1 + f) / 2] (K = 1)."""
    if len(f) > 1:
        return f.T.softmax(1)
    positive = ((1 + f[0]) / 2).clamp(0, 1)
    return torch.stack([1 - positive, positive], 1)


def predict_labels(f: Tensor) -> Tensor:
    """Class indices (P,): argmax over conditions (Algorithm 4), or the sign of f (Algorithm 2)."""
    return f.argmax(0) if len(f) > 1 else (f[0] > 0).long()
