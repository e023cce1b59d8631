"""Readings: where the runs lie that a claim's models have under one reading of the paper, or under an option of ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from replication.metrics.intervals import Interval, interval, replicates, values
from replication.report.evidence import PRINTED_RULE, PRINTED_SHARES, SEPSIS_READINGS, Evidence, run_cell
from replication.report.texts import printed_value
from replication.runs.registry import CLAI, CLAIM_TEXTS

MULTICLASS = ("pathmnist", "cifar10", "sleepedf")
SEPSIS = ("mimic-iv", "challenge2019-septic", "challenge2019", *SEPSIS_READINGS)
"""MIMIC-IV is judged where it is at hand; elsewhere the open cohorts stand in for it."""
TARGETS: Mapping[str, Mapping[str, str]] = CLAIM_TEXTS["targets"]
VOTES = {"equal shares": ("printed", "equal"), "centred": ("centred", "population"),
         "balanced": ("balanced", "population"), "parzen": ("parzen", "population")}  # fmt: skip
"""Rule of decision and class shares of the references by option; the paper has the printed rule and the shares of the data."""
LEAST_AUROC = 0.55
"""Of an arm that learned to rank hours."""


@dataclass(frozen=True)
class Reading:
    """Evidence that tests a claim under one reading.

    Args:
        name: the dataset or study that the number is told of.
        arms: by model, or by what is compared in its place, its runs: the name and the cell, `cifar10/clai-m`.
        target: the paper's reading of the targets, `zero` or `product`, where it matters.
        option: what is ours in it, a key of `options` in claims.yaml; a reading of the paper has none.
        rule, shares: how CLaI votes.
        part: of the claim.
        kernel: by which the alignment of all arms is measured.
        note: what a quantity adds to its name, such as the kernel of all arms.
        needs: what lacks for a comparison; no number is then taken.
    """

    name: str
    arms: Mapping[str, str]
    target: str = ""
    option: str = ""
    rule: str = PRINTED_RULE
    shares: str = PRINTED_SHARES
    part: str = ""
    kernel: str = ""
    note: str = ""
    needs: str = ""

    @property
    def how(self) -> tuple[str, str, str]:
        return self.rule, self.shares, self.kernel


class Learned(NamedTuple):
    """Whether an arm learned: by which measure, its values over runs, and the verdict."""

    by: str
    value: Interval
    enough: bool


@cache
def learned(evidence: Evidence, arm: str) -> Learned | None:
    """Return whether an arm learned; None for one that is not trained, or of which nothing tells it.

    An arm is all runs of a model in a reading. It has learned if the mean over its runs, on validation data at the best epoch,
    is at least twice chance and above the majority class, or for recordings an AUROC of at least `LEAST_AUROC` by the printed
    rule at the data's shares, and if the interval lies above chance. Where no validation value was kept, the test value
    stands in.
    """
    name, cell = arm.split("/")
    if cell == "constant" or not evidence.runs(name, [cell]):
        return None
    metrics, description = evidence.metrics(name), evidence.description(name)
    if description["kind"] == "recordings":
        chance, least, majority, measure, metric = 0.5, LEAST_AUROC, 0.0, "AUROC", "auroc"
    else:
        train, validation = (description["splits"][split]["counts"] for split in ("train", "val"))
        majority = validation[train.index(max(train))] / sum(validation)
        chance = 1 / len(train)
        least, measure, metric = 2 * chance, "accuracy", "accuracy"
    history = evidence.frame(name, "history.csv")
    column = f"validation_{metric}"
    curves = history[history["cell"] == cell].dropna(subset=[column])
    best = curves.groupby(["seed", "fold"], dropna=False)[column].max().reset_index(name="value")
    by, found = f"validation {measure}", replicates(best)
    if found.empty:
        by, found = f"test {measure}", values(metrics, cell, metric)
    value = interval(found)
    enough = value.mean >= least and value.mean > majority and not value.low <= chance
    return Learned(by, value, enough) if value.n else None


def arms_of(name: str, cells: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """Return the arms of a dataset's models, or of a study's cells by model; `name/cell` of another stays as it is."""
    named = cells.items() if isinstance(cells, Mapping) else ((cell, cell) for cell in cells)
    return {model: cell if "/" in cell else f"{name}/{cell}" for model, cell in named}


def present(evidence: Evidence, datasets: Sequence[str]) -> list[str]:
    """Return those datasets and substitutes that have runs of a CLaI model, without substitutes of data that have them."""
    known = [dataset for dataset in datasets if dataset in evidence.expected]
    stand_ins = dict.fromkeys(key for dataset in known for key in evidence.stand_ins(dataset))
    found = [key for key in stand_ins if evidence.runs(key, CLAI)]
    return [key for key in found if evidence.expected[key].get("substitute_for") not in found]


def absent(evidence: Evidence, datasets: Sequence[str]) -> list[str]:
    """Say what the datasets without runs of a CLaI model need; substitutes need nothing where others are at hand."""
    of_raw = {entry.get("raw_of") for key, entry in evidence.expected.items() if evidence.runs(key, CLAI)}
    texts, found = [], {*present(evidence, datasets), *of_raw}
    for dataset in [key for key in datasets if key in evidence.expected and key not in found]:
        if found and "substitute_for" in evidence.expected[dataset]:
            continue
        lacking = [key for key in evidence.stand_ins(dataset) if evidence.has(key) and key not in found]
        texts += [f"{evidence.title(key)}: runs of a CLaI model" for key in lacking]
        if not evidence.has(dataset):
            title, needs = (evidence.expected[dataset][key] for key in ("title", "needs"))
            texts.append(needs if needs.startswith(title) else f"{title}: {needs}")
    return texts


def recorded(evidence: Evidence, arms: Iterable[str], setting: str) -> set[object]:
    """Return the values of a setting of training that the runs of some arms recorded."""
    pairs = [arm.split("/") for arm in arms]
    return {run["settings"]["training"][setting] for name, cell in pairs for run in evidence.runs(name, [cell])}


def declared(evidence: Evidence, name: str) -> list[Reading]:
    """Return the readings of a set of claims.yaml that have evidence."""
    option = name if name in CLAIM_TEXTS["options"] else ""
    return [
        Reading(**row | {"arms": arms_of(row["name"], row["arms"]), "option": option})
        for row in CLAIM_TEXTS["readings"][name]
        if evidence.has(row["name"])
    ]


def multiclass(evidence: Evidence) -> list[Reading]:
    """Return CLaI-M and CLaI-C by target: the runs of table 1, and studies of the same data."""
    readings = []
    for dataset in present(evidence, MULTICLASS):
        target = str(evidence.runs(dataset, CLAI)[0]["settings"]["target"]["multiclass"])
        readings.append(Reading(dataset, arms_of(dataset, CLAI), target))
    return readings + declared(evidence, "product")


def training(evidence: Evidence) -> list[Reading]:
    """Return `multiclass` and the runs of 120 epochs; of fewer than section IV-C names, the epochs are an option of ours."""
    epochs = printed_value("text", "figure3", "epoch named")
    readings = multiclass(evidence) + declared(evidence, "120 epochs")
    lengths = {name: evidence.frame(name, "history.csv")["epoch"].max() for name in {one.name for one in readings}}
    return [replace(one, option="epochs" if lengths[one.name] < epochs else "") for one in readings]


def equal_batches(evidence: Evidence) -> list[Reading]:
    """Return `training`; runs whose kernels have different batch sizes need others, since their epochs differ in steps."""
    lack = "runs of both kernels with one batch size, so that an epoch has as many steps"
    return [
        replace(one, needs=lack if len(recorded(evidence, one.arms.values(), "batch_size")) > 1 else "")
        for one in training(evidence)
    ]


def sepsis_runs(evidence: Evidence) -> list[Reading]:
    """Return the paper's reading, of septic patients and the printed loss over all hours, and the runs that are options of ours.

    First a recording is a batch. Where a kernel does not learn so, the next reading in which both do is the paper's. Baselines on
    hours are those of the same folds with the balanced loss.
    """
    cohorts = {name: arms_of(name, set(map(run_cell, evidence.runs(name)))) for name in present(evidence, SEPSIS)}
    own = {name: cohorts.pop(name) for name in SEPSIS_READINGS if name in cohorts}
    known = {name: [learned(evidence, arms[model]) for model in CLAI if model in arms] for name, arms in own.items()}
    both = [name for name, found in known.items() if len(found) == 2 and all(one and one.enough for one in found)]
    paper = [*both, *own][:1]
    readings = []
    for name, arms in own.items():
        cohort, option = SEPSIS_READINGS[name]
        readings.append(Reading(name, cohorts.get(cohort, {}) | arms, option="" if name in paper else option))
    if "mimic-iv" not in cohorts:
        readings += declared(evidence, "capped hours") + declared(evidence, "whole cohort")
    for name, arms in cohorts.items():
        trained = [arms[model] for model in CLAI if model in arms]
        balanced = recorded(evidence, trained, "pair_weighting") != {"none"}
        readings.append(Reading(name, arms, option="balanced loss" if balanced else "whole cohort"))
    return readings


def sepsis(evidence: Evidence) -> list[Reading]:
    """Return `sepsis_runs`, and the paper's reading with votes that are options of ours."""
    paper, votes = septic(evidence), VOTES.items()
    ours = [replace(one, option=o, rule=rule, shares=shares) for one in paper for o, (rule, shares) in votes]
    return sepsis_runs(evidence) + ours


