"""Claims on sepsis: performance, calibration and latent signals (5-8, 11).

MIMIC-IV is judged where it is at hand. Elsewhere the open Challenge 2019 cohorts stand in for it and are named.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.report.claims.finding import DIFFERENCE, FINE_DIFFERENCE, Finding, Part, Unit, claim, start, weigh
from replication.report.claims.hypothesis import (
    EFFECT_MARGIN,
    LESS,
    MARGIN,
    MORE,
    NOT_LESS,
    NOT_MORE,
    ROUGHNESS_MARGIN,
    Hypothesis,
    Outcome,
    Reading,
)
from replication.report.claims.sources import Source, cells, of_vote, values
from replication.report.evidence import Evidence
from replication.report.printed_values import printed_value
from replication.report.statistics import interval
from replication.runs.controls import EMBEDDINGS, SIGNALS
from replication.runs.models import CLAI, MODELS

SEPSIS = ("mimic-iv", "challenge2019", "challenge2019-septic")
PRINTED_LOSS = {"challenge2019": "printed-loss", "challenge2019-septic": "printed-loss-septic"}
"""By cohort the study that trains its models with the printed loss."""
MIXTURE = "student-t-mixture"
METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1"}
EFFECT_SIZE = Unit(2, "standard deviations", signed=True)
COHORT_CHOICES = {"cohort": ("septic", "whole")}
VOTE_CHOICES = {
    **COHORT_CHOICES,
    "loss": ("printed", "balanced"),
    "shares": ("population", "equal"),
    "rule": ("printed", "parzen"),
}
ECE_CHOICES = {"ece": ("top label", "positive rate"), "probability": ("raw", "calibrated")}
ECES = {
    ("top label", "raw"): "ece",
    ("positive rate", "raw"): "ece_positive_rate",
    ("top label", "calibrated"): "ece_calibrated",
    ("positive rate", "calibrated"): "ece_positive_rate_calibrated",
}
"""The metric of a calibration error of two classes."""
SEEN = {"seen": "as the kernel sees them", "unit": "on unit vectors"}
"""The forms of signals, by the ending of their quantities (`replication.experiments.seen_signals`)."""

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


def sepsis_sources(evidence: Evidence) -> Iterator[Source]:
    """Yield the evidence on the cohorts: MIMIC-IV where it is at hand, the open Challenge 2019 cohorts otherwise.

    Baselines of runs with the printed loss are those of the same folds with the balanced one.
    """
    own = {model: model for model in CLAI}
    if evidence.has("mimic-iv"):
        yield Source("mimic-iv", Reading(cohort="septic", loss="balanced"), own, "mimic-iv")
        return
    for dataset, cohort in (("challenge2019-septic", "septic"), ("challenge2019", "whole")):
        if not evidence.has(dataset):
            continue
        source = Source(dataset, Reading(cohort=cohort, loss="balanced"), own, dataset)
        yield source
        if evidence.has(study := PRINTED_LOSS[dataset]):
            reading = replace(source.reading, loss="printed")
            yield Source(study, reading, cells("unweighted"), dataset)


class Values:
    """What `values` and `gap` return, for all models and metrics of `metrics`. One pass over them saves most of the time."""

    def __init__(self, metrics: pd.DataFrame) -> None:
        unit = "fold" if metrics["fold"].notna().any() else "seed"
        by_replicate = metrics.pivot_table("value", ["model", "metric"], unit, aggfunc="mean")
        self._replicates = by_replicate.columns
        self._of = dict(zip(by_replicate.index, by_replicate.to_numpy(), strict=True))
        self._missing = np.full(len(self._replicates), np.nan)
        self.models = set(metrics["model"])

    def of(self, model: str, metric: str) -> pd.Series:
        return self._known(self._row(model, metric))

    def gap(self, metric: str, model: str, other: str) -> pd.Series:
        return self._known(self._row(model, metric) - self._row(other, metric))

    def _row(self, model: str, metric: str) -> NDArray[np.float64]:
        return self._of.get((model, metric), self._missing)

    def _known(self, row: NDArray[np.float64]) -> pd.Series:
        known = ~np.isnan(row)
        return pd.Series(row[known], index=self._replicates[known], name="value")


def _votes(finding: Finding, evidence: Evidence) -> Iterator[tuple[Source, Reading, Values]]:
    """Yield the readings of each source by shares and rule, with their metrics; cite these."""
    for source in sepsis_sources(evidence):
        finding.cite(evidence, source.key, "metrics.csv")
        metrics = source.frame(evidence, "metrics.csv")
        for shares in VOTE_CHOICES["shares"]:
            for rule in VOTE_CHOICES["rule"]:
                chosen = of_vote(metrics, rule, shares)
                if chosen["model"].isin(CLAI).any():
                    yield source, replace(source.reading, shares=shares, rule=rule), Values(chosen)


def _errors(finding: Finding, evidence: Evidence) -> Iterator[tuple[str, Reading, Values, str]]:
    """Yield evidence folder, reading and metrics of each vote with each calibration error, and the error's metric."""
    for source, reading, metrics in _votes(finding, evidence):
        for (ece, probability), metric in ECES.items():
            yield source.key, replace(reading, ece=ece, probability=probability), metrics, metric


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
    for key, reading, metrics, ece in _errors(finding, evidence):
        for other in ("clai-c", MIXTURE):
            quantity, differences = f"ECE, {_minus('clai-m', other)}", metrics.gap(ece, "clai-m", other)
            finding.add(weigh(evidence, key, quantity, differences, FINE_DIFFERENCE, LESS, reading))
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
    for source, reading, metrics in _votes(finding, evidence):
        for metric, title in METRICS.items():
            quantity, differences = f"{title}, {_minus('clai-m', 'clai-c')}", metrics.gap(metric, "clai-m", "clai-c")
            finding.add(weigh(evidence, source.key, quantity, differences, DIFFERENCE, NOT_LESS, reading))
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
    for key, reading, metrics, ece in _errors(finding, evidence):
        for model in CLAI if len(metrics.of(MIXTURE, ece)) else ():
            for metric, title in {**METRICS, ece: "ECE"}.items():
                quantity, differences = (
                    f"{title}, CLaI minus {MODELS[MIXTURE].title}",
                    metrics.gap(metric, model, MIXTURE),
                )
                hypothesis, name = LESS if metric == ece else MORE, MODELS[model].title
                finding.add(weigh(evidence, key, quantity, differences, DIFFERENCE, hypothesis, reading, name))
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
    for key, reading, metrics, ece in _errors(finding, evidence):
        for model in CLAI:
            for other in [name for name in MODELS if name in metrics.models - set(CLAI)]:
                quantity, differences = f"ECE, CLaI minus {MODELS[other].title}", metrics.gap(ece, model, other)
                name = MODELS[model].title
                finding.add(weigh(evidence, key, quantity, differences, FINE_DIFFERENCE, NOT_MORE, reading, name))
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
    cohorts = [source for source in sepsis_sources(evidence) if source.reading.loss == "balanced"]
    for source in cohorts:
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
    for source in cohorts:
        _control_signals(finding, evidence, source.key)
    return finding


