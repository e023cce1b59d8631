"""Differences between models of samples, with the uncertainty of seeds and of test samples together.

Runs of all models are scored on the same test samples, so differences are paired by sample, and by seed. McNemar's test would
take the runs at hand for all that training can give, and a t-interval over seeds the test samples for all that there are. The
model here has both as random: a difference is the mean over S seeds that are crossed with the same samples, as readers and cases
are in the analysis of multi-reader studies (Obuchowski & Rockette 1995, Commun. Stat. Simul. Comput. 24:285-308; Hillis 2007,
Stat. Med. 26:596-619, for the degrees of freedom).

The samples' part of the variance comes from a paired bootstrap, which draws groups of samples that resemble each other, such as
the epochs of a sleeper (Efron & Tibshirani 1993). The seeds' part comes from their spread: two to five seeds are too few to be
drawn, since percentiles of such draws never leave the range of the seeds. The interval is a Student t with the degrees of
freedom of both parts. In simulations with normal parts it covers about as often as it says; where the spread of seeds is
several times that of the samples it covers .88 of the time with two seeds, .91 with three and .94 with five.

The metrics of each model alone have intervals of the same kind.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from replication.metrics.bootstrap import DRAWS, LEVEL, Predictions, Ranked, in_parts
from replication.metrics.classification import ECE_BINS, of_classes, ranked_classes, top_label
from replication.runs.run import COLUMNS

Floats = NDArray[np.float64]
METRICS = ("accuracy", "macro_f1", "ece", "ece_scaled", "roc_auc")


class Difference(NamedTuple):
    """A difference with its 95 % interval and two-sided p-value; the last three are NaN where nothing varies."""

    value: float
    low: float
    high: float
    p: float


def compare_models(
    y: NDArray[np.int64], groups: NDArray[np.int64], runs: Mapping[str, Mapping[int, Predictions]], draws: int = DRAWS
) -> pd.DataFrame:
    """Return the differences in `METRICS` between each model and each one behind it, then the `METRICS` of each model alone.

    Models are compared over the seeds that both have. A model with one run is compared with every run of the other; the
    interval then lacks the spread of its own seeds, and lacks that of all seeds if the other has one run as well.

    y: class indices of the test samples (N,). groups: of samples that resemble each other (N,), which the bootstrap draws
    together. runs: by model, in the order of tables, and by seed. Returns the columns of `comparisons.csv`: other and p are
    empty for a model alone, samples is the number of groups.
    """
    names, group = np.unique(groups, return_inverse=True)
    share = np.full(len(names), 1 / len(names))
    drawn = np.random.default_rng(0).multinomial(len(names), share, size=draws)
    weights = np.concatenate([np.ones((1, len(names))), drawn])  # first the sample itself
    measured = {
        model: {seed: in_parts(_measure_of(y, group, len(names), one), weights) for seed, one in of_seeds.items()}
        for model, of_seeds in runs.items()
    }
    rows = []
    for model, other in [*combinations(runs, 2), *((model, "") for model in runs)]:
        alone = list(measured[model].values())
        values = [a - b for a, b in _pairs(measured[model], measured[other])] if other else alone
        of_draws = np.stack(values, axis=1)  # (draws + 1, seeds, metrics)
        for k, metric in enumerate(METRICS):
            found = paired_difference(of_draws[0, :, k], of_draws[1:, :, k], len(names))
            tested = found if other else found._replace(p=float("nan"))
            rows.append((model, other, metric, *tested, len(names), len(values), draws))
    return pd.DataFrame(rows, columns=COLUMNS["comparisons.csv"])


def _pairs(first: Mapping[int, Floats], second: Mapping[int, Floats]) -> list[tuple[Floats, Floats]]:
    """Return the measurements of two models that are compared with each other, by seed; ValueError without a common one."""
    if len(first) == 1 or len(second) == 1:
        return [(one, other) for one in first.values() for other in second.values()]
    common = [seed for seed in first if seed in second]
    if not common:
        raise ValueError(f"found the seeds {sorted(first)} and {sorted(second)}, expected some in common: train these")
    return [(first[seed], second[seed]) for seed in common]


def paired_difference(of_seeds: Floats, drawn: Floats, groups: int) -> Difference:
    """Return the mean difference over seeds with its interval over seeds and samples.

    Of the variance of the mean, c is the part of the samples that seeds share, the mean covariance between seeds over draws.
    The spread of the S seeds, s^2 / S, has the rest: what training adds, and what samples add to each seed alone. It counts at
    least as much as the draws show for the latter, so that the variance is never below that of the samples.

    of_seeds: differences on the test samples (S,). drawn: the same on bootstrap samples (B, S) of so many groups; draws with a
    NaN do not count.
    """
    seeds, value = len(of_seeds), float(of_seeds.mean())
    drawn = drawn[~np.isnan(drawn).any(1)]
    unknown = Difference(value, float("nan"), float("nan"), float("nan"))
    if len(drawn) < 2 or groups < 2:
        return unknown
    # A draw of G groups varies (G - 1) / G as much as a new sample of them.
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False)) * groups / (groups - 1)
    of_samples = covariance.mean()
    variance, freedom = of_samples, groups - 1.0
    if seeds > 1:
        shared = (covariance.sum() - np.trace(covariance)) / (seeds * (seeds - 1))
        of_training = of_seeds.var(ddof=1) / seeds
        if of_training > of_samples - shared:
            shared = max(shared, 0.0)  # an estimate below 0 is chance
            variance = shared + of_training
            freedom = variance**2 / (of_training**2 / (seeds - 1) + shared**2 / (groups - 1))
    if not variance > 0:
        return unknown
    error = float(np.sqrt(variance))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    return Difference(value, value - half, value + half, 2 * float(stdtr(freedom, -abs(value) / error)))


def _measure_of(
    y: NDArray[np.int64], group: NDArray[np.intp], count: int, predicted: Predictions
) -> Callable[[Floats], Floats]:
    """Return the function from weights of groups (draws, count) to `METRICS` (draws, metrics).

    All but the areas under ROC curves follow from sums over samples, so that a matrix of sums by group serves every draw.
    """
    probability, calibrated = (of_classes(part) for part in (predicted.probability, predicted.calibrated))
    classes = probability.shape[1]
    labels, called = (np.eye(classes)[indices] for indices in (y, probability.argmax(1)))
    _, correct = top_label(y, probability)
    columns = [np.ones((len(y), 1)), correct[:, None], labels, called, labels * called]
    for part in (probability, calibrated):
        confidence, hit = top_label(y, part)
        place = np.digitize(confidence, np.linspace(0, 1, ECE_BINS + 1)[1:-1])
        columns.append(np.eye(ECE_BINS)[place] * (confidence - hit)[:, None])
    per_sample = np.concatenate(columns, axis=1)
    sums = np.stack([np.bincount(group, weights=column, minlength=count) for column in per_sample.T], axis=1)
    ends = np.cumsum([column.shape[1] for column in columns])[:-1]
    ranked = [Ranked(y == k, probability[:, k], group, count) for k in ranked_classes(classes)]

    def measure(weight: Floats) -> Floats:
        total, right, true, said, agreed, raw, scaled = np.split(weight @ sums, ends, axis=1)
        occurs = true + said > 0
        f1 = np.divide(2 * agreed, true + said, out=np.zeros_like(true), where=occurs).sum(1) / occurs.sum(1)
        errors = (np.abs(part).sum(1) / total[:, 0] for part in (raw, scaled))
        areas = np.mean([of_class.areas(weight)[:, 0] for of_class in ranked], axis=0)
        return np.stack([right[:, 0] / total[:, 0], f1, *errors, areas], axis=1)

    return measure
