"""Which evidence tests a claim under which reading."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.report.claims.hypothesis import Reading
from replication.report.evidence import Evidence
from replication.report.statistics import Interval, over_samples, replicates
from replication.runs.models import CLAI

MULTICLASS = ("pathmnist", "cifar10", "sleepedf")
SEPSIS = ("mimic-iv", "challenge2019", "challenge2019-septic")
KERNELS = {
    "cosine": "cosine",
    "identity": "Gaussian (M = I)",
    "scalar": "Gaussian (scalar M)",
    "diagonal": "Gaussian (diagonal M)",
    "full": "Gaussian (full M)",
}
"""The kernels of studies with the names that readings have."""
TARGETS = ("zero", "product", "masked")
TARGET_CHOICE = {"target": ("zero", "product")}
EPOCHS_CHOICE = {"epochs": ("ours", "120")}
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
OF_TABLE_1 = "of table 1"
OF_STUDIES = "of the studies"
_PRODUCT = {"pathmnist": "product-pathmnist", "cifar10": "product-cifar10", "sleepedf-bands": "product-bands"}
"""By dataset the study that trains its models with the other target."""
_DECISIVE = "decisive"
"""The study of both kernels under both targets on CIFAR-10, with a network of its own."""
_PRINTED_LOSS = {"challenge2019": "printed-loss", "challenge2019-septic": "printed-loss-septic"}
"""By cohort the study that trains its models with the printed loss."""


@dataclass(frozen=True)
class Source:
    """Evidence that tests a claim under one reading.

    Args:
        key: the evidence folder.
        reading: the options that the runs settle.
        models: by CLaI model its name in the folder.
        baselines: the folder of the other models.
    """

    key: str
    reading: Reading
    models: Mapping[str, str]
    baselines: str = ""

    def frame(self, evidence: Evidence, file: str) -> pd.DataFrame:
        """Return the rows of the CLaI models under their own names, and of the baselines."""
        names = {name: model for model, name in self.models.items()}
        frame = evidence.frame(self.key, file)
        frame = frame[frame["model"].isin(names)]
        frame = frame.assign(model=frame["model"].replace(names))
        if not self.baselines:
            return frame
        others = evidence.frame(self.baselines, file)
        return pd.concat([frame, others[~others["model"].isin(CLAI)]])

    def over_samples(self, evidence: Evidence, metric: str, model: str, other: str = "") -> Interval | None:
        """Return the interval over seeds and test samples of a CLaI model, minus `other` if named; None without predictions."""
        comparisons = evidence.frame(self.key, "comparisons.csv")
        return over_samples(comparisons, metric, self.models[model], self.models[other] if other else "")


def of_vote(metrics: pd.DataFrame, rule: str, shares: str) -> pd.DataFrame:
    """Return the metrics of votes by one rule and shares, and of the models that do not vote."""
    return metrics[metrics["rule"].isin([rule, ""]) & metrics["shares"].isin([shares, ""])]


def values(metrics: pd.DataFrame, model: str, metric: str) -> pd.Series:
    """Return a metric of a model by seed or fold."""
    return replicates(metrics[(metrics["model"] == model) & (metrics["metric"] == metric)])


def averaged(table: pd.DataFrame) -> str:
    """Return over how many seeds the rows of a model are averaged, in words."""
    n = table["seed"].nunique()
    return "one seed" if n == 1 else f"mean of {n} seeds"


def gap(metrics: pd.DataFrame, metric: str, model: str, other: str) -> pd.Series:
    """Return `model` minus `other` by the seeds or folds that both have."""
    return (values(metrics, model, metric) - values(metrics, other, metric)).dropna()


def multiclass_sources(evidence: Evidence, datasets: list[str]) -> Iterator[Source]:
    """Yield the evidence on CLaI-M and CLaI-C by target: runs of table 1, and studies.

    Args:
        datasets: the datasets and substitutes at hand.
    """
    for dataset in datasets:
        target = _target(evidence, dataset)
        yield Source(dataset, Reading(target=target, network=OF_TABLE_1), {model: model for model in CLAI})
    for dataset, study in _PRODUCT.items():
        if dataset in datasets and evidence.has(study):
            yield Source(study, Reading(target="product", network=OF_TABLE_1), _cells("product"))
    if "cifar10" in datasets and evidence.has(_DECISIVE):
        for target in TARGET_CHOICE["target"]:
            yield Source(_DECISIVE, Reading(target=target, network=OF_STUDIES), _cells(target))


def training_sources(evidence: Evidence, datasets: list[str]) -> Iterator[Source]:
    """Yield the evidence of `multiclass_sources` with its epochs as a reading, and that on as many epochs as figure 3 has.

    Args:
        datasets: the datasets and substitutes at hand.
    """
    ours, printed = EPOCHS_CHOICE["epochs"]
    for source in multiclass_sources(evidence, datasets):
        yield replace(source, reading=replace(source.reading, epochs=ours))
    if "sleepedf-bands" in datasets and evidence.has("epochs-120"):
        yield Source("epochs-120", Reading(target="zero", network=OF_TABLE_1, epochs=printed), _cells("zero"))


def missing_targets(evidence: Evidence, datasets: list[str]) -> list[str]:
    """Name the datasets without runs of table 1 under a target that other evidence tests.

    A target that no evidence tests is a reading without evidence, which `Finding.untested` names.

    Args:
        datasets: the datasets and substitutes at hand.
    """
    sources = list(multiclass_sources(evidence, datasets))
    of_table_1 = {
        (dataset_of(source.key), source.reading.target) for source in sources if source.reading.network == OF_TABLE_1
    }
    tested = {source.reading.target for source in sources}
    return [
        f"{evidence.title(dataset)}: runs with the target {target} and the network of table 1"
        for dataset in datasets
        for target in TARGET_CHOICE["target"]
        if target in tested and (dataset, target) not in of_table_1
    ]


def dataset_of(key: str) -> str:
    """Return the dataset of a study that `multiclass_sources` yields; a dataset is its own."""
    return {_DECISIVE: "cifar10", **{study: dataset for dataset, study in _PRODUCT.items()}}.get(key, key)


def _target(evidence: Evidence, dataset: str) -> str:
    """Return the target that the runs of a dataset recorded."""
    return str(evidence.runs(dataset, CLAI)[0]["settings"]["target"]["multiclass"])


def _cells(variant: str) -> dict[str, str]:
    return {"clai-m": f"full_{variant}", "clai-c": f"cosine_{variant}"}


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
        if evidence.has(study := _PRINTED_LOSS[dataset]):
            reading = replace(source.reading, loss="printed")
            yield Source(study, reading, _cells("unweighted"), dataset)


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


def votes(source: Source, metrics: pd.DataFrame) -> Iterator[tuple[Reading, Values]]:
    """Yield the readings of a source by shares and rule, with their metrics."""
    for shares in VOTE_CHOICES["shares"]:
        for rule in VOTE_CHOICES["rule"]:
            chosen = of_vote(metrics, rule, shares)
            if chosen["model"].isin(CLAI).any():
                yield replace(source.reading, shares=shares, rule=rule), Values(chosen)


def errors(reading: Reading) -> Iterator[tuple[Reading, str]]:
    """Yield a reading with each calibration error, and the error's metric."""
    for (ece, probability), metric in ECES.items():
        yield replace(reading, ece=ece, probability=probability), metric
