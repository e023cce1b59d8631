"""Controls of claims: what would be found without Collaborative Learning. They stand beside a verdict and have no say in it.

The outcome of a number says whether it agrees with the claim (reproduced) or speaks against it (not reproduced). What is found
without Collaborative Learning as well speaks against the claim.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from replication.report.claims.finding import DIFFERENCE, PER_CENT, POINTS, Finding, Part, Unit, weigh
from replication.report.claims.hypothesis import MARGIN, Hypothesis, Outcome, decided
from replication.report.claims.sources import KERNELS, averaged, gap, of_vote, values
from replication.report.evidence import Evidence
from replication.report.statistics import Interval, interval, replicates
from replication.runs.controls import COMPARED, EMBEDDINGS, SIGNALS, TRACED_ONLY
from replication.runs.models import CLAI, MODELS

CONVERGENCE = "convergence"
SEEN = {"seen": "as the kernel sees them", "unit": "on unit vectors"}
"""The forms of signals, by the ending of their quantities (`replication.experiments.seen_signals`)."""
HIGHER = Hypothesis("better", MARGIN)
MAXIMISED = [name for name in TRACED_ONLY if name.startswith("alignment")]
"""Embeddings whose loss is the alignment itself."""
GroupingTest = Callable[[np.ndarray, Sequence[Sequence[int]]], tuple[float, float, int]]


def control_alignment(finding: Finding, evidence: Evidence) -> None:
    """Add how far each loss raises the alignment of its embedding, in traced trainings on the same trunk (claim 9).

    CLaI's rise agrees with the claim where it is larger than that of a loss that does not name the alignment.
    """
    parts = []
    for dataset in evidence.at_hand():
        trace = evidence.frame(dataset, "alignment.csv")
        rises: dict[str, dict[str, pd.Series]] = {}
        for model in [name for name in EMBEDDINGS if name in set(trace["model"])]:
            for kernel, part in trace[trace["model"] == model].groupby("kernel", sort=False):
                ordered = part.sort_values("epoch").groupby("seed")
                rise = ordered["centred_alignment"].last() - ordered["centred_alignment"].first()
                name = f"{EMBEDDINGS[model].title}, {kernel} kernel"
                title = evidence.title(dataset)
                rises.setdefault(str(kernel), {})[model] = rise
                parts += [
                    Part(title, f"{name}: rise of the centred alignment from the untrained network", interval(rise), DIFFERENCE),
                    Part(title, f"{name}: centred alignment with same and different classes at the end",
                         interval(ordered["class_alignment"].last()), DIFFERENCE),
                ]  # fmt: skip
        for kernel_name, by_model in rises.items():
            own = next((model for model in CLAI if model in by_model), None)
            for other in [name for name in by_model if own and name not in (*CLAI, *MAXIMISED)]:
                more = (by_model[str(own)] - by_model[other]).dropna()
                titles = f"{EMBEDDINGS[str(own)].title} minus {EMBEDDINGS[other].title}"
                quantity = f"rise of the centred alignment, {kernel_name} kernel, {titles}"
                parts.append(weigh(evidence, dataset, quantity, more, DIFFERENCE, HIGHER))
        if not trace.empty:
            finding.cite(evidence, dataset, "alignment.csv", title=False)
    finding.control(
        "the alignment of the embeddings of other losses and of an untrained network, over the same epochs", parts
    )


def control_rules(finding: Finding, evidence: Evidence, agreement: float) -> None:
    """Add how often the printed rule decides as the Parzen-window Bayes rule on learned embeddings (claim 10).

    The claim asks for an `agreement`, from 0 to 1, in every run.
    """
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
        title, worst = evidence.title(dataset), f"{100 * lowest['value'].min():.2f}"
        parts += [
            Part(title, f"CLaI-M's embeddings, {shares}: lowest agreement of a condition, in the lowest run {worst}",
                 _share(lowest), PER_CENT, _all_above(lowest["value"], agreement)),
            Part(title, "CLaI-M's embeddings: samples that get the same class", _share(classes), PER_CENT),
        ]  # fmt: skip
        if not errors.empty:
            quantity = "CLaI-M's embeddings: decisions of the Parzen rule unlike scikit-learn's density estimate"
            parts.append(Part(title, quantity, float(errors["value"].max()), PER_CENT))
    finding.control("learned embeddings, with the class shares of the data", parts)


def _all_above(values: pd.Series, limit: float) -> Outcome | None:
    """Return whether all values reach a limit; None where one is not known."""
    return None if values.isna().any() else decided(bool(values.min() >= limit))


def _share(rows: pd.DataFrame) -> Interval:
    """Return the mean over runs with its interval, cut to what a share can be: with two runs it would reach beyond."""
    found = interval(replicates(rows))
    return replace(found, low=float(np.clip(found.low, 0, 1)), high=float(np.clip(found.high, 0, 1)))


def control_signals(
    finding: Finding, evidence: Evidence, cohorts: Sequence[str], effect_size: Unit, converge: Hypothesis
) -> None:
    """Add the effect size of the area as the kernels see the signals, without norms, and with cross-entropy (claim 11).

    Signals of CLaI that converge agree with the claim; those of cross-entropy speak against it.
    """
    for dataset in cohorts:
        parts = []
        latent = evidence.frame(dataset, "latent.csv").rename(columns={"quantity": "metric"})
        for model in SIGNALS:
            for form, words in SEEN.items():
                if form == "unit" and MODELS[EMBEDDINGS[model].model].kernel != "gaussian":
                    continue  # the cosine kernel sees unit vectors anyway
                effect, rough = (
                    values(latent, model, f"{quantity}_{form}") for quantity in ("area_effect", "roughness")
                )
                if effect.empty:
                    continue
                name = f"{EMBEDDINGS[model].title}, {words}"
                area = weigh(
                    evidence, dataset, f"{name}: effect size of the area", effect, effect_size, converge,
                    model="" if model in CLAI else model,
                )  # fmt: skip
                parts += [
                    area if model in CLAI else replace(area, outcome=area.outcome and _opposite(area.outcome)),
                    Part(evidence.title(dataset), f"{name}: roughness", interval(rough), DIFFERENCE),
                ]
        name = "signals as the kernels see them, without their norm, and those of cross-entropy"
        finding.control(f"{name}, on {evidence.title(dataset)}", parts)


def _opposite(outcome: Outcome) -> Outcome:
    """Return what a number says of a claim where it was found without Collaborative Learning."""
    decisions = {Outcome.REPRODUCED: Outcome.NOT_REPRODUCED, Outcome.NOT_REPRODUCED: Outcome.REPRODUCED}
    return decisions.get(outcome, outcome)


def control_groups(
    finding: Finding,
    evidence: Evidence,
    dataset: str,
    groups: Sequence[Sequence[int]],
    test: GroupingTest,
    p_value: Unit,
    significance: float,
) -> None:
    """Add the test of the grouping on the samples themselves and on embeddings that are not CLaI's (claim 12).

    A grouping below the `significance` speaks against the claim: it is found without CLaI.
    """
    similarity, title = evidence.frame(dataset, "similarity.csv"), evidence.title(dataset)
    parts = []
    for model in [name for name in COMPARED if name in set(similarity["model"])]:
        table = similarity[similarity["model"] == model]
        matrix = table.pivot_table(index="class_a", columns="class_b", values="similarity").to_numpy()
        excess, p, _ = test(matrix, groups)
        name = f"{EMBEDDINGS[model].title}, {averaged(table)}"
        parts += [
            Part(title, f"{name}: p of the three groups together", p, p_value, decided(p >= significance), model=model),
            Part(title, f"{name}: excess similarity within the three groups", excess, DIFFERENCE),
        ]
    finding.control("pixels, the features of cross-entropy and an untrained network", parts)


def control_schedules(finding: Finding, evidence: Evidence, not_less: Hypothesis) -> None:
    """Add the accuracy of the joint schedules minus a sequential one of many epochs (claim 14).

    The schedule with all references, which the claim's test compares, is held against the hypothesis of this test.
    """
    parts = []
    if evidence.has(CONVERGENCE):
        finding.cite(evidence, CONVERGENCE, "metrics.csv", title=False)
        metrics = of_vote(evidence.frame(CONVERGENCE, "metrics.csv"), "printed", "population")
        for kernel in ("cosine", "full"):
            for joint, name in (("joint-all-long", "all references"), ("joint-1-long", "one reference")):
                gains = gap(metrics, "accuracy", f"{kernel}_{joint}", f"{kernel}_sequential-all-long")
                quantity = f"accuracy, joint ({name}) minus sequential, kernel {KERNELS[kernel]}"
                part = weigh(evidence, CONVERGENCE, quantity, gains, POINTS, not_less)
                parts.append(part if joint == "joint-all-long" else replace(part, outcome=None))
    finding.control("a sequential schedule run to convergence", parts)
