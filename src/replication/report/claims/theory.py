"""Claims on the mathematics: alignment, the Parzen-window classifier and zero targets (9, 10, 15); assertion A."""

import pandas as pd

from replication.report.claims.finding import DIFFERENCE, NUMBER, PAIR, PER_CENT, POINTS, Finding, Place, Unit
from replication.report.claims.hypothesis import ANY, MORE, Hypothesis, decided
from replication.report.claims.sources import KERNELS, MULTICLASS, TARGETS, multiclass_sources, of_vote
from replication.report.evidence import by_setting
from replication.report.statistics import gap, replicates, values
from replication.runs.registry import EMBEDDINGS, MODELS

CHECKS, CHECKED = "theory", "simulated classes"
AGREEMENT = 0.99
ROUNDING = 1e-9
"""What rounding in float64 may take from the bound."""
MAXIMISED = {"clai-m": "alignment-m", "clai-c": "alignment-c"}
"""By CLaI model the training whose loss is the alignment itself."""
NEARLY_ALL = Hypothesis("not worse", margin=0.1, null=1, bounds=ANY)
ALIKE = Hypothesis("not worse", margin=1 - AGREEMENT, null=1, bounds=(0, 1))
TURNS = ("turns-images", "turns-bands")
"""Studies in which classes take turns."""
OF_KERNELS = {"cosine": "the cosine kernel", "full": "the Gaussian kernel"}
COHORTS = ("mimic-iv", "challenge2019-septic")
RATIO = Unit(2)


def optimises_alignment(finding: Finding) -> None:
    present = finding.start(MULTICLASS)
    finding.required = ("maximising the alignment", "other losses")
    for dataset in present:
        trace = finding.frame(dataset, "alignment.csv").sort_values("epoch")
        for own in PAIR:
            of_kernel = trace[trace["kernel"].isin(trace.loc[trace["model"] == own, "kernel"])]
            curves = of_kernel.pivot_table("centred_alignment", ["seed", "epoch"], "model").groupby("seed")
            rises, title = curves.last() - curves.first(), MODELS[own].title
            for model in rises:
                quantity = f"rise of the centred alignment by {title}'s kernel, {EMBEDDINGS[str(model)].title}"
                finding.add(dataset, quantity, rises[model].dropna(), NUMBER)
            if {own, MAXIMISED[own]} <= set(rises):
                ratio = (rises[own] / rises[MAXIMISED[own]]).dropna()
                quantity = f"rise of {title}'s alignment over that of maximising it"
                finding.add(dataset, quantity, ratio, RATIO, NEARLY_ALL, part="maximising the alignment")
            for other in [model for model in rises if own in rises and model not in (*PAIR, *MAXIMISED.values())]:
                difference = (rises[own] - rises[other]).dropna()
                quantity = f"rise of the alignment, {title} minus {EMBEDDINGS[str(other)].title}"
                finding.add(dataset, quantity, difference, DIFFERENCE, MORE, part="other losses")
    if not finding.estimates:
        finding.missing.append("traced trainings by other losses")
    checks = finding.frame(CHECKS, "theory.csv")
    margins = checks[(checks["check"] == "bound") & (checks["quantity"] == "smallest_margin")]["value"]
    if len(margins):
        smallest, quantity = float(margins.min()), "smallest loss minus (1 - A²) of random matrices, targets +1 and -1"
        finding.add(CHECKS, quantity, smallest, NUMBER, data=CHECKED, role="beside")
        finding.note = "its bound holds" if smallest >= -ROUNDING else "its lower bound fails"
    finding.not_controlled.append("shuffled labels")


def is_parzen_classifier(finding: Finding) -> None:
    present = finding.start([*MULTICLASS, *COHORTS])
    finding.required = ("the derivation's last line", "a class as large as the rest", "the data's class sizes")
    for dataset in present:
        measured = finding.frame(dataset, "agreement.csv")
        alike, same = (replicates(measured[measured["quantity"] == name]) for name in ("agreement", "class_agreement"))
        quantity = "decisions on each class that agree (99 % asked), CLaI-M's embeddings"
        finding.add(dataset, quantity, alike, PER_CENT, ALIKE, part="the data's class sizes")
        finding.add(dataset, "samples that get the same class, on CLaI-M's embeddings", same, PER_CENT)
    checks = finding.frame(CHECKS, "theory.csv")
    simulated = checks[(checks["check"] == "parzen") & (checks["quantity"] == "agreement_kde")]
    if len(simulated):
        _add_simulated(finding, by_setting(simulated))
    finding.not_controlled.append("shares varied on one learned embedding")


