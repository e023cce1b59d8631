"""The datasets and studies that several claims rest on."""

import pandas as pd

from clai.report.claims.finding import Finding, Part, Statistic, Unit
from clai.report.evidence import Evidence
from clai.report.statistics import paired_difference

MULTICLASS = ("pathmnist", "cifar10", "sleepedf")
SEPSIS = ("mimic-iv", "challenge2019")
ABLATIONS = {
    "ablation": "Ablation",
    "decisive": "Ablation on all images",
    "product-pathmnist": "PathMNIST with the other target",
    "product-bands": "Sleep-EDF, band powers, with the other target",
}
"""Studies of kernels against targets, with the names that the evidence gives them."""
KERNELS = ("cosine", "identity", "scalar", "diagonal", "full")
TARGETS = ("zero", "product", "masked")


def rows(metrics: pd.DataFrame, model: str, metric: str) -> pd.DataFrame:
    """Return the rows of one model and metric."""
    return metrics[(metrics["model"] == model) & (metrics["metric"] == metric)]


def note_ablations(finding: Finding, evidence: Evidence, metric: str, quantity: str, unit: Unit) -> None:
    """Add, without a say in the verdict, how CLaI-M's kernel differs from CLaI-C's in the ablations, by target."""
    for study, title in ABLATIONS.items():
        if not evidence.has(study):
            continue
        metrics = evidence.metrics(study)
        gaps = {target: paired_difference(metrics, metric, f"full_{target}", f"cosine_{target}") for target in TARGETS}
        statistics = [Statistic(f"target {target}", gap, unit) for target, gap in gaps.items() if gap.n]
        if statistics:
            finding.add(Part(title, f"kernel full minus cosine, {quantity}", statistics))


def cite_ablations(finding: Finding, evidence: Evidence) -> None:
    """Add the metrics of the ablations at hand to the files of a finding."""
    for study in [key for key in ABLATIONS if evidence.has(key)]:
        finding.cite(evidence, study, "metrics.csv")
