"""Claims on sepsis: performance, calibration and latent signals (5-8, 11).

MIMIC-IV is judged where it is at hand. Elsewhere the open Challenge 2019 cohort stands in for it and is named.
"""

import pandas as pd

from clai.report.claims.claim import claim
from clai.report.claims.finding import DIFFERENCE, FRACTION, REPLICATES, Finding, Part, Statistic, Unit, start
from clai.report.claims.studies import SEPSIS, rows
from clai.report.evidence import Evidence
from clai.report.statistics import interval, paired_difference, replicates, spread
from clai.runs.models import CLAI, MODELS

MIXTURE = "student-t-mixture"
METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1", "ece": "ECE"}
EFFECT_SIZE = Unit(2, signed=True)
# Calibrated errors are about 0.001, so that three digits would make them all alike.
CALIBRATED_ERROR = Unit(4)


def _cohorts(evidence: Evidence, file: str) -> tuple[Finding, list[str]]:
    """Begin a finding on MIMIC-IV if it is at hand, on the open substitute otherwise; what is missing is named."""
    finding, present = start(evidence, SEPSIS, file)
    return start(evidence, ["mimic-iv"], file) if "mimic-iv" in present else (finding, present)


def _minus(model: str, other: str) -> str:
    return f"{MODELS[model].title} minus {MODELS[other].title}"


