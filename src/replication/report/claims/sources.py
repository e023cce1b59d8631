"""Which evidence tests a claim under which reading."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from replication.report.claims.hypothesis import Reading
from replication.report.evidence import Evidence
from replication.report.statistics import Interval, over_samples, replicates
from replication.runs.models import CLAI

MULTICLASS = ("pathmnist", "cifar10", "sleepedf")
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
M_MINUS_C = "CLaI-M minus CLaI-C"
ON_EVERY_DATASET = "on every dataset at hand"
OF_TABLE_1 = "of table 1"
OF_STUDIES = "of the studies"
_PRODUCT = {"pathmnist": "product-pathmnist", "cifar10": "product-cifar10", "sleepedf-bands": "product-bands"}
"""By dataset the study that trains its models with the other target."""
_DECISIVE = "decisive"
"""The study of both kernels under both targets on CIFAR-10, with a network of its own."""


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
            yield Source(study, Reading(target="product", network=OF_TABLE_1), cells("product"))
    if "cifar10" in datasets and evidence.has(_DECISIVE):
        for target in TARGET_CHOICE["target"]:
            yield Source(_DECISIVE, Reading(target=target, network=OF_STUDIES), cells(target))


def missing_targets(evidence: Evidence, datasets: list[str]) -> list[str]:
    """Name the datasets without runs of table 1 under a target that other evidence tests.

    A target that no evidence tests is a reading without evidence, which `Finding.untested` names.

    Args:
        datasets: the datasets and substitutes at hand.
    """
    sources = list(multiclass_sources(evidence, datasets))
    of_table_1 = {
        (evidence.dataset_of(source.key), source.reading.target)
        for source in sources
        if source.reading.network == OF_TABLE_1
    }
    tested = {source.reading.target for source in sources}
    return [
        f"{evidence.title(dataset)}: runs with the target {target} and the network of table 1"
        for dataset in datasets
        for target in TARGET_CHOICE["target"]
        if target in tested and (dataset, target) not in of_table_1
    ]


def _target(evidence: Evidence, dataset: str) -> str:
    """Return the target that the runs of a dataset recorded."""
    return str(evidence.runs(dataset, CLAI)[0]["settings"]["target"]["multiclass"])


def cells(variant: str) -> dict[str, str]:
    """Return by CLaI model its cell in a study with this variant."""
    return {"clai-m": f"full_{variant}", "clai-c": f"cosine_{variant}"}
