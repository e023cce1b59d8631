"""Claims on the multiclass datasets: accuracy, calibration, table 1, the embedding, the hardest dataset (1, 2, 4, 12, 16)."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.report.claims.finding import DIFFERENCE, NUMBER, PAIR, PER_CENT, POINTS, Finding, Place, Role, Unit
from replication.report.claims.hypothesis import LESS, MORE, Hypothesis, Outcome, decided, some_of
from replication.report.claims.sources import KERNELS, M_MINUS_C, MULTICLASS, TARGETS, multiclass_sources, of_vote
from replication.report.printed_values import printed_value
from replication.report.statistics import FEWEST, Interval, gap, interval, minus_printed, over_samples, values
from replication.runs.registry import COMPARED, EMBEDDINGS, MODELS

SIGNIFICANCE = 0.05
SAME_SETTINGS = {
    "same-settings-pathmnist": {"zero": ("pathmnist", "clai-c"), "product": ("product-pathmnist", "cosine_product")},
    "same-settings-bands": {"zero": ("sleepedf-bands", "clai-c"), "product": ("product-bands", "cosine_product")},
}
"""Studies of CLaI-M with the settings of CLaI-C, with the runs of CLaI-C by target."""
THE_PRINTED = Hypothesis("value")
# The groups that the paper (section IV-B) sees in its CIFAR-10 embedding, as class indices; section V adds ships to the last.
CIFAR10_GROUPS = {"vehicles": (1, 9), "four-legged animals": (3, 4, 5, 7), "blue backgrounds": (0, 2)}
BLUE_WITH_SHIPS = (0, 2, 8)


def more_accurate(finding: Finding) -> None:
    present = finding.start(MULTICLASS, TARGETS)
    for source in multiclass_sources(finding, present):
        difference = source.gap(finding, "accuracy")
        finding.add(source.key, f"accuracy, {M_MINUS_C}", difference, POINTS, MORE, source.place)
    _control_metric(finding, "accuracy", "accuracy", POINTS, MORE)


def better_calibrated(finding: Finding) -> None:
    present = finding.start(MULTICLASS, TARGETS)
    for source in multiclass_sources(finding, present):
        for metric, option in (("ece", ""), ("ece_scaled", "calibrated")):
            difference, place = source.gap(finding, metric), Place(source.target, option)
            finding.add(source.key, f"ECE, {M_MINUS_C}", difference, DIFFERENCE, LESS, place)
        metrics = of_vote(source.frame(finding, "metrics.csv"))
        for metric, name in {"log_loss": "log loss", "log_loss_scaled": "log loss after one temperature"}.items():
            difference, quantity = gap(metrics, metric, *PAIR), f"{name}, {M_MINUS_C}"
            finding.add(source.key, quantity, difference, DIFFERENCE, LESS, Place(source.target), role="control")
    _control_metric(finding, "ece", "ECE", DIFFERENCE, LESS)


def _control_metric(finding: Finding, metric: str, name: str, unit: Unit, hypothesis: Hypothesis) -> None:
    """Add the same difference with equal settings, in another network on CIFAR-10, and whether the learned metric makes it."""
    for study, of_target in SAME_SETTINGS.items():
        for target, (key, cosine) in of_target.items():
            others = finding.frame(key, "metrics.csv")
            both = pd.concat([finding.frame(study, "metrics.csv"), others[others["cell"] == cosine]])
            difference = gap(of_vote(both), metric, f"full_{target}", cosine)
            finding.add(study, f"{name}, {M_MINUS_C}", difference, unit, hypothesis, Place(target, "same settings"))
    metrics = of_vote(finding.frame("ablation", "metrics.csv"))
    for target in TARGETS:
        difference = gap(metrics, metric, f"full_{target}", f"cosine_{target}")
        finding.add("ablation", f"{name}, {M_MINUS_C}", difference, unit, hypothesis, Place(target, "other network"))
        for kernel, other in (("full", "identity"), ("identity", "cosine")):
            difference = gap(metrics, metric, f"{kernel}_{target}", f"{other}_{target}")
            quantity = f"{name}, {KERNELS[kernel]} minus {KERNELS[other]}"
            asked = hypothesis if kernel == "full" else None
            finding.add("ablation", quantity, difference, unit, asked, Place(target), role="control")
    if metrics.empty:
        finding.not_controlled.append("M = I in place of a learned M")


def table1_values(finding: Finding) -> None:
    present = finding.start(MULTICLASS, TARGETS)
    for source in multiclass_sources(finding, present):
        metrics, dataset = of_vote(source.frame(finding, "metrics.csv")), finding.evidence.dataset_of(source.key)
        for model, (metric, name) in itertools.product(PAIR, {"accuracy": "accuracy", "roc_auc": "ROC-AUC"}.items()):
            ours = source.over_samples(finding, metric, model) or interval(values(metrics, model, metric))
            place = source.place._replace(model=MODELS[model].title)
            if dataset not in MULTICLASS:  # The printed values do not apply to a substitute.
                finding.add(source.key, name, ours, PER_CENT, None, place, role="beside")
                continue
            printed = printed_value(finding.printed, "table1", dataset, metric)[0] / 100
            samples = sum(finding.evidence.description(source.key)["splits"]["test"]["counts"])
            difference = minus_printed(ours, printed, samples)
            finding.add(source.key, f"{name}, ours minus printed", difference, POINTS, THE_PRINTED, place)
    # The printed area may be one of decisions.
    for dataset, model in itertools.product([key for key in present if key in MULTICLASS], PAIR):
        printed = printed_value(finding.printed, "table1", dataset, "roc_auc")[0] / 100
        areas = values(of_vote(finding.frame(dataset, "metrics.csv")), model, "roc_auc_decisions")
        for seed, area in areas.head(1).items():
            name = f"ROC-AUC of the decided class, minus printed, {MODELS[model].title}, seed {seed}"
            finding.add(dataset, name, area - printed, POINTS, role="control")


def grouping_p(similarity: np.ndarray, group: Sequence[int]) -> float:
    """Return the p-value of an exact permutation test of whether classes of a group are more similar than others.

    It is the share of all groups of as many classes whose pairs are in the mean at least as similar.

    Args:
        similarity: symmetric (C, C).
        group: class indices.
    """
    first, second = np.triu_indices(len(group), 1)

    def within(groups: NDArray[np.intp]) -> NDArray[np.float64]:
        return similarity[groups[..., first], groups[..., second]].mean(-1)

    every = np.array(list(itertools.combinations(range(len(similarity)), len(group))))
    return float(np.mean(within(every) >= within(np.sort(group)) - 1e-12))


def groups_similar_classes(finding: Finding) -> None:
    present = finding.start(["cifar10"])
    finding.join, finding.required = some_of, tuple(CIFAR10_GROUPS)
    for dataset in present:
        similarity = finding.frame(dataset, "similarity.csv")
        for model in [name for name in (*PAIR, *COMPARED) if name in set(similarity["model"])]:
            by_seed = similarity[similarity["model"] == model].groupby("seed")
            matrices = [
                table.pivot_table(index="class_a", columns="class_b", values="similarity").to_numpy()
                for _, table in by_seed
            ]
            for group, classes in CIFAR10_GROUPS.items():
                p, n = _largest_p(matrices, classes), len(matrices)
                role: Role = "test" if model in PAIR else "control"
                if role == "control":  # A grouping that other embeddings have as well speaks against the claim.
                    outcome = decided(p >= SIGNIFICANCE)
                else:
                    outcome = decided(p < SIGNIFICANCE) if n >= FEWEST else Outcome.NOT_TESTABLE
                quantity, place = f"{group}, largest p of {n} seed{'s' * (n > 1)}", Place(model=EMBEDDINGS[model].title)
                finding.add(dataset, quantity, p, NUMBER, outcome, place, role=role, part=group)
            if model in PAIR:
                quantity = f"{MODELS[model].title}, blue backgrounds with ships (section V): largest p"
                finding.add(dataset, quantity, _largest_p(matrices, BLUE_WITH_SHIPS), NUMBER)


def _largest_p(matrices: Sequence[np.ndarray], classes: Sequence[int]) -> float:
    return max(grouping_p(matrix, classes) for matrix in matrices)


def sleepedf_is_hardest(finding: Finding) -> None:
    present = finding.start(MULTICLASS)
    sleep, *also_sleep = finding.evidence.stand_ins("sleepedf")  # raw signal before features
    images = [dataset for dataset in MULTICLASS if dataset != "sleepedf"]
    for model in [*PAIR, "cross-entropy"]:
        accuracy = {dataset: _accuracy(finding, dataset, model) for dataset in present}
        for dataset, found in accuracy.items():
            finding.add(dataset, f"accuracy of {MODELS[model].title}", found, PER_CENT, role="beside")
        known = {dataset: found for dataset, found in accuracy.items() if found.n}
        if not {sleep, *images} <= known.keys():
            finding.missing += [
                f"{finding.evidence.title(d)}: runs of {MODELS[model].title}" for d in present if d not in known
            ]
            continue
        lowest = min((known[dataset] for dataset in images), key=lambda other: other.mean)
        quantity = f"accuracy of {MODELS[model].title}, minus the lower one on the image datasets"
        for dataset in [sleep, *[other for other in also_sleep if other in known]]:
            role: Role = "beside" if dataset != sleep else "test" if model in PAIR else "control"
            # That cross-entropy finds the same says that the dataset is hard, which is the claim.
            finding.add(dataset, quantity, minus(known[dataset], lowest), POINTS, LESS, role=role)
    for dataset in present:
        train, test = (finding.evidence.description(dataset)["splits"][name]["counts"] for name in ("train", "test"))
        finding.add(dataset, "accuracy by chance", 1 / len(test), PER_CENT)
        finding.add(dataset, "accuracy of the majority class", test[train.index(max(train))] / sum(test), PER_CENT)


def _accuracy(finding: Finding, dataset: str, model: str) -> Interval:
    around = over_samples(finding.frame(dataset, "comparisons.csv"), "accuracy", model)
    return around or interval(values(of_vote(finding.frame(dataset, "metrics.csv")), model, "accuracy"))


def minus(one: Interval, other: Interval) -> Interval:
    """Return the difference of two independent means, whose errors add as squares."""
    mean, half = one.mean - other.mean, np.hypot(one.high - one.low, other.high - other.low) / 2
    return Interval(mean, mean - half, mean + half, min(one.n, other.n), one.samples)