@claim(
    5,
    claim="CLaI-M has the lowest calibration error in sepsis detection.",
    place="table 3 (766)",
    test="Differences in expected calibration error (ECE) to CLaI-C and to the mixture, paired by fold.",
    rule="Reproduced if both intervals lie below zero.",
)
def lowest_calibration_error(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = _cohorts(evidence, "metrics.csv")
    for dataset in present:
        metrics, title = evidence.metrics(dataset), evidence.title(dataset)
        gaps = {other: paired_difference(metrics, "ece", "clai-m", other) for other in ("clai-c", MIXTURE)}
        parts = [
            Part(title, "ECE", [Statistic(_minus("clai-m", other), gap, DIFFERENCE)], gap.below_zero)
            for other, gap in gaps.items()
        ]
        finding.add(*parts, known=all(gap.known for gap in gaps.values()))
    return finding


@claim(
    6,
    claim="In AUROC, AUPRC and F1, CLaI-M is only slightly below CLaI-C.",
    place="table 3, caption (766)",
    test="Differences in the three metrics, paired by fold.",
    rule=(
        "Reproduced if each mean difference lies between zero and minus the larger of the two models' standard "
        "deviations over folds. The means alone decide."
    ),
)
def slightly_lower(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = _cohorts(evidence, "metrics.csv")
    for dataset in present:
        metrics = evidence.metrics(dataset)
        parts, known = [], True
        for metric in ("auroc", "auprc", "f1"):
            gap = paired_difference(metrics, metric, "clai-m", "clai-c")
            sd = max(spread(replicates(rows(metrics, model, metric)))[1] for model in CLAI)
            statistics = [
                Statistic(_minus("clai-m", "clai-c"), gap, DIFFERENCE),
                Statistic("larger standard deviation", sd, FRACTION),
            ]
            parts.append(Part(evidence.title(dataset), METRICS[metric], statistics, -sd <= gap.mean <= 0))
            known = known and gap.known
        finding.add(*parts, known=known)
    return finding


@claim(
    7,
    claim="CLaI has the highest performance and the best calibration against the mixture of Student-t.",
    place="table 3, caption (766)",
    test="Differences of each CLaI model to the mixture in AUROC, AUPRC, F1 and ECE, paired by fold.",
    rule=(
        "Reproduced if one and the same CLaI model has the intervals of AUROC, AUPRC and F1 above zero and the "
        "interval of ECE below zero."
    ),
)
def beats_mixture(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = _cohorts(evidence, "metrics.csv")
    finding.alternatives = True
    for dataset in present:
        metrics = evidence.metrics(dataset)
        parts, known = [], True
        for model in CLAI:
            gaps = {metric: paired_difference(metrics, metric, model, MIXTURE) for metric in METRICS}
            wins = all(gap.below_zero if metric == "ece" else gap.above_zero for metric, gap in gaps.items())
            statistics = [Statistic(METRICS[metric], gap, DIFFERENCE) for metric, gap in gaps.items()]
            parts.append(Part(evidence.title(dataset), _minus(model, MIXTURE), statistics, wins))
            known = known and all(gap.known for gap in gaps.values())
        finding.add(*parts, known=known)
    return finding


def constant_calibration_error(metrics: pd.DataFrame) -> pd.Series:
    """Return, by fold, the ECE of a constant prediction: the mean prevalence of the other folds.

    It is |constant - prevalence|.
    """
    prevalence = replicates(metrics[metrics["metric"] == "prevalence"])
    others = (prevalence.sum() - prevalence) / (len(prevalence) - 1)
    return (others - prevalence).abs()


@claim(
    8,
    claim="CLaI's calibration is competitive.",
    place="abstract (69)",
    test=(
        "Expected calibration error (ECE) of the better CLaI model against a constant at the prevalence and against "
        "the other models, paired by fold. The errors after calibration on validation patients are shown as well."
    ),
    rule="Reproduced if no interval of CLaI minus a baseline lies above zero.",
)
def competitive_calibration(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = _cohorts(evidence, "metrics.csv")
    for dataset in present:
        metrics, title = evidence.metrics(dataset), evidence.title(dataset)
        best = min(CLAI, key=lambda model: spread(replicates(rows(metrics, model, "ece")))[0])
        constant = (replicates(rows(metrics, best, "ece")) - constant_calibration_error(metrics)).dropna()
        gaps = {f"{MODELS[best].title} minus a constant at the prevalence": interval(constant)}
        baselines = [model for model in MODELS if model in set(metrics["model"]) - {*CLAI, "constant"}]
        for other in baselines:
            gaps[_minus(best, other)] = paired_difference(metrics, "ece", best, other)
        parts = [
            Part(title, "ECE", [Statistic(name, gap, DIFFERENCE)], not gap.above_zero) for name, gap in gaps.items()
        ]
        finding.add(*parts, known=all(gap.known for gap in gaps.values()))
        calibrated = [
            Statistic(
                MODELS[model].title, spread(replicates(rows(metrics, model, "ece_calibrated")))[0], CALIBRATED_ERROR
            )
            for model in [*CLAI, *baselines]
        ]
        finding.add(Part(title, "ECE after logistic regression on validation patients", calibrated))
    return finding


@claim(
    11,
    claim="CLaI's latent signals converge during events, in the form of a Gaussian process's, and are smoother.",
    place="abstract (69), figure 4",
    test=(
        "The area between signals in events minus the area out of them, over all stays, and the roughness of signals, "
        "both paired by fold. The area is the mean distance of the outermost signals. The effect size is the mean "
        "difference of areas over its standard deviation over stays. The roughness is the mean absolute second "
        "difference of a signal over its standard deviation. The likeness to a Gaussian process is not tested."
    ),
    rule=(
        "Reproduced if, for each CLaI model, the area is smaller in events and the roughness below the Gaussian "
        "process's, both intervals below zero."
    ),
)
def signals_converge(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = _cohorts(evidence, "latent.csv")
    none = pd.Series(dtype=float)
    for dataset in present:
        latent, title = evidence.frame(dataset, "latent.csv"), evidence.title(dataset)
        values = {key: replicates(part) for key, part in latent.groupby(["model", "quantity"])}
        for model in [m for m in CLAI if (m, "area_event") in values]:
            area = interval((values[model, "area_event"] - values[model, "area_no_event"]).dropna())
            rough = interval((values[model, "roughness"] - values.get(("gp", "roughness"), none)).dropna())
            effects = {
                "in events": interval(values.get((model, "area_effect"), none)),
                "in the last hours of stays without an event": interval(
                    values.get((model, "area_effect_control"), none)
                ),
            }
            name = MODELS[model].title
            finding.add(
                Part(
                    title,
                    f"{name}, area between signals",
                    [Statistic("in minus out of events", area, DIFFERENCE)],
                    area.below_zero,
                ),
                Part(
                    title, "roughness of signals", [Statistic(_minus(model, "gp"), rough, DIFFERENCE)], rough.below_zero
                ),
                known=area.known and rough.known,
                needs=f"{REPLICATES} and of the GP",
            )
            statistics = [Statistic(where, effect, EFFECT_SIZE) for where, effect in effects.items()]
            finding.add(Part(title, f"{name}, effect size of the area", statistics))
    return finding
