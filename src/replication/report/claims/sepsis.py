"""Claims on sepsis: performance, calibration and latent signals (5-8, 11).

MIMIC-IV is judged where it is at hand. Elsewhere the open Challenge 2019 cohorts stand in for it and are named.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from replication.report.claims.finding import DIFFERENCE, EFFECT, PAIR, Finding, Place
from replication.report.claims.hypothesis import ANY, LESS, MORE, NOT_MORE, Hypothesis
from replication.report.claims.sources import Source, of_vote, recorded
from replication.report.evidence import PRINTED_LOSS
from replication.report.labels import model_title
from replication.report.printed_values import printed_value
from replication.report.statistics import gap, values
from replication.runs.registry import EMBEDDINGS, MODELS

SEPSIS = ("mimic-iv", "challenge2019-septic", "challenge2019")
MIXTURE, CONSTANT = "student-t-mixture", "constant"
RANKING = {"auroc": "AUROC", "auprc": "AUPRC", "f1_validation": "F1 at the validation threshold"}
PRINTED = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1"}
VOTES = {"equal shares": ("printed", "equal"), "centred": ("centred", "population"),
         "balanced": ("balanced", "population"), "parzen": ("parzen", "population")}  # fmt: skip
"""Rule of decision and class shares of the references by option; the paper has the printed rule and the shares of the data."""
ERRORS = {"positive rate": "ece_positive_rate", "calibrated": "ece_calibrated"}
"""The metric of a calibration error by option; the paper has `ece`."""
CONVERGING = Hypothesis("better", margin=0.2, sign=-1, bounds=ANY)
"""In standard deviations: a small effect (Cohen 1988)."""
SMOOTHER = Hypothesis("better", margin=0.05, sign=-1, bounds=ANY)
"""In the unit of the roughness of signals, which lies between 0.6 and 1.5 in the published runs."""


@dataclass(frozen=True)
class Vote:
    """The metrics of one reading: of which evidence folder, with which option of ours, and the calibration error's name."""

    key: str
    metrics: pd.DataFrame
    option: str = ""
    error: str = "ece"

    def place(self, model: str = "") -> Place:
        return Place("", self.option, model)


def _begin(finding: Finding) -> list[str]:
    """Begin on MIMIC-IV if it is at hand, on the open substitutes otherwise; return these cohorts."""
    present = finding.start(["mimic-iv"] if finding.evidence.runs("mimic-iv", PAIR) else SEPSIS)
    if present:
        finding.missing = [text for text in finding.missing if "MIMIC-IV" in text]
    return present


def _votes(finding: Finding, *, errors: bool = False) -> Iterator[Vote]:
    """Yield the paper's reading, then each option of ours.

    The paper's are septic patients, the printed loss, and a recording as a batch; where no run has such batches, those of runs
    with many recordings stand in. Baselines of runs with the printed loss are those of the same folds with the balanced one.
    """
    evidence, paper = finding.evidence, None
    for dataset in _begin(finding):
        own = {model: model for model in PAIR}
        balanced = recorded(evidence, dataset, PAIR, "pair_weighting") != {"none"}
        sources = [Source(dataset, "", own, "balanced loss" if balanced else "", dataset)]
        studies = filter(evidence.has, PRINTED_LOSS.get(dataset, ()))
        for option, study in zip(("", "many recordings"), studies, strict=False):
            sources.append(Source(study, "", evidence.cells(study), option, dataset))
        for source in sources:
            whole = "whole cohort" if dataset == "challenge2019" else ""
            if whole and source.option:
                continue
            option, metrics = source.option or whole, source.frame(finding, "metrics.csv")
            paper = paper if option else (source.key, metrics)
            yield Vote(source.key, of_vote(metrics), option)
    if paper is None:
        finding.missing.append("runs of septic patients with the printed loss")
        return
    key, metrics = paper
    for option, (rule, shares) in VOTES.items():
        yield Vote(key, of_vote(metrics, rule, shares), option)
    for option, metric in ERRORS.items() if errors else ():
        yield Vote(key, of_vote(metrics), option, metric)


def lowest_calibration_error(finding: Finding) -> None:
    others = {"clai-c": "CLaI-C", MIXTURE: "the mixture"}
    finding.required = tuple(others.values())
    for vote in _votes(finding, errors=True):
        for other, part in others.items():
            _add_errors(finding, vote, "clai-m", other, f"CLaI-M minus {model_title(other)}", LESS, vote.place(), part)
        _control_constant(finding, vote, "clai-m")