def _control_signals(finding: Finding, evidence: Evidence, dataset: str) -> None:
    """Add the effect size of the area as the kernels see the signals, without norms, and with cross-entropy.

    Signals of CLaI that converge agree with the claim; those of cross-entropy speak against it.
    """
    parts, title = [], evidence.title(dataset)
    latent = evidence.frame(dataset, "latent.csv").rename(columns={"quantity": "metric"})
    for model in SIGNALS:
        for form, words in SEEN.items():
            if form == "unit" and MODELS[EMBEDDINGS[model].model].kernel != "gaussian":
                continue  # the cosine kernel sees unit vectors anyway
            effect, rough = (values(latent, model, f"{quantity}_{form}") for quantity in ("area_effect", "roughness"))
            if effect.empty:
                continue
            name = f"{EMBEDDINGS[model].title}, {words}"
            quantity, other = f"{name}: effect size of the area", "" if model in CLAI else model
            area = weigh(evidence, dataset, quantity, effect, EFFECT_SIZE, SMALLER_IN_EVENTS, model=other)
            parts += [
                replace(area, outcome=area.outcome and _opposite(area.outcome)) if other else area,
                Part(title, f"{name}: roughness", interval(rough), DIFFERENCE),
            ]
    control = "signals as the kernels see them, without their norm, and those of cross-entropy"
    finding.control(f"{control}, on {title}", parts)


def _opposite(outcome: Outcome) -> Outcome:
    """Return what a number says of a claim where it was found without Collaborative Learning."""
    decisions = {Outcome.REPRODUCED: Outcome.NOT_REPRODUCED, Outcome.NOT_REPRODUCED: Outcome.REPRODUCED}
    return decisions.get(outcome, outcome)
