"""Numbers of claims that are no measure of an arm and no difference of two: algebra, exact tests, printed values, sizes."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.metrics.intervals import FEWEST, Interval, independent_gap, interval, minus_printed
from replication.report.claims.hypothesis import ANY, Hypothesis, Outcome, decided
from replication.report.claims.numbers import (
    DIFFERENCE,
    MEASURES,
    NUMBER,
    P_VALUE,
    PER_CENT,
    POINTS,
    RATIO,
    Numbers,
    Role,
    Unit,
    compared,
    measured,
    title_of,
)
from replication.report.claims.readings import MULTICLASS, SEPSIS, multiclass, present, septic, table_1
from replication.report.texts import printed_value
from replication.runs.registry import BENCHMARK, CLAI, CLAIM_TEXTS, COMPARED, THEORY

SIMULATED = "simulated classes"
SIGNIFICANCE = 0.05
AGREEING = 0.99
ROUNDING = 1e-9
"""What rounding in float64 may take from the bound."""
# The groups that the paper (section IV-B) sees in its CIFAR-10 embedding, as class indices; section V adds ships to the last.
CIFAR10_GROUPS = {"vehicles": (1, 9), "four-legged animals": (3, 4, 5, 7), "blue backgrounds": (0, 2)}
BLUE_WITH_SHIPS = (0, 2, 8)


def against_table1(numbers: Numbers) -> None:
    """Add accuracy and ROC-AUC minus the printed ones; the printed values do not apply to a substitute."""
    evidence = numbers.evidence
    for one, model, metric in itertools.product(multiclass(numbers.evidence), CLAI, ("accuracy", "roc_auc")):
        around, values, files = compared(numbers.evidence, one, metric, [model])
        ours = around or interval(values)
        dataset, title = evidence.dataset_of(one.name), MEASURES[metric]["title"]
        of: dict[str, Any] = {"target": one.target, "model": model, "algorithm": "Algorithm 4"}
        arms = [one.arms[model]]
        if dataset not in MULTICLASS:
            numbers.add(one.name, title, ours, PER_CENT, role="beside", arms=arms, files=files, **of)
            continue
        printed = printed_value("table1", dataset, metric) / 100
        samples = sum(evidence.description(one.name)["splits"]["test"]["counts"])
        ours, quantity = minus_printed(ours, printed, samples), f"{title}, ours minus printed"
        numbers.add(one.name, quantity, ours, POINTS, Hypothesis("value"), arms=arms, files=files, **of)
        if metric == "roc_auc" and one.name == dataset:  # The printed area may be one of decisions.
            areas = measured(numbers.evidence, one.arms[model], "roc_auc_decisions", *one.how)
            for seed, area in areas.head(1).items():
                quantity = f"ROC-AUC of the decided class, minus printed, {title_of(model)}, seed {seed}"
                of = {"role": "control", "arms": arms, "files": [(dataset, "metrics.csv")]}
                numbers.add(dataset, quantity, area - printed, POINTS, **of)


def printed_gaps(numbers: Numbers) -> None:
    """Add the paper's own differences, beside ours."""
    for one, metric in itertools.product(septic(numbers.evidence), ("auroc", "auprc", "f1")):
        ours, other = (printed_value("table3", model, metric) for model in CLAI)
        quantity = f"{MEASURES[metric]['title']}, CLaI-M minus CLaI-C, as printed"
        numbers.add(one.name, quantity, ours - other, DIFFERENCE, role="beside", data="MIMIC-IV, the paper")


def bound(numbers: Numbers) -> None:
    """Add whether the alignment bounds the loss from below, and say so beside the verdict."""
    checks = numbers.evidence.frame(THEORY, "theory.csv")
    margins = checks[(checks["check"] == "bound") & (checks["quantity"] == "smallest_margin")]["value"]
    if len(margins):
        smallest, quantity = float(margins.min()), "smallest loss minus (1 - A²) of random matrices, targets +1 and -1"
        numbers.add(THEORY, quantity, smallest, NUMBER, role="beside", data=SIMULATED, files=[(THEORY, "theory.csv")])
        numbers.note = "its bound holds" if smallest >= -ROUNDING else "its lower bound fails"


