"""Claims on sepsis: performance, calibration and latent signals (5-8, 11).

MIMIC-IV is judged where it is at hand. Elsewhere the open Challenge 2019 cohorts stand in for it and are named.
"""

from dataclasses import replace

import pandas as pd

from replication.report.claims.controls import control_signals
from replication.report.claims.finding import DIFFERENCE, FINE_DIFFERENCE, Finding, Part, Unit, claim, start, weigh
from replication.report.claims.hypothesis import EFFECT_MARGIN, MARGIN, ROUGHNESS_MARGIN, Hypothesis
from replication.report.claims.sources import (
    COHORT_CHOICES,
    ECE_CHOICES,
    SEPSIS,
    VOTE_CHOICES,
    errors,
    sepsis_sources,
    values,
    votes,
)
from replication.report.evidence import Evidence
from replication.report.printed_values import printed_value
from replication.report.statistics import interval
from replication.runs.models import CLAI, MODELS

MIXTURE = "student-t-mixture"
METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1"}
EFFECT_SIZE = Unit(2, "standard deviations", signed=True)

BETTER = Hypothesis("better", MARGIN)
LOWER = Hypothesis("better", MARGIN, sign=-1)
NOT_LOWER = Hypothesis("not worse", MARGIN)
NOT_HIGHER = Hypothesis("not worse", MARGIN, sign=-1)
SMALLER_IN_EVENTS = Hypothesis("better", EFFECT_MARGIN, sign=-1)
SMOOTHER = Hypothesis("better", ROUGHNESS_MARGIN, sign=-1)


def _begin(evidence: Evidence, file: str) -> Finding:
    """Begin a finding on MIMIC-IV if it is at hand, on the open substitutes otherwise; what is missing is named."""
    finding, present = start(evidence, SEPSIS, file)
    finding = start(evidence, ["mimic-iv"], file)[0] if "mimic-iv" in present else finding
    if present and "mimic-iv" not in present:
        needs = {evidence.expected[key]["needs"] for key in SEPSIS[1:] if key in evidence.expected}
        finding.missing = [need for need in finding.missing if not need.endswith(tuple(needs))]
    return finding


def _minus(model: str, other: str) -> str:
    return f"{MODELS[model].title} minus {MODELS[other].title}"