def _add_simulated(finding: Finding, agreements: pd.DataFrame) -> None:
    """Add the agreement with the Parzen-window Bayes rule on simulated classes: of the printed rule, and of equation 14.

    If the derivation's algebra were right, its last line and the printed rule would decide alike.
    """
    by_rule = agreements.pivot_table(index=["share", "bandwidth", "seed"], columns="rule", values="value")
    apart = float((by_rule["printed"] - by_rule["derivation"]).abs().max())
    quantity = (
        "largest difference between the printed rule and the derivation's last line, in agreement with the Bayes rule"
    )
    finding.add(CHECKS, quantity, apart, PER_CENT, decided(apart == 0), data=CHECKED, part="the derivation's last line")
    for share, rows in by_rule.groupby("share"):
        lowest, equal = float(rows["printed"].min()), share == 0.5
        quantity = f"least agreement with the Bayes rule, class share {float(str(share)):g}"
        part, outcome = ("a class as large as the rest", decided(lowest >= AGREEMENT)) if equal else ("", None)
        finding.add(CHECKS, quantity, lowest, PER_CENT, outcome, data=CHECKED, part=part)


def zero_targets_help(finding: Finding) -> None:
    present = finding.start(MULTICLASS)
    finding.required = tuple(OF_KERNELS.values())
    for study in TURNS:
        turns = finding.frame(study, "history.csv")
        if "turn_change" in turns:
            changes = turns.pivot_table("turn_change", "seed", "cell")
            best = turns.pivot_table("validation_accuracy", "seed", "cell", aggfunc="max")
            for kernel, part in OF_KERNELS.items():
                cells = [
                    finding.evidence.cell(study, kernel=kernel, target=name, schedule="sequential-all-long")
                    for name in TARGETS
                ]
                zero, product = (changes[cell] for cell in cells)
                change, of = "change of a class's ROC-AUC while others train", f"{KERNELS[kernel]} kernel"
                quantity = f"{change}, zero minus product, {of}"
                finding.add(study, quantity, (zero - product).dropna(), POINTS, MORE, part=part)
                for target, cell in zip(TARGETS, cells, strict=True):
                    named = f"{target} targets, {of}"
                    finding.add(study, f"{change}, {named}", changes[cell].dropna(), POINTS, role="beside")
                    quantity = f"validation accuracy at the best epoch, {named}"
                    finding.add(study, quantity, best[cell].dropna(), PER_CENT, role="beside")
    if not finding.estimates:
        finding.missing = ["runs of the sequential schedule with both targets, measured after each class's turn"]
    by_data: dict[str, dict[str, pd.DataFrame]] = {}
    for source in multiclass_sources(finding, present):
        metrics = of_vote(source.frame(finding, "metrics.csv"))
        by_data.setdefault(finding.evidence.dataset_of(source.key), {})[source.target] = metrics
    for dataset, by_target in by_data.items():
        for model in PAIR if set(TARGETS) <= set(by_target) else ():
            zero, product = (values(by_target[target], model, "accuracy") for target in TARGETS)
            quantity = f"accuracy, zero minus product, {MODELS[model].title}"
            finding.add(dataset, quantity, (zero - product).dropna(), POINTS, MORE, Place(option="joint schedule"))
    metrics = of_vote(finding.frame("ablation", "metrics.csv"))
    for kernel, title in KERNELS.items():
        difference = gap(metrics, "accuracy", f"{kernel}_zero", f"{kernel}_product")
        quantity = f"accuracy, {title} kernel, zero minus product"
        finding.add("ablation", quantity, difference, POINTS, MORE, Place(option="joint schedule"))
    finding.not_controlled.append("equal numbers of steps")


def learned_metric(finding: Finding) -> None:
    metrics = of_vote(finding.frame("ablation", "metrics.csv"))
    for target in TARGETS:
        difference = gap(metrics, "accuracy", f"full_{target}", f"identity_{target}")
        quantity = f"accuracy, {KERNELS['full']} minus {KERNELS['identity']}"
        finding.add("ablation", quantity, difference, POINTS, None, Place(target))
    finding.missing.append("runs whose encoder ends in a layer that cannot absorb M")
