"""Which evidence tests a claim under which reading."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from replication.report.claims.finding import PAIR, Finding, Place
from replication.report.evidence import Evidence, printed_reading
from replication.report.statistics import Interval, gap, over_samples

MULTICLASS = ("pathmnist", "cifar10", "sleepedf")
TARGETS = ("zero", "product")
KERNELS = {"cosine": "cosine", "identity": "Gaussian (M = I)", "full": "Gaussian (full M)"}
"""The kernels of studies with their names."""
M_MINUS_C = "CLaI-M minus CLaI-C"
PRODUCT_STUDIES = ("product-pathmnist", "product-cifar10", "product-sleepedf-20", "product-bands")
"""Studies of both kernels with the other target than the datasets' own runs."""


@dataclass(frozen=True)
class Source:
    """Evidence that tests a claim under one reading.

    Args:
        key: the evidence folder.
        target: `zero` or `product`.
        option: what is ours in it, a key of `options` in claims.yaml.
        models: by CLaI model its name in the folder.
        baselines: the folder of the other models.
    """

    key: str
    target: str
    models: Mapping[str, str]
    option: str = ""
    baselines: str = ""

    @property
    def place(self) -> Place:
        return Place(self.target, self.option)

    def frame(self, finding: Finding, file: str) -> pd.DataFrame:
        """Return the rows of the CLaI models under their own names, and of the baselines."""
        names = {name: model for model, name in self.models.items()}
        frame = finding.frame(self.key, file)
        frame = frame[frame["cell"].isin(names)]
        frame = frame.assign(cell=frame["cell"].replace(names))
        if not self.baselines:
            return frame
        others = finding.frame(self.baselines, file)
        return pd.concat([frame, others[~others["cell"].isin(PAIR)]])

    def over_samples(self, finding: Finding, metric: str, model: str, other: str = "") -> Interval | None:
        """Return the interval over seeds and test samples of a CLaI model, minus `other` if named; None without predictions."""
        comparisons = finding.frame(self.key, "comparisons.csv")
        return over_samples(comparisons, metric, self.models[model], self.models[other] if other else "")

    def gap(self, finding: Finding, metric: str) -> pd.Series | Interval:
        """Return CLaI-M minus CLaI-C in a metric by the printed rule: over seeds and test samples, or by seed."""
        around = self.over_samples(finding, metric, "clai-m", "clai-c")
        return around or gap(of_vote(self.frame(finding, "metrics.csv")), metric, "clai-m", "clai-c")


def of_vote(metrics: pd.DataFrame, rule: str = "printed", shares: str = "population") -> pd.DataFrame:
    """Return the metrics of votes by one rule and shares, and of the models that do not vote."""
    return metrics[printed_reading(metrics, rule, shares)]


def recorded(evidence: Evidence, key: str, models: Iterable[str], name: str) -> set[object]:
    """Return the values of a setting of training that the runs of some models recorded."""
    return {record["settings"]["training"][name] for record in evidence.runs(key, list(models))}


def multiclass_sources(finding: Finding, present: Sequence[str]) -> Iterator[Source]:
    """Yield the evidence on CLaI-M and CLaI-C by target: runs of table 1, and studies of the same or of a part of their data."""
    evidence = finding.evidence
    for dataset in present:
        target = str(evidence.runs(dataset, PAIR)[0]["settings"]["target"]["multiclass"])
        yield Source(dataset, target, {model: model for model in PAIR})
    for study in PRODUCT_STUDIES:
        if evidence.has(study) and evidence.dataset_of(study) in present:
            yield Source(study, "product", {"clai-m": "full_product", "clai-c": "cosine_product"})
