"""Claims on the mathematics: alignment, the Parzen-window classifier and zero targets (9, 10, 15)."""

from collections.abc import Sequence

import pandas as pd

from clai.benchmark.analysis import values
from clai.report.claims.claim import claim
from clai.report.claims.finding import DIFFERENCE, LOSS, PER_CENT, POINTS, Finding, Part, Statistic, Unit, start
from clai.report.claims.studies import ABLATIONS, KERNELS, MULTICLASS, SEPSIS, TARGETS, rows
from clai.report.evidence import Evidence
from clai.report.statistics import interval, paired_difference, replicates
from clai.runs.models import CLAI, MODELS

CHECKS = "theory"
AGREEMENT = 0.99
# What rounding in float64 may take from the bound.
ROUNDING = 1e-9
MARGIN = Unit(2, style="e")
# The rules that stand beside the printed one. `derivation` is the last line of the paper's derivation.
OTHER_RULES = {
    "parzen": "rule parzen", "centred": "rule centred", "balanced": "rule balanced",
    "derivation": "the derivation's last line (389)",
}  # fmt: skip


@claim(
    9,
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
)
def optimises_alignment(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, [*MULTICLASS, *SEPSIS], "history.csv")
    finding.missing = []
    for dataset in present:
        history = evidence.frame(dataset, "history.csv").dropna(subset=["loss", "alignment"])
        for model in CLAI:
            runs = _runs(history[history["model"] == model], ["seed", "fold"])
            if runs:
                finding.add(_alignment(evidence.title(dataset), MODELS[model].title, runs))
    if evidence.has("ablation"):
        history = evidence.frame("ablation", "history.csv").dropna(subset=["loss", "alignment"])
        for target in TARGETS:
            runs = _runs(history[history["model"].str.endswith(f"_{target}")], ["model", "seed"])
            if runs:
                finding.add(_alignment(ABLATIONS["ablation"], f"target {target}, all kernels", runs))
        finding.cite(evidence, "ablation", "history.csv", title=True)
    checks = evidence.frame(CHECKS, "theory.csv")
    margins = checks[(checks["check"] == "bound") & (checks["quantity"] == "smallest_margin")]["value"]
    if len(margins):
        finding.cite(evidence, CHECKS, "theory.csv")
        statistics = [Statistic("smallest loss minus (1 - A^2)", margins.min(), MARGIN)]
        quantity = f"random matrices in {len(margins)} settings, targets +1 and -1"
        finding.add(Part("Numerical checks", quantity, statistics, bool(margins.min() >= -ROUNDING)))
    if not finding.outcomes:
        finding.missing = ["a trained CLaI model's history, or the numerical checks"]
    return finding


def _runs(history: pd.DataFrame, keys: list[str]) -> list[pd.DataFrame]:
    """Divide a history into runs of more than one epoch, each in the order of epochs."""
    groups = history.sort_values("epoch").groupby(keys, dropna=False)
    return [run for _, run in groups if len(run) > 1]


def _alignment(data: str, name: str, runs: Sequence[pd.DataFrame]) -> Part:
    """Say how loss and alignment go together in the runs where they do so least."""
    correlation = max(float(run["loss"].corr(run["alignment"], method="spearman")) for run in runs)
    rise, centred_rise = (
        min(float(run[column].iloc[-1] - run[column].iloc[0]) for run in runs)
        for column in ("alignment", "centred_alignment")
    )
    statistics = [
        Statistic("largest rank correlation of loss and alignment", correlation, DIFFERENCE),
        Statistic("smallest rise of alignment", rise, DIFFERENCE),
        Statistic("smallest rise of centred alignment", centred_rise, DIFFERENCE),
    ]
    return Part(data, f"{name}, {len(runs)} runs", statistics, correlation < 0 and rise > 0)


@claim(
    10,
    claim="Collaborative Inference is the kernel Bayes classifier with Parzen windows.",
    place="340-399",
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
    finding.cite(evidence, CHECKS, "theory.csv")
    data = "Two simulated Gaussian classes"
    finding.data.append(data)
    for share, part in values(agreements).groupby("share", sort=True):
        lowest = part.groupby("rule")["value"].min()
        statistics = [Statistic("printed rule", lowest["printed"], PER_CENT)]
        statistics += [Statistic(name, lowest[rule], PER_CENT) for rule, name in OTHER_RULES.items() if rule in lowest]
        settings = int((part["rule"] == "printed").sum())
        quantity = f"class share {share:g}, lowest agreement with the Parzen-Bayes rule over {settings} settings"
        finding.add(Part(data, quantity, statistics, bool(lowest["printed"] >= AGREEMENT)))
    _note_rules(finding, evidence)
    return finding


def _note_rules(finding: Finding, evidence: Evidence) -> None:
    """Add, without a say in the verdict, the accuracy of the printed rule minus the Parzen-Bayes rule in the ablation."""
    if not evidence.has("ablation"):
        return
    printed, parzen = (evidence.metrics("ablation", rule) for rule in ("printed", "parzen"))
    for target in TARGETS:
        statistics = []
        for kernel in KERNELS:
            cell = f"{kernel}_{target}"
            accuracy, other = (replicates(rows(metrics, cell, "accuracy")) for metrics in (printed, parzen))
            gap = interval((accuracy - other).dropna())
            statistics += [Statistic(f"kernel {kernel}", gap, POINTS)] if gap.n else []
        if statistics:
            quantity = f"target {target}, accuracy of the printed rule minus the Parzen-Bayes rule"
            finding.add(Part(ABLATIONS["ablation"], quantity, statistics))
    finding.cite(evidence, "ablation", "metrics.csv")


@claim(
    15,
    claim="Zero targets keep separated classes from being clustered again.",
    place="453",
    test=(
        "Test accuracy with the targets zero, product and masked, paired by seed, with every kernel of the ablation. "
        "Accuracy is a proxy: in the joint schedule, no class is separated before the others."
    ),
    rule="Reproduced if the interval of zero minus product lies above zero in accuracy with every kernel.",
)
def zero_targets_help(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = Finding()
    for study in [key for key in ABLATIONS if evidence.has(key)]:
        finding.cite(evidence, study, "metrics.csv", title=True)
        metrics = evidence.metrics(study)
        cells = set(metrics["model"])
        for kernel in [k for k in KERNELS if {f"{k}_zero", f"{k}_product"} <= cells]:
            gaps = {
                other: paired_difference(metrics, "accuracy", f"{kernel}_zero", f"{kernel}_{other}")
                for other in ("product", "masked")
                if f"{kernel}_{other}" in cells
            }
            statistics = [Statistic(f"zero minus {other}", gap, POINTS) for other, gap in gaps.items()]
            part = Part(ABLATIONS[study], f"kernel {kernel}, accuracy", statistics, gaps["product"].above_zero)
            finding.add(part, known=gaps["product"].known)
    if not finding.outcomes:
        finding.missing = ["two seeds or more with each of the targets zero, product and masked"]
    checks = evidence.frame(CHECKS, "theory.csv")
    floors = checks[(checks["check"] == "floor") & (checks["quantity"] == "floor")]
    if len(floors):
        finding.cite(evidence, CHECKS, "theory.csv")
        for family, table in values(floors).groupby("kernel"):
            statistics = [
                Statistic("lowest", table["value"].min(), LOSS),
                Statistic("highest", table["value"].max(), LOSS),
            ]
            finding.add(Part("Numerical checks", f"{family} kernel, floor of the loss with zero targets", statistics))
    return finding
