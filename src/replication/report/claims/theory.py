"""Claims on the mathematics: alignment, the Parzen-window classifier and zero targets (9, 10, 15)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from replication.report.claims.finding import (
    DIFFERENCE,
    LOSS,
    PER_CENT,
    POINTS,
    Finding,
    Part,
    Unit,
    claim,
    start,
    weigh,
)
from replication.report.claims.hypothesis import MARGIN, MORE, Outcome, Reading, decided
from replication.report.claims.sources import (
    KERNELS,
    MULTICLASS,
    OF_STUDIES,
    OF_TABLE_1,
    ON_EVERY_DATASET,
    TARGETS,
    gap,
    missing_targets,
    multiclass_sources,
    of_vote,
    values,
)
from replication.report.evidence import Evidence, by_setting
from replication.report.statistics import Interval, interval, replicates
from replication.runs.controls import EMBEDDINGS, TRACED_ONLY
from replication.runs.models import CLAI, MODELS

CHECKS = "theory"
AGREEMENT = 0.99
# What rounding in float64 may take from the bound.
ROUNDING = 1e-9
EXPONENT = Unit(2, style="e")
MAXIMISED = [name for name in TRACED_ONLY if name.startswith("alignment")]
"""Embeddings whose loss is the alignment itself."""
ACCURACY_GAIN = "accuracy, zero minus product"
KERNEL_OF = {"clai-c": KERNELS["cosine"], "clai-m": KERNELS["full"]}
COHORTS = ("mimic-iv", "challenge2019")
# The rules that stand beside the printed one. `derivation` is the last line of the paper's derivation.
OTHER_RULES = {
    "parzen": "rule parzen", "centred": "rule centred", "balanced": "rule balanced",
    "derivation": "the derivation's last line (389)",
}  # fmt: skip


@claim(
    "9",
    "Training optimises kernel alignment",
    claim="Collaborative Learning optimises the kernel alignment.",
    place="246-258",
    test=(
        "Loss, alignment and centred alignment over the epochs of every run on the paper's datasets (or Challenge "
        "2019) and in the ablation. For targets +1 and -1, the loss is also compared with its lower bound 1 - A^2, "
        "where A is the alignment between the similarity matrix and the target matrix."
    ),
    rule=(
        "Reproduced if, in each of these runs, loss and alignment are negatively rank-correlated over epochs and "
        "alignment ends above its start, and if no checked matrix has a loss below 1 - A^2."
    ),
    limits=(
        "The test can hardly fail: the bound ties the loss to alignment. Whether alignment rises with other losses as well is a "
        "matter of the controls."
    ),
)
def optimises_alignment(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, [*MULTICLASS, *COHORTS], "history.csv")
    finding.missing = []
    for dataset in present:
        history = evidence.frame(dataset, "history.csv").dropna(subset=["loss", "alignment"])
        for model in CLAI:
            runs = _runs(history[history["model"] == model], ["seed", "fold"])
            if runs:
                _add_alignment(finding, evidence.title(dataset), MODELS[model].title, runs)
    if evidence.has("ablation"):
        history = evidence.frame("ablation", "history.csv").dropna(subset=["loss", "alignment"])
        for target in TARGETS:
            runs = _runs(history[history["model"].str.endswith(f"_{target}")], ["model", "seed"])
            if runs:
                _add_alignment(finding, evidence.title("ablation"), f"target {target}, all kernels", runs)
        finding.cite(evidence, "ablation", "history.csv")
    checks = evidence.frame(CHECKS, "theory.csv")
    margins = checks[(checks["check"] == "bound") & (checks["quantity"] == "smallest_margin")]["value"]
    if len(margins):
        finding.cite(evidence, CHECKS, "theory.csv", title=False)
        quantity = f"smallest loss minus (1 - A^2) of random matrices in {len(margins)} settings, targets +1 and -1"
        smallest = float(margins.min())
        finding.add(Part("Numerical checks", quantity, smallest, EXPONENT, decided(smallest >= -ROUNDING)))
    if not finding.outcomes:
        finding.missing.append("a trained CLaI model's history, or the numerical checks")
    _control_alignment(finding, evidence)
    return finding


def _runs(history: pd.DataFrame, keys: list[str]) -> list[pd.DataFrame]:
    """Divide a history into runs of more than one epoch, each in the order of epochs."""
    groups = history.sort_values("epoch").groupby(keys, dropna=False)
    return [run for _, run in groups if len(run) > 1]


def _add_alignment(finding: Finding, data: str, name: str, runs: Sequence[pd.DataFrame]) -> None:
    """Add how loss and alignment go together in the runs where they do so least.

    Without a rank correlation in every run, as of a constant loss, the runs are named as missing and judged by nothing.
    """
    correlation = float(np.max([run["loss"].corr(run["alignment"], method="spearman") for run in runs]))
    if np.isnan(correlation):
        finding.missing.append(f"{data}: loss and alignment that vary over the epochs of every run of {name}")
        return
    rise, centred_rise = (
        float(np.min([run[column].iloc[-1] - run[column].iloc[0] for run in runs]))
        for column in ("alignment", "centred_alignment")
    )
    of_runs = f"{name}, {len(runs)} runs"
    finding.add(
        Part(data, f"{of_runs}: largest rank correlation of loss and alignment", correlation, DIFFERENCE,
             decided(correlation < 0)),
        Part(data, f"{of_runs}: smallest rise of alignment", rise, DIFFERENCE, decided(rise > 0)),
        Part(data, f"{of_runs}: smallest rise of centred alignment", centred_rise, DIFFERENCE),
    )  # fmt: skip


def _control_alignment(finding: Finding, evidence: Evidence) -> None:
    """Add how far each loss raises the alignment of its embedding, in traced trainings on the same trunk.

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
                parts.append(weigh(evidence, dataset, quantity, more, DIFFERENCE, MORE))
        if not trace.empty:
            finding.cite(evidence, dataset, "alignment.csv", title=False)
    finding.control(
        "the alignment of the embeddings of other losses and of an untrained network, over the same epochs", parts
    )