def parzen(numbers: Numbers) -> None:
    """Add the agreement with the Parzen-window Bayes rule on simulated classes, and at equal shares on learned embeddings."""
    algebra(numbers)
    part = CLAIM_TEXTS["claims"]["10"]["parts"][1]
    for name in present(numbers.evidence, [*MULTICLASS, *SEPSIS]):
        agreement = numbers.evidence.frame(name, "agreement.csv")
        equal = agreement.loc[agreement["quantity"] == "equal_agreement", "value"]
        if len(equal):
            least = float(equal.min())
            of: dict[str, Any] = {"files": [(name, "agreement.csv")], "arms": [f"{name}/clai-m"], "part": part}
            quantity = "least agreement of a run where each class weighs as much as the rest (99 % asked)"
            numbers.add(name, quantity, least, PER_CENT, decided(least >= AGREEING), algorithm="Algorithm 2", **of)


def algebra(numbers: Numbers) -> None:
    """Add the agreement with the Parzen-window Bayes rule on simulated classes: of the printed rule, and of equation 14.

    If the derivation's algebra were right, its last line and the printed rule would decide alike.
    """
    checks = numbers.evidence.frame(THEORY, "theory.csv")
    simulated = checks[(checks["check"] == "parzen") & (checks["quantity"] == "agreement_kde")]
    if simulated.empty:
        return
    last_line = CLAIM_TEXTS["claims"]["10"]["parts"][0]
    by_rule = simulated.pivot_table(index=["share", "bandwidth", "seed"], columns="rule", values="value")
    apart, files = float((by_rule["printed"] - by_rule["derivation"]).abs().max()), [(THEORY, "theory.csv")]
    of: dict[str, Any] = {"data": SIMULATED, "part": last_line, "algorithm": "equation 14"}
    lines = "the printed rule and the derivation's last line"
    quantity = f"largest difference between {lines}, in agreement with the Bayes rule"
    numbers.add(THEORY, quantity, apart, PER_CENT, decided(apart == 0), files=files, **of)
    for share, rows in by_rule.groupby("share"):
        quantity, lowest = f"least agreement with the Bayes rule, class share {share:g}", float(rows["printed"].min())
        of = {"role": "beside", "data": SIMULATED, "algorithm": "Algorithm 2"}
        numbers.add(THEORY, quantity, lowest, PER_CENT, files=files, **of)


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


def groups_of_classes(numbers: Numbers) -> None:
    """Add the p-values of the groups of classes that the paper names, in CLaI's embeddings and in others."""
    for dataset in present(numbers.evidence, ["cifar10"]):
        similarity = numbers.evidence.frame(dataset, "similarity.csv")
        for model in [name for name in (*CLAI, *COMPARED) if name in set(similarity["model"])]:
            matrices: dict[Any, NDArray[np.float64]] = {
                seed: table.pivot_table(index="class_a", columns="class_b", values="similarity").to_numpy()
                for seed, table in similarity[similarity["model"] == model].groupby("seed")
            }
            n, role = len(matrices), "test" if model in CLAI else "control"
            of: dict[str, Any] = {"arms": [f"{dataset}/{model}"], "files": [(dataset, "similarity.csv")]}
            of |= {"model": model, "algorithm": "section IV-B"}
            for group, classes in {**CIFAR10_GROUPS, "blue backgrounds with ships": BLUE_WITH_SHIPS}.items():
                # A grouping that other embeddings have as well speaks against the claim.
                p = grouping_p(np.mean(list(matrices.values()), axis=0), classes)
                outcome = decided((p < SIGNIFICANCE) == (role == "test"))
                if role == "test" and n < FEWEST:
                    outcome = Outcome.NOT_TESTABLE
                quantity = f"{group}, p of the mean over {n} seed{'s' * (n > 1)}"
                if group in CIFAR10_GROUPS:
                    numbers.add(dataset, quantity, p, P_VALUE, outcome, role=role, part=group, **of)
                elif role == "test":
                    numbers.add(dataset, quantity, p, P_VALUE, role="beside", **of)
                for seed, matrix in matrices.items() if role == "test" else ():
                    quantity = f"{group}, p of seed {seed}"
                    numbers.add(dataset, quantity, grouping_p(matrix, classes), P_VALUE, role="beside", **of)