def septic(evidence: Evidence) -> list[Reading]:
    """Return the paper's reading of `sepsis` alone."""
    return [one for one in sepsis_runs(evidence) if not one.option]


def runs_of(datasets: Sequence[str], models: Sequence[str]) -> Callable[[Evidence], list[Reading]]:
    """Return the function to the runs of some models on those datasets or substitutes that are at hand."""
    return lambda evidence: [Reading(name, arms_of(name, models)) for name in present(evidence, datasets)]


table_1 = runs_of(MULTICLASS, [*CLAI, "cross-entropy"])
_FOUND: dict[str, Callable[[Evidence], list[Reading]]] = {
    "multiclass": multiclass, "training": training, "equal batches": equal_batches, "sepsis": sepsis, "septic": septic,
    "signals": sepsis_runs, "voting": runs_of(MULTICLASS, ["clai-m"]),
    "voting on two classes": runs_of(SEPSIS, ["clai-m"]), "table 1": table_1,
}  # fmt: skip
READINGS = {*_FOUND, *CLAIM_TEXTS["readings"]}
"""Names of all sets of readings."""


def readings_of(evidence: Evidence, name: str) -> list[Reading]:
    """Return the readings of a set."""
    return _FOUND[name](evidence) if name in _FOUND else declared(evidence, name)