def slightly_lower(finding: Finding) -> None:
    for vote in _votes(finding):
        for metric, title in PRINTED.items():
            ours, other = (printed_value(finding.printed, "table3", model, metric)[0] for model in PAIR)
            difference = gap(vote.metrics, metric, *PAIR)
            slightly = Hypothesis("not worse", margin=other - ours)
            quantity = f"{title}, CLaI-M minus CLaI-C"
            finding.add(vote.key, quantity, difference, DIFFERENCE, slightly, vote.place())
            if vote.option == "":
                data = "MIMIC-IV, the paper"
                finding.add(vote.key, f"{quantity}, as printed", ours - other, DIFFERENCE, data=data)


def beats_mixture(finding: Finding) -> None:
    finding.required = ("ranking", "calibration")
    for vote in _votes(finding, errors=True):
        for model in PAIR:
            place = vote.place(model_title(model))
            for metric, title in RANKING.items() if vote.error == "ece" else ():
                difference = gap(vote.metrics, metric, model, MIXTURE)
                quantity = f"{title}, CLaI minus mixture"
                finding.add(vote.key, quantity, difference, DIFFERENCE, MORE, place, part="ranking")
            _add_errors(finding, vote, model, MIXTURE, "CLaI minus mixture", LESS, place, part="calibration")
            _control_constant(finding, vote, model)


def competitive_calibration(finding: Finding) -> None:
    for vote in _votes(finding, errors=True):
        for model in PAIR:
            place = vote.place(model_title(model))
            _add_errors(finding, vote, model, MIXTURE, "CLaI minus mixture", NOT_MORE, place)
            _control_constant(finding, vote, model)
            for other in [m for m in MODELS if m in set(vote.metrics["cell"]) - {*PAIR, MIXTURE, CONSTANT}]:
                if vote.option == "":
                    beside = gap(vote.metrics, vote.error, model, other)
                    finding.add(vote.key, f"ECE, CLaI minus {model_title(other)}", beside, DIFFERENCE, None, place)


def _add_errors(
    finding: Finding, vote: Vote, model: str, other: str, of: str, hypothesis: Hypothesis, place: Place, part: str = ""
) -> None:
    """Add a calibration error and, beside that of the paper's reading, a proper score."""
    difference = gap(vote.metrics, vote.error, model, other)
    finding.add(vote.key, f"ECE, {of}", difference, DIFFERENCE, hypothesis, place, part=part)
    if vote.option == "":
        quantity = f"Brier score, {model_title(model)} minus {model_title(other)}"
        finding.add(vote.key, quantity, gap(vote.metrics, "brier", model, other), DIFFERENCE)


def _control_constant(finding: Finding, vote: Vote, model: str) -> None:
    """Add, under the paper's reading, whether a constant at the prevalence is as well calibrated."""
    if vote.option == "":
        difference = gap(vote.metrics, "ece", model, CONSTANT)
        quantity = f"ECE, {model_title(model)} minus {model_title(CONSTANT)}"
        finding.add(vote.key, quantity, difference, DIFFERENCE, LESS, role="control")


def signals_converge(finding: Finding) -> None:
    cohorts = _begin(finding)
    finding.required = ("convergence in events", "smoothness", "likeness to the process")
    for dataset in cohorts:
        option = "whole cohort" if dataset == "challenge2019" else ""
        latent = finding.frame(dataset, "latent.csv").rename(columns={"quantity": "metric", "model": "cell"})
        for model in PAIR:
            place = Place("", option, model_title(model))
            effect = values(latent, model, "area_effect_seen")
            finding.add(dataset, "area between signals, in minus out of events", effect, EFFECT, CONVERGING, place,
                        part="convergence in events")  # fmt: skip
            rough = (values(latent, model, "roughness_seen") - values(latent, "gp", "roughness")).dropna()
            finding.add(dataset, "roughness, CLaI minus Gaussian process", rough, DIFFERENCE, SMOOTHER, place,
                        part="smoothness")  # fmt: skip
            if not option:
                last = values(latent, model, "area_effect_control_seen")
                quantity = f"{model_title(model)}: the same in the last hours of stays without an event"
                finding.add(dataset, quantity, last, EFFECT, role="control")
                if last.isna().all():
                    finding.not_controlled.append(
                        f"{model_title(model)}, last hours of stays without an event: this cohort has none"
                    )
        other = values(latent, "cross-entropy", "area_effect_seen")
        if len(other):
            against = Hypothesis("not worse", margin=0.2, bounds=ANY)
            quantity = f"{EMBEDDINGS['cross-entropy'].title}: area between signals, in minus out of events"
            finding.add(dataset, quantity, other, EFFECT, against, role="control")
