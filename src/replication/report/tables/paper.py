"""Tables 1 to 3 of the paper, and the README's extract of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.metrics.intervals import interval, values
from replication.report.evidence import SEPSIS_READINGS, Evidence, identified, in_units, printed_reading, summary
from replication.report.labels import CLASS_COLOURS, MAJORITY, Metric, chosen, model_title
from replication.report.tables.layout import Block, Group, Layout, pivot, reasons
from replication.report.texts import PRINTED, printed, printed_value, table
from replication.runs.registry import CLAI, MIXTURES, REPOSITORY_DATASETS, TABLES

KEYS = ["name", "cell", "metric"]
RESULT_COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "low", "high", "printed", "data"]

TABLE1_METRICS = [
    *chosen("accuracy precision recall"),
    Metric("f1", "F1-score", percent=True, digits=2, better="higher"),
    *chosen("roc_auc ece"),
]
TABLE1_MODELS = [*CLAI, "cross-entropy"]
"""The models that have a row for every dataset, run or not."""
PAIRS = [("clai-m", "clai-c"), ("clai-m", "cross-entropy")]
"""Models whose difference, the first minus the second, table S2 shows."""

TABLE3_METRICS = chosen(
    "auroc auprc f1 f1_validation ece ece_calibrated log_loss_calibrated", f1_validation="F1, validation"
)
SEPSIS_PAIRS = [("clai-m", "clai-c"), *MIXTURES.items()]


def results(evidence: Evidence, metrics: Sequence[Metric], always: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """Return the `summary` of each model and metric under the printed reading, in the units of tables.

    always: by name the models that have rows, with n = 0 where they were not run.
    """
    measured = evidence.table("metrics.csv")
    found = summary(in_units(measured[printed_reading(measured)], metrics), KEYS)
    found["low"] = found["low"].clip(lower=0)  # None of these metrics can be negative.
    asked = [(name, model, metric.key) for name in always for model, metric in product(always[name], metrics)]
    keys = pd.concat([found[KEYS], pd.DataFrame(asked, columns=KEYS)]).drop_duplicates()
    return keys.merge(found, "left", KEYS).fillna({"n": 0}).astype({"n": int})


def with_data(evidence: Evidence, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of outputs with the title of the data that were used, or why there are none, as `data`."""
    names = {name: evidence.title(name) if evidence.has(name) else evidence.not_run(name) for name in evidence.expected}
    return identified(evidence, rows.assign(data=rows["name"].map(names)))


def table1_frame(evidence: Evidence) -> pd.DataFrame:
    """Return results by dataset, model and metric. The paper's row names no model: its values stand beside both CLaI models.

    Limits are those of 95 % intervals over seeds and test samples, or over seeds.
    """
    paper = printed("table1").rename(columns={"row": "name", "value": "printed"})
    rows = results(evidence, TABLE1_METRICS, dict.fromkeys(evidence.expected, TABLE1_MODELS))
    rows = rows[rows["cell"].isin(TABLE1_MODELS)].set_index(KEYS)
    compared = in_units(evidence.table("comparisons.csv"), TABLE1_METRICS, ["value", "low", "high"])
    compared = compared.dropna(subset="low").rename(columns={"value": "mean", "seeds": "n"})
    alone = compared[compared["other"].isna()]
    # Of several classes, the recall weighted by their support is the accuracy.
    several = [name for name in evidence.at_hand() if len(evidence.description(name)["classes"]) > 2]
    accuracies = alone[(alone["metric"] == "accuracy") & alone["name"].isin(several)]
    alone = pd.concat([alone, accuracies.assign(metric="recall")])
    rows.update(alone.set_index(KEYS)[["low", "high"]])
    rows = rows.reset_index().merge(paper[["name", "metric", "printed"]], "left")
    rows["printed"] = rows["printed"].where(rows["cell"].isin(CLAI))
    return with_data(evidence, rows).reindex(columns=RESULT_COLUMNS)


def majority(evidence: Evidence) -> pd.DataFrame:
    """Return accuracy and recall of always naming the class most frequent in training; they differ for two classes alone."""
    rows = []
    for name in evidence.at_hand():
        splits = evidence.description(name)["splits"]
        train, test = (splits[split]["counts"] for split in ("train", "test"))
        answer = train.index(max(train))
        accuracy = 100 * test[answer] / sum(test)
        recall = accuracy if len(test) > 2 else 100 * answer  # of the positive class
        rows += [(name, MAJORITY, "accuracy", accuracy), (name, MAJORITY, "recall", recall)]
    return with_data(evidence, pd.DataFrame(rows, columns=[*KEYS, "mean"]).assign(n=1, rule="", shares=""))