@claim(
    "10",
    "Inference is the Parzen-window Bayes rule",
    claim="Collaborative Inference is the kernel Bayes classifier with Parzen windows.",
    place="356-399",
    test=(
        "Agreement of the paper's decision rule with the Parzen-window Bayes classifier on simulated classes, by "
        "class share. The other decision rules, and the accuracy of both rules in the ablation, are shown as well."
    ),
    rule=(
        f"Reproduced if at least {100 * AGREEMENT:.0f} % of test samples are decided alike at every class share, "
        "bandwidth and seed checked."
    ),
)
def is_parzen_classifier(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = Finding()
    checks = evidence.frame(CHECKS, "theory.csv")
    agreements = checks[(checks["check"] == "parzen") & (checks["quantity"] == "agreement_kde")]
    if agreements.empty:
        finding.missing.append("the numerical checks")
        return finding
    finding.cite(evidence, CHECKS, "theory.csv", title=False)
    data = "Two simulated Gaussian classes"
    finding.keys[CHECKS] = data
    for share, part in by_setting(agreements).groupby("share", sort=True):
        lowest = part.groupby("rule")["value"].min()
        settings = int((part["rule"] == "printed").sum())
        of_share = f"class share {share:g}, lowest agreement over {settings} settings"
        holds = decided(bool(lowest["printed"] >= AGREEMENT))
        finding.add(Part(data, f"{of_share}: printed rule", lowest["printed"], PER_CENT, holds))
        for rule in [rule for rule in OTHER_RULES if rule in lowest]:
            finding.add(Part(data, f"{of_share}: {OTHER_RULES[rule]}", lowest[rule], PER_CENT))
    _note_rules(finding, evidence)
    _control_rules(finding, evidence)
    return finding


def _note_rules(finding: Finding, evidence: Evidence) -> None:
    """Add, without a say in the verdict, the accuracy of the printed rule minus the Parzen-Bayes rule in the ablation."""
    if not evidence.has("ablation"):
        return
    metrics = evidence.frame("ablation", "metrics.csv")
    printed, parzen = (of_vote(metrics, rule, "population") for rule in ("printed", "parzen"))
    for target in TARGETS:
        for kernel, title in KERNELS.items():
            cell = f"{kernel}_{target}"
            difference = (values(printed, cell, "accuracy") - values(parzen, cell, "accuracy")).dropna()
            quantity = f"accuracy of the printed rule minus the Parzen-Bayes rule, target {target}, kernel {title}"
            finding.add(Part(evidence.title("ablation"), quantity, interval(difference), POINTS))
    finding.cite(evidence, "ablation", "metrics.csv", title=False)


def _control_rules(finding: Finding, evidence: Evidence) -> None:
    """Add how often the printed rule decides as the Parzen-window Bayes rule on learned embeddings.

    The claim asks for `AGREEMENT` in every run.
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
                 _share(lowest), PER_CENT, _all_above(lowest["value"], AGREEMENT)),
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


@claim(
    "15",
    "Zero targets classify better",
    claim="Zero targets keep separated classes from being clustered again.",
    place="453",
    test=(
        "Test accuracy with the target zero minus that with the target product, paired by seed. The paper does not say "
        "for which kernel; the network is that of table 1 or of the studies."
    ),
    rule=f"Reproduced if the difference is better than 0 {ON_EVERY_DATASET}; margin {100 * MARGIN:g} percentage point.",
    limits=(
        "Accuracy is a proxy: in the joint schedule, no class is separated before the others. No run has the sequential "
        "schedule with both targets. The hardware chooses the precision, so runs with one target may have another precision "
        "than runs with the other; the records of runs beside the files name it."
    ),
)
def zero_targets_help(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = Finding(choices={"kernel": tuple(KERNELS.values())})
    for study in [key for key in ("ablation", "decisive") if evidence.has(key)]:
        finding.cite(evidence, study, "metrics.csv")
        metrics = of_vote(evidence.frame(study, "metrics.csv"), "printed", "population")
        for kernel, title in KERNELS.items():
            reading = Reading(kernel=title, network=OF_STUDIES)
            differences = gap(metrics, "accuracy", f"{kernel}_zero", f"{kernel}_product")
            finding.add(weigh(evidence, study, ACCURACY_GAIN, differences, POINTS, MORE, reading))
            masked = interval(gap(metrics, "accuracy", f"{kernel}_zero", f"{kernel}_masked"))
            quantity = f"accuracy, zero minus masked, kernel {title}"
            finding.add(Part(evidence.title(study), quantity, masked, POINTS))
    _compare_targets_of_table_1(finding, evidence)
    finding.missing += missing_targets(evidence, _at_hand(evidence))
    if not finding.outcomes:
        finding.missing = ["two seeds or more with each of the targets zero and product"]
    checks = evidence.frame(CHECKS, "theory.csv")
    floors = checks[(checks["check"] == "floor") & (checks["quantity"] == "floor")]
    if len(floors):
        finding.cite(evidence, CHECKS, "theory.csv", title=False)
        for family, table in by_setting(floors).groupby("kernel"):
            for name, value in (("lowest", table["value"].min()), ("highest", table["value"].max())):
                quantity = f"{name} floor of the loss with zero targets, {family} kernel"
                finding.add(Part("Numerical checks", quantity, float(value), LOSS))
    return finding


def _at_hand(evidence: Evidence) -> list[str]:
    """Return the datasets of table 1, or their substitutes, that have runs of a CLaI model."""
    return [evidence.stand_in(key) for key in MULTICLASS if evidence.runs(evidence.stand_in(key), CLAI)]


def _compare_targets_of_table_1(finding: Finding, evidence: Evidence) -> None:
    """Add the runs of table 1 against the studies that train the same models with the other target."""
    sources = [s for s in multiclass_sources(evidence, _at_hand(evidence)) if s.reading.network == OF_TABLE_1]
    by_target = {
        target: {evidence.dataset_of(s.key): s for s in sources if s.reading.target == target}
        for target in ("zero", "product")
    }
    for dataset, product in by_target["product"].items():
        zero = by_target["zero"].get(dataset)
        if zero is None:
            continue
        finding.cite(evidence, zero.key, "metrics.csv")
        finding.cite(evidence, product.key, "metrics.csv")
        metrics = [of_vote(s.frame(evidence, "metrics.csv"), "printed", "population") for s in (zero, product)]
        for model in CLAI:
            of_zero, of_product = (values(frame, model, "accuracy") for frame in metrics)
            reading = Reading(kernel=KERNEL_OF[model], network=OF_TABLE_1)
            differences = (of_zero - of_product).dropna()
            finding.add(weigh(evidence, product.key, ACCURACY_GAIN, differences, POINTS, MORE, reading))