def below_images(numbers: Numbers) -> None:
    """Add accuracy on sleep minus that on the image dataset with the lower one; chance and the majority class beside it."""
    evidence, readings = numbers.evidence, table_1(numbers.evidence)
    sleep, *also_sleep = evidence.stand_ins("sleepedf")  # raw signal before features
    images = [dataset for dataset in MULTICLASS if dataset != "sleepedf"]
    for model in [*CLAI, "cross-entropy"]:
        known: dict[str, tuple[Interval, list[tuple[str, str]]]] = {}
        for one in readings:
            around, values, files = compared(numbers.evidence, one, "accuracy", [model])
            found = around or interval(values)
            known |= {one.name: (found, files)} if found.n else {}
        if not {sleep, *images} <= known.keys():
            lacking = [evidence.title(one.name) for one in readings if one.name not in known]
            numbers.needs += [f"{title}: runs of {title_of(model)}" for title in lacking]
            continue
        lowest = min(images, key=lambda dataset: known[dataset][0].mean)
        quantity = f"accuracy of {title_of(model)}, minus the lower one on the image datasets"
        for dataset in [sleep, *[other for other in also_sleep if other in known]]:
            role: Role = "beside" if dataset != sleep else "test" if model in CLAI else "control"
            # That cross-entropy finds the same says that the dataset is hard, which is the claim.
            below, files = independent_gap(known[dataset][0], known[lowest][0]), known[dataset][1] + known[lowest][1]
            arms = [f"{dataset}/{model}", f"{lowest}/{model}"]
            of: dict[str, Any] = {"role": role, "arms": arms, "files": files, "algorithm": "Algorithm 4"}
            numbers.add(dataset, quantity, below, POINTS, Hypothesis("better", sign=-1), **of)
    for dataset in [one.name for one in readings]:
        train, test = (evidence.description(dataset)["splits"][name]["counts"] for name in ("train", "test"))
        majority = test[train.index(max(train))] / sum(test)
        for name, share in (("by chance", 1 / len(test)), ("of the majority class", majority)):
            numbers.add(dataset, f"accuracy {name}", share, PER_CENT, role="beside")


def growth(numbers: Numbers) -> None:
    """Add time per pass and peak memory of the largest size over the smallest: of classes, and beside them of batches."""
    times = numbers.evidence.frame(BENCHMARK, "benchmark.csv")
    times = times[times["variant"] == "printed"]
    if times.empty or numbers.evidence.miniature:  # In miniature sizes, overheads rule the times.
        return
    files = [(BENCHMARK, "benchmark.csv")]
    for comparison, size, parts in (("classes", "C", CLAIM_TEXTS["claims"]["13"]["parts"]), ("batches", "M", ("", ""))):
        rows = times[times["comparison"] == comparison]
        fewest, most = rows[size].min(), rows[size].max()
        counted = passes_as_printed(rows["M"], rows["C"]).where(rows["quantity"] == "seconds", 1)
        by_size = rows.assign(value=rows["value"] / counted).pivot_table("value", ["quantity", "repetition"], size)
        ratios = by_size[most] / by_size[fewest]
        role: Role = "test" if comparison == "classes" else "beside"
        want = Hypothesis("equal", 0.1, null=1, bounds=ANY) if role == "test" else None
        kinds = (("seconds", "time per pass", "counting"), ("peak_memory_mb", "peak memory", "Algorithm 3"))
        for part, (measure, title, algorithm) in zip(parts, kinds, strict=True):
            quantity = f"{title}, ratio of {most:g} {comparison} to {fewest:g}"
            of: dict[str, Any] = {"role": role, "part": part, "files": files, "algorithm": algorithm}
            numbers.add(BENCHMARK, quantity, ratios[measure], RATIO, want, **of)


def passes_as_printed(batches: pd.Series, classes: pd.Series) -> pd.Series:
    """Return the passes of batches through the trunk in an epoch of Algorithm 3; a pass back counts as two."""
    return classes * (batches - 1) * (5 * batches + 2) / 2


def passes(numbers: Numbers) -> None:
    """Add how many passes of an epoch the loop over classes costs, and the pairs of batches."""
    for dataset in ("pathmnist", "cifar10"):
        for record in numbers.evidence.runs(dataset, ["clai-c"])[:1]:
            counts = numbers.evidence.description(dataset)["splits"]["train"]["counts"]
            size, classes = record["settings"]["training"]["batch_size"], len(counts)
            samples = record["settings"]["training"]["samples"] or sum(counts)
            batches, files = samples // size, [(dataset, "runs.jsonl")]
            setting = f"{batches} batches of {size}, {classes} classes"
            pairs = (batches - 1) * (batches + 2) / 2 / batches
            loop = "passes with the loop over classes over without it"
            all_pairs = "passes with all pairs of batches over one pass an epoch"
            for name, ratio in ((loop, float(classes)), (all_pairs, pairs)):
                quantity = f"{name}, {setting}"
                numbers.add(dataset, quantity, ratio, Unit(1), role="beside", files=files, algorithm="counting")


COMPUTED: dict[str, Callable[[Numbers], None]] = {
    "4": against_table1, "6": printed_gaps, "9": bound, "10": parzen, "12": groups_of_classes, "13": growth, "16": below_images,
    "B": passes,
}  # fmt: skip
"""By a claim's number what adds the numbers that follow those of its rows."""