def with_printed(frame: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """Return the measured rows, and above them rows of the paper's values: one a dataset where they name no model."""
    paper = frame.dropna(subset="printed")
    if "printed_sd" in frame:
        titles = paper["model"].map(model_title).str.removesuffix(" (on CLaI-C)")  # The paper names no kernel.
        paper = paper.assign(model="Paper: " + titles, sd=paper["printed_sd"])
    else:
        paper = paper[paper["model"] == CLAI[0]].assign(model="Paper", sd=np.nan)
    # Where our data are others than the paper's, its row names them.
    named = {name: (evidence.title(name), entry["title"]) for name, entry in evidence.expected.items()}
    others = {name: f", on {theirs}" for name, (ours, theirs) in named.items() if ours != theirs}
    model = paper["model"] + paper["dataset"].map(others).fillna("")
    return pd.concat([paper.assign(model=model, mean=paper["printed"], n=np.nan), frame.dropna(subset="mean")])


def results_layouts(frame: pd.DataFrame, evidence: Evidence) -> list[Layout]:
    """Return table 1 or 3: the paper's values above ours by dataset; of table 3 the differences below."""
    shown = with_printed(frame, evidence)
    missing = reasons(evidence, "metrics.csv")
    if "other" not in shown:
        return [pivot(shown, Block(TABLE1_METRICS, best=True), evidence, missing)]
    rows, gaps = shown[shown["other"].isna()], shown[shown["other"].notna()]
    return [
        pivot(rows, Block(TABLE3_METRICS, best=True), evidence, missing),
        pivot(gaps, Block(TABLE3_METRICS, {"model": "Difference [95 % interval]"}, limits=True), evidence),
    ]


def table2_frame(evidence: Evidence) -> pd.DataFrame:
    """Return the paper's class indices, labels and colours: columns dataset, index, label, colour."""
    labels = {key: entry.get("class_labels", []) for key, entry in REPOSITORY_DATASETS.items()}
    rows = [
        (key, index, name, CLASS_COLOURS[index % len(CLASS_COLOURS)])
        for key in labels
        for index, name in enumerate(labels[key])
    ]
    return pd.DataFrame(rows, columns=["dataset", "index", "label", "colour"])


def table2_layouts(frame: pd.DataFrame, evidence: Evidence) -> list[Layout]:
    """Return table 2: a row for each index with its colour, a column for each dataset."""
    labels = frame.pivot_table("label", ["index", "colour"], "dataset", aggfunc="first", fill_value="").reset_index()
    datasets = list(frame["dataset"].unique())
    rows = [[str(own["index"]), own["colour"], *own[datasets]] for _, own in labels.iterrows()]
    titles = [str(REPOSITORY_DATASETS[key]["title"]) for key in datasets]
    return [Layout(["Index", "Colour", *titles], [Group("", rows)], len(datasets) + 2)]


def table3_frame(evidence: Evidence) -> pd.DataFrame:
    """Return results by cohort, model and metric; `printed_sd` is the spread that the paper prints.

    Rows with `other` have the difference of two models, with its 95 % interval over folds, in the readings that judge claims.
    """
    always = {name: [*CLAI, MIXTURES["clai-c"]] for name in evidence.expected}
    gaps = [row for name in filter(evidence.has, SEPSIS_READINGS) for row in _sepsis_gaps(evidence, name)]
    rows = with_data(evidence, pd.concat([results(evidence, TABLE3_METRICS, always), pd.DataFrame(gaps)]))
    # The printed values stand in rows of the paper's cohort alone: no other one compares with them.
    paper = printed("table3").rename(columns={"row": "model", "value": "printed", "spread": "printed_sd"})
    rows = rows.merge(paper[["model", "metric", "printed", "printed_sd"]], "left")
    columns = ["printed", "printed_sd"]
    cohort = next((name for name in evidence.expected if not evidence.is_substitute(name)), None)
    rows[columns] = rows[columns].mask(rows["dataset"] != cohort)
    return rows.reindex(columns=["dataset", "study", "cell", "model", "other", *RESULT_COLUMNS[2:], "printed_sd"])


def _sepsis_gaps(evidence: Evidence, name: str) -> Iterator[dict[str, Any]]:
    measured = evidence.metrics(name)
    for (model, other), metric in product(SEPSIS_PAIRS, TABLE3_METRICS):
        own, theirs = (values(measured, one, metric.key) for one in (model, other))
        around = asdict(interval((own - theirs).dropna()))
        yield {"name": name, "cell": model, "other": other, "metric": metric.key, **around}


def headline(evidence: Evidence) -> str:
    """Return accuracies as a Markdown table for the README: the paper's, ours, and cross-entropy's on the same encoder."""
    names = [name for name in TABLES["table1"]["names"] if name in PRINTED["row"].array and evidence.has(name)]
    rows = [["The paper", *(f"{printed_value('table1', name, 'accuracy'):.1f}" for name in names)]]
    for model in ("clai-m", "cross-entropy"):
        means = [100 * values(evidence.metrics(name), model, "accuracy").mean() for name in names]
        rows.append([model_title(model), *(f"{mean:.1f}" for mean in means)])
    return table(["Accuracy, %", *(evidence.title(name) for name in names)], rows)
