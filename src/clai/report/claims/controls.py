"""Controls of claims: what would be found without Collaborative Learning. They stand beside a verdict and have no say in it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from clai.report.claims.finding import DIFFERENCE, PER_CENT, POINTS, Finding, Part, Unit
from clai.report.claims.sources import KERNELS, gap, of_vote, values
from clai.report.evidence import Evidence
from clai.report.statistics import Interval, interval, replicates
from clai.runs.controls import COMPARED, EMBEDDINGS, SIGNALS

CONVERGENCE = "convergence"
SEEN = {"seen": "as the kernel sees them", "unit": "on unit vectors"}
"""The forms of signals, by the ending of their quantities (`clai.experiments.seen_signals`)."""
GroupingTest = Callable[[np.ndarray, Sequence[Sequence[int]]], tuple[float, float, int]]


def control_alignment(finding: Finding, evidence: Evidence) -> None:
    """Add how far each loss raises the alignment of its embedding, in traced trainings on the same trunk (claim 9)."""
    parts = []
    for dataset in evidence.at_hand():
        trace = evidence.frame(dataset, "alignment.csv")
        for model in [name for name in EMBEDDINGS if name in set(trace["model"])]:
            for kernel, part in trace[trace["model"] == model].groupby("kernel", sort=False):
                ordered = part.sort_values("epoch").groupby("seed")
                rise = ordered["centred_alignment"].last() - ordered["centred_alignment"].first()
                name = f"{EMBEDDINGS[model].title}, {kernel} kernel"
                title = evidence.title(dataset)
                parts += [
                    Part(title, f"{name}: rise of the centred alignment from the untrained network", interval(rise), DIFFERENCE),
                    Part(title, f"{name}: centred alignment with same and different classes at the end",
                         interval(ordered["class_alignment"].last()), DIFFERENCE),
                ]  # fmt: skip
        if not trace.empty:
            finding.cite(evidence, dataset, "alignment.csv", title=False)
    finding.control(
        "the alignment of the embeddings of other losses and of an untrained network, over the same epochs", parts
    )


def control_rules(finding: Finding, evidence: Evidence) -> None:
    """Add how often the printed rule decides as the Parzen-window Bayes rule on learned embeddings (claim 10)."""
    parts = []
    for dataset in evidence.at_hand():
        measured = evidence.frame(dataset, "agreement.csv")
        if measured.empty:
            continue
        finding.cite(evidence, dataset, "agreement.csv", title=False)
        alike, classes, errors = (
            measured[measured["quantity"] == quantity] for quantity in ("agreement", "class_agreement", "kde_error")
        )
        lowest = alike.groupby(["seed", "fold"], dropna=False)["value"].min().reset_index()
        shares = f"class shares {alike['share'].min():.2g} to {alike['share'].max():.2g}"
        title = evidence.title(dataset)
        parts += [
            Part(title, f"CLaI-M's embeddings, {shares}: lowest agreement of a condition", _share(lowest),
                 PER_CENT),
            Part(title, "CLaI-M's embeddings: samples that get the same class", _share(classes), PER_CENT),
            Part(title, "CLaI-M's embeddings: decisions of the Parzen rule unlike scikit-learn's density estimate",
                 float(errors["value"].max()), PER_CENT),
        ]  # fmt: skip
    finding.control("learned embeddings, with the class shares of the data", parts)


def _share(rows: pd.DataFrame) -> Interval:
    """Return the mean over runs with its interval, cut to what a share can be: with two runs it would reach beyond."""
    found = interval(replicates(rows))
    return replace(found, low=float(np.clip(found.low, 0, 1)), high=float(np.clip(found.high, 0, 1)))


def control_signals(finding: Finding, evidence: Evidence, cohorts: Sequence[str], effect_size: Unit) -> None:
    """Add the effect size of the area as the kernels see the signals, without norms, and with cross-entropy (claim 11)."""
    parts = []
    for dataset in cohorts:
        latent = evidence.frame(dataset, "latent.csv").rename(columns={"quantity": "metric"})
        for model in SIGNALS:
            for form, words in SEEN.items():
                effect, rough = (
                    values(latent, model, f"{quantity}_{form}") for quantity in ("area_effect", "roughness")
                )
                if effect.empty:
                    continue
                name = f"{EMBEDDINGS[model].title}, {words}"
                title = evidence.title(dataset)
                parts += [
                    Part(title, f"{name}: effect size of the area", interval(effect), effect_size),
                    Part(title, f"{name}: roughness", interval(rough), DIFFERENCE),
                ]
    finding.control("signals as the kernels see them, without their norm, and those of cross-entropy", parts)


def control_groups(
    finding: Finding,
    evidence: Evidence,
    dataset: str,
    groups: Sequence[Sequence[int]],
    test: GroupingTest,
    p_value: Unit,
) -> None:
    """Add the test of the grouping on the samples themselves and on embeddings that are not CLaI's (claim 12)."""
    similarity, title = evidence.frame(dataset, "similarity.csv"), evidence.title(dataset)
    parts = []
    for model in [name for name in COMPARED if name in set(similarity["model"])]:
        table = similarity[similarity["model"] == model]
        matrix = table.pivot_table(index="class_a", columns="class_b", values="similarity").to_numpy()
        excess, p, _ = test(matrix, groups)
        name = EMBEDDINGS[model].title
        parts += [
            Part(title, f"{name}: p of the three groups together", p, p_value),
            Part(title, f"{name}: excess similarity within the three groups", excess, DIFFERENCE),
        ]
    finding.control("pixels, the features of cross-entropy and an untrained network", parts)


def control_schedules(finding: Finding, evidence: Evidence) -> None:
    """Add the accuracy of the joint schedules minus a sequential one of many epochs (claim 14)."""
    parts = []
    if evidence.has(CONVERGENCE):
        finding.cite(evidence, CONVERGENCE, "metrics.csv", title=False)
        metrics = of_vote(evidence.frame(CONVERGENCE, "metrics.csv"), "printed", "population")
        title = evidence.title(CONVERGENCE)
        for kernel in ("cosine", "full"):
            for joint, name in (("joint-all-long", "all references"), ("joint-1-long", "one reference")):
                gains = gap(metrics, "accuracy", f"{kernel}_{joint}", f"{kernel}_sequential-all-long")
                quantity = f"accuracy, joint ({name}) minus sequential, kernel {KERNELS[kernel]}"
                parts.append(Part(title, quantity, interval(gains), POINTS))
    finding.control("a sequential schedule run to convergence", parts)
