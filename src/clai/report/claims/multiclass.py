"""Claims on the multiclass datasets: accuracy, calibration, convergence, table 1 and the embedding (1-4, 12, 16)."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from clai.report.claims.claim import claim
from clai.report.claims.finding import DIFFERENCE, LOSS, PER_CENT, POINTS, Finding, Part, Statistic, Unit, start
from clai.report.claims.studies import MULTICLASS, cite_ablations, note_ablations, rows
from clai.report.evidence import Evidence
from clai.report.printed_values import printed_value
from clai.report.statistics import interval, paired_difference, replicates, spread
from clai.runs.models import CLAI, MODELS

M_MINUS_C = "CLaI-M minus CLaI-C"
EPOCHS = Unit(1, "epochs", signed=True)
P_VALUE = Unit(2, style="g")
SIGNIFICANCE = 0.05

# The groups that the paper (line 662) sees in its CIFAR-10 embedding, as class indices.
CIFAR10_GROUPS = {"vehicles": (1, 9), "four-legged animals": (3, 4, 5, 7), "blue background": (0, 2)}
BLUE_WITH_SHIPS = {"blue background with ships (line 796)": (0, 2, 8)}


@claim(
    1,
    claim="CLaI-M classifies more accurately than CLaI-C on CIFAR-10, PathMNIST and SleepEDF.",
    place="abstract (69), 798",
    test="Difference in test accuracy between the models, paired by seed.",
    rule="Reproduced if the 95 % t-interval of the difference lies above zero on every dataset at hand.",
)
def more_accurate(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "metrics.csv")
    for dataset in present:
        gap = paired_difference(evidence.metrics(dataset), "accuracy", "clai-m", "clai-c")
        statistics = [Statistic(M_MINUS_C, gap, POINTS)]
        finding.add(Part(evidence.title(dataset), "accuracy", statistics, gap.above_zero), known=gap.known)
    note_ablations(finding, evidence, "accuracy", "accuracy", POINTS)
    cite_ablations(finding, evidence)
    return finding


@claim(
    2,
    claim="CLaI-M has a lower calibration error than CLaI-C there.",
    place="abstract (69)",
    test=(
        "Difference in expected calibration error (ECE), paired by seed. ECE is taken of the paper's softmax, and "
        "again after temperature scaling."
    ),
    rule=(
        "Reproduced if both intervals lie below zero on every dataset at hand. A difference that one temperature "
        "removes is a difference of scale."
    ),
)
def better_calibrated(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "metrics.csv")
    quantities = {"ece": "ECE", "ece_scaled": "ECE after temperature scaling"}
    for dataset in present:
        metrics, title = evidence.metrics(dataset), evidence.title(dataset)
        gaps = {metric: paired_difference(metrics, metric, "clai-m", "clai-c") for metric in quantities}
        parts = [
            Part(title, quantities[metric], [Statistic(M_MINUS_C, gap, DIFFERENCE)], gap.below_zero)
            for metric, gap in gaps.items()
        ]
        finding.add(*parts, known=all(gap.known for gap in gaps.values()))
    for metric, quantity in quantities.items():
        note_ablations(finding, evidence, metric, quantity, DIFFERENCE)
    cite_ablations(finding, evidence)
    return finding


def epochs_to(history: pd.DataFrame, accuracy: float) -> pd.Series:
    """Return, by seed, the first epoch whose validation accuracy reaches `accuracy`; the last epoch + 1 if none does.

    Args:
        history: columns seed, epoch and validation_accuracy of one model.
    """
    measured = history.dropna(subset=["validation_accuracy"])
    reached = measured[measured["validation_accuracy"] >= accuracy].groupby("seed")["epoch"].min()
    never = measured.groupby("seed")["epoch"].max() + 1
    return reached.reindex(measured["seed"].unique()).fillna(never).sort_index()


@claim(
    3,
    claim="CLaI-M converges faster than CLaI-C.",
    place="738, figure 3 (745)",
    test=(
        "Difference in the epochs that the models take to one validation accuracy, paired by seed. The accuracy is "
        "the lower of the two models' final means. A one-cycle learning rate brings both there late, so the test sees "
        "little of the first epochs (figure 3)."
    ),
    rule=(
        "Reproduced if the interval of the difference lies below zero on every dataset at hand. A run that never gets "
        "there counts its last epoch + 1."
    ),
)
def converges_faster(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "history.csv")
    for dataset in present:
        history, title = evidence.frame(dataset, "history.csv"), evidence.title(dataset)
        curves = {model: history[history["model"] == model] for model in CLAI}
        if any(curve["validation_accuracy"].isna().all() for curve in curves.values()):
            finding.missing.append(f"validation accuracy of both models on {title}")
            continue
        ends = {
            model: curve.dropna(subset=["validation_accuracy"]).sort_values("epoch").groupby("seed").last()
            for model, curve in curves.items()
        }
        goal = min(end["validation_accuracy"].mean() for end in ends.values())
        gap = interval((epochs_to(curves["clai-m"], goal) - epochs_to(curves["clai-c"], goal)).dropna())
        quantity = f"time to a validation accuracy of {PER_CENT.text(goal)} per cent"
        finding.add(
            Part(title, quantity, [Statistic(M_MINUS_C, gap, EPOCHS)], gap.below_zero),
            known=gap.known,
        )
        above = [Statistic(MODELS[m].title, spread(end["loss"] - end["floor"])[0], LOSS) for m, end in ends.items()]
        finding.add(Part(title, "final training loss above the kernel's floor", above))
    return finding


@claim(
    4,
    claim="Accuracy and ROC-AUC are those of table 1.",
    place="table 1 (664)",
    test="The printed values against ours, for each CLaI model (the paper does not say which one it is).",
    rule=(
        "Reproduced if, on every dataset at hand, both printed values lie in the 95 % prediction interval of one "
        "further run of at least one of the two models. They do not apply to a substitute: its values have no say."
    ),
)
def table1_values(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "metrics.csv")
    finding.alternatives = True
    for dataset in present:
        metrics = evidence.metrics(dataset)
        parts, known = [], False
        for model in CLAI:
            statistics: list[Statistic] = []
            inside: list[bool] = []
            for metric, name in (("accuracy", "accuracy"), ("roc_auc", "ROC-AUC")):
                further_run = interval(replicates(rows(metrics, model, metric)), prediction=True)
                known = known or further_run.known
                statistics.append(Statistic(name, further_run, PER_CENT))
                if dataset in MULTICLASS:
                    printed = printed_value(printed_values, "table1", dataset, metric)[0] / 100
                    inside.append(further_run.low <= printed <= further_run.high)
                    statistics.append(Statistic(f"printed {name}", printed, PER_CENT))
            quantity = f"{MODELS[model].title} with prediction intervals"
            parts.append(Part(evidence.title(dataset), quantity, statistics, all(inside) if inside else None))
        finding.add(*parts, known=known)
    return finding


def grouping_test(similarity: np.ndarray, groups: Sequence[Sequence[int]]) -> tuple[float, float, int]:
    """Test by exact permutation whether classes of one group are more similar than others.

    Args:
        similarity: symmetric (C, C).
        groups: disjoint groups of class indices; a class may belong to none.

    Returns:
        The mean similarity of pairs within groups minus the mean of all other pairs; the share of all assignments of classes to
        groups of these sizes whose difference is at least as large; the number of assignments.
    """
    classes = range(len(similarity))
    pairs = np.array(list(itertools.combinations(classes, 2)))
    values = similarity[pairs[:, 0], pairs[:, 1]]
    position = {tuple(pair): i for i, pair in enumerate(pairs.tolist())}
    total, n_within = float(values.sum()), sum(len(g) * (len(g) - 1) // 2 for g in groups)

    def difference(assignment: Sequence[Sequence[int]]) -> float:
        within = sum(
            values[position[pair]] for group in assignment for pair in itertools.combinations(sorted(group), 2)
        )
        return float(within / n_within - (total - within) / (len(values) - n_within))

    observed = difference(groups)
    permuted = [difference(assignment) for assignment in _assignments(frozenset(classes), [len(g) for g in groups])]
    return observed, float(np.mean([value >= observed - 1e-12 for value in permuted])), len(permuted)


def _assignments(free: frozenset[int], sizes: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """List all ways to draw disjoint groups of these sizes from the `free` classes."""
    if not sizes:
        return [[]]
    return [
        [group, *rest]
        for group in itertools.combinations(sorted(free), sizes[0])
        for rest in _assignments(free - set(group), sizes[1:])
    ]


@claim(
    12,
    claim="The embedding groups similar classes: vehicles, four-legged animals, blue background (taken together).",
    place="662, 796, figure 2",
    test=(
        "Mean similarity of class pairs within the groups named at line 662 minus the mean of all other pairs. An "
        "exact permutation test runs over all assignments of classes to groups. Each group is tested alone as well; a "
        "group of two classes has only 45 assignments."
    ),
    rule=f"Reproduced if p < {SIGNIFICANCE} for the groups together, for every CLaI model at hand.",
)
def groups_similar_classes(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, ["cifar10"], "similarity.csv")
    for dataset in present:
        similarity, title = evidence.frame(dataset, "similarity.csv"), evidence.title(dataset)
        for model in [m for m in CLAI if m in set(similarity["model"])]:
            table = similarity[similarity["model"] == model]
            matrix = table.pivot_table(index="class_a", columns="class_b", values="similarity").to_numpy()
            gap, p, count = grouping_test(matrix, list(CIFAR10_GROUPS.values()))
            name = f"{MODELS[model].title}, similarity within"
            together = (
                f"{name} the three groups minus elsewhere (all {count} assignments, {table['seed'].nunique()} seeds)"
            )
            finding.add(Part(title, together, _grouping_statistics(gap, p), p < SIGNIFICANCE))
            for group, classes in (CIFAR10_GROUPS | BLUE_WITH_SHIPS).items():
                gap, p, _ = grouping_test(matrix, [classes])
                finding.add(Part(title, f"{name} {group} alone", _grouping_statistics(gap, p)))
    return finding


def _grouping_statistics(gap: float, p: float) -> list[Statistic]:
    return [Statistic("difference", gap, DIFFERENCE), Statistic("p =", p, P_VALUE)]


@claim(
    16,
    claim="SleepEDF is the hardest of the three datasets.",
    place="662",
    test="Test accuracy of each CLaI model, beside chance and the majority class.",
    rule="Reproduced if, for both CLaI models, SleepEDF has the lowest mean accuracy. The test needs all three datasets.",
)
def sleepedf_is_hardest(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "metrics.csv")
    accuracy: dict[tuple[str, str], float] = {}
    for dataset in present:
        metrics = evidence.metrics(dataset)
        counts = evidence.description(dataset)["splits"]["test"]["counts"]
        statistics = []
        for model in CLAI:
            mean, _, n = spread(replicates(rows(metrics, model, "accuracy")))
            accuracy[dataset, model] = mean
            statistics.append(Statistic(f"{MODELS[model].title} (n = {n})", mean, PER_CENT))
        statistics += [
            Statistic("chance", 1 / len(counts), PER_CENT),
            Statistic("majority class", max(counts) / sum(counts), PER_CENT),
        ]
        finding.add(Part(evidence.title(dataset), "accuracy", statistics))
    if len(present) == len(MULTICLASS):
        sleep = evidence.stand_in("sleepedf")
        for model in CLAI:
            gap = accuracy[sleep, model] - min(accuracy[key, model] for key in present if key != sleep)
            statistics = [Statistic("minus the lower of the other two", gap, POINTS)]
            quantity = f"accuracy of {MODELS[model].title}"
            finding.add(Part(evidence.title(sleep), quantity, statistics, gap < 0))
    return finding