@claim(
    "5",
    "CLaI-M has the lowest sepsis ECE",
    claim="CLaI-M has the lowest calibration error in sepsis detection.",
    place="table 3 (766)",
    test="Differences in expected calibration error (ECE) to CLaI-C and to the mixture, paired by fold.",
    rule=f"Reproduced if both differences are better (lower) than 0; margin {MARGIN:g}.",
)
def lowest_calibration_error(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = _begin(evidence, "metrics.csv")
    finding.choices = {**VOTE_CHOICES, **ECE_CHOICES}
    for source in sepsis_sources(evidence):
        finding.cite(evidence, source.key, "metrics.csv")
        for of_vote, metrics in votes(source, source.frame(evidence, "metrics.csv")):
            for reading, metric in errors(of_vote):
                finding.add(*(
                    weigh(evidence, source.key, f"ECE, {_minus('clai-m', other)}", metrics.gap(metric, "clai-m", other),
                           FINE_DIFFERENCE, LOWER, reading)
                    for other in ("clai-c", MIXTURE)
                ))  # fmt: skip
    return finding


@claim(
    "6",
    "CLaI-M is just below CLaI-C",
    claim="In AUROC, AUPRC and F1, CLaI-M is only slightly below CLaI-C.",
    place="table 3, caption (766)",
    test="Differences in the three metrics, paired by fold. The differences that the paper prints stand beside them.",
    rule=f"Reproduced if no difference is worse than 0 by the margin of {MARGIN:g}.",
    limits="The paper gives no size for `slightly`; its own differences exceed this margin.",
)
def slightly_lower(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = _begin(evidence, "metrics.csv")
    finding.choices = VOTE_CHOICES
    for source in sepsis_sources(evidence):
        finding.cite(evidence, source.key, "metrics.csv")
        for reading, metrics in votes(source, source.frame(evidence, "metrics.csv")):
            finding.add(*(
                weigh(evidence, source.key, f"{title}, {_minus('clai-m', 'clai-c')}",
                       metrics.gap(metric, "clai-m", "clai-c"), DIFFERENCE, NOT_LOWER, reading)
                for metric, title in METRICS.items()
            ))  # fmt: skip
    for metric, title in METRICS.items() if finding.parts else ():
        ours, other = (printed_value(printed_values, "table3", model, metric)[0] for model in ("clai-m", "clai-c"))
        quantity = f"{title}, {_minus('clai-m', 'clai-c')}, as printed"
        finding.add(Part("MIMIC-IV, the paper", quantity, ours - other, DIFFERENCE))
    return finding


@claim(
    "7",
    "CLaI beats the mixture of Student-t",
    claim="CLaI has the highest performance and the best calibration against the mixture of Student-t.",
    place="table 3, caption (766)",
    test="Differences of each CLaI model to the mixture in AUROC, AUPRC, F1 and ECE, paired by fold.",
    rule=(
        "Reproduced if, for one and the same CLaI model, the differences in AUROC, AUPRC and F1 are better (higher) and "
        f"the one in ECE better (lower) than 0; margin {MARGIN:g}."
    ),
)
def beats_mixture(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = _begin(evidence, "metrics.csv")
    finding.choices = {**VOTE_CHOICES, **ECE_CHOICES}
    for source in sepsis_sources(evidence):
        finding.cite(evidence, source.key, "metrics.csv")
        for of_vote, metrics in votes(source, source.frame(evidence, "metrics.csv")):
            for reading, ece in errors(of_vote):
                if metrics.of(MIXTURE, ece).empty:
                    continue
                for model in CLAI:
                    finding.add(*(
                        weigh(evidence, source.key, f"{title}, CLaI minus {MODELS[MIXTURE].title}",
                               metrics.gap(metric, model, MIXTURE), DIFFERENCE,
                               LOWER if metric == ece else BETTER, reading, MODELS[model].title)
                        for metric, title in {**METRICS, ece: "ECE"}.items()
                    ))  # fmt: skip
    return finding


@claim(
    "8",
    "CLaI's calibration is competitive",
    claim="CLaI's calibration is competitive.",
    place="abstract (69)",
    test=(
        "Expected calibration error (ECE) of each CLaI model minus that of every other model, a constant at the "
        "prevalence among them, paired by fold."
    ),
    rule=f"Reproduced if, for one CLaI model, no difference is worse (higher) than 0 by the margin of {MARGIN:g}.",
)
def competitive_calibration(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = _begin(evidence, "metrics.csv")
    finding.choices = {**VOTE_CHOICES, **ECE_CHOICES}
    for source in sepsis_sources(evidence):
        finding.cite(evidence, source.key, "metrics.csv")
        for of_vote, metrics in votes(source, source.frame(evidence, "metrics.csv")):
            baselines = [model for model in MODELS if model in metrics.models - set(CLAI)]
            for reading, ece in errors(of_vote):
                for model in CLAI:
                    finding.add(*(
                        weigh(evidence, source.key, f"ECE, CLaI minus {MODELS[other].title}",
                               metrics.gap(ece, model, other), FINE_DIFFERENCE, NOT_HIGHER, reading, MODELS[model].title)
                        for other in baselines
                    ))  # fmt: skip
    return finding


@claim(
    "11",
    "Signals converge, smoothly",
    claim="CLaI's latent signals converge during events, in the form of a Gaussian process's, and are smoother.",
    place="abstract (69), figure 4",
    test=(
        "The area between signals in events minus the area out of them, over all stays, and the roughness of signals, "
        "both paired by fold. The area is the mean distance of the outermost signals. Its effect size is the mean "
        "difference over its standard deviation over stays. The roughness is the mean absolute second difference of a "
        "signal over its standard deviation. The paper does not name the model of figure 4."
    ),
    rule=(
        f"Reproduced if the effect size of the area (margin {EFFECT_MARGIN:g}) and the roughness minus the Gaussian "
        f"process's (margin {ROUGHNESS_MARGIN:g}) are both better (lower) than 0."
    ),
    limits=(
        "The likeness to a Gaussian process is not tested. The cosine kernel ignores the norm of an embedding, which the "
        "area of CLaI-C measures; the controls look at signals as the kernels see them."
    ),
)
def signals_converge(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding = _begin(evidence, "latent.csv")
    finding.choices = {**COHORT_CHOICES, "model": tuple(MODELS[model].title for model in CLAI)}
    none = pd.Series(dtype=float)
    for source in [s for s in sepsis_sources(evidence) if s.reading.loss == "balanced"]:
        finding.cite(evidence, source.key, "latent.csv")
        latent, title = evidence.frame(source.key, "latent.csv"), evidence.title(source.key)
        by_quantity = {
            (model, quantity): values(latent.rename(columns={"quantity": "metric"}), model, quantity)
            for model, quantity in set(latent[["model", "quantity"]].itertuples(index=False, name=None))
        }
        for model in [m for m in CLAI if (m, "area_effect") in by_quantity]:
            name = MODELS[model].title
            reading = replace(source.reading, loss="", model=name)
            rough = (by_quantity[model, "roughness"] - by_quantity.get(("gp", "roughness"), none)).dropna()
            area = (by_quantity[model, "area_event"] - by_quantity[model, "area_no_event"]).dropna()
            finding.add(
                weigh(evidence, source.key, "effect size of the area, in minus out of events",
                       by_quantity[model, "area_effect"], EFFECT_SIZE, SMALLER_IN_EVENTS, reading),
                weigh(evidence, source.key, "roughness, CLaI minus Gaussian process", rough, DIFFERENCE, SMOOTHER,
                       reading),
                Part(title, f"{name}: area, in minus out of events", interval(area), DIFFERENCE),
                Part(title, f"{name}: effect size in the last hours of stays without an event",
                     interval(by_quantity.get((model, "area_effect_control"), none)), EFFECT_SIZE),
            )  # fmt: skip
    cohorts = [source.key for source in sepsis_sources(evidence) if source.reading.loss == "balanced"]
    control_signals(finding, evidence, cohorts, EFFECT_SIZE, SMALLER_IN_EVENTS)
    return finding
