"""Supplementary tables of results: metrics beyond table 1, decision rules, intensive care, comparisons and studies."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import PRINTED_LOSS, PRINTED_RULE, PRINTED_SHARES, Evidence, run_cell
from replication.report.labels import RULES, SHARES, Metric, chosen, in_order, model_title
from replication.report.statistics import holm, minus, replicates
from replication.report.tables import layout
from replication.report.tables.layout import Block, Sources
from replication.report.tables.paper import PAIRS, TABLE1_MODELS, with_printed
from replication.runs.registry import CLAI

FURTHER_METRICS = chosen("macro_f1 kappa log_loss brier_scaled aurc")
SHIFT_METRICS = chosen("validation_accuracy accuracy shift roc_auc")

RULE_METRICS = [Metric("accuracy", "Accuracy"), Metric("roc_auc", "ROC-AUC"), Metric("ece", "ECE")]
SEPSIS_RULE_METRICS = chosen(
    "auroc auprc f1 ece ece_calibrated ece_positive_rate ece_positive_rate_calibrated",
    ece_calibrated="calibrated",
    ece_positive_rate_calibrated="calibrated",
)
RULE_COLUMNS = [
    "dataset", "cohort", "loss", "shares", "rule", "model", "metric", "mean", "sd", "n", "low", "high", "data",
]  # fmt: skip

DETECTION_METRICS = chosen("auroc auprc utility f1_validation")
CALIBRATION_METRICS = chosen(
    "ece ece_calibrated ece_positive_rate ece_positive_rate_calibrated log_loss log_loss_calibrated"
)
BRIER_METRICS = chosen("brier brier_reliability brier_resolution brier_calibrated aurc prevalence")

COMPARED_METRICS = chosen("accuracy macro_f1 roc_auc ece ece_scaled")
COMPARED_COLUMNS = [
    "dataset", "model", "other", "metric", "value", "low", "high", "p", "p_holm", "samples", "seeds", "data",
]  # fmt: skip
LEAST_P = 0.001

ABLATIONS = (
    "ablation", "product-pathmnist", "product-cifar10", "product-sleepedf-20", "product-bands", "same-settings-pathmnist",
    "same-settings-bands",
)  # fmt: skip
METHODS = ("wide", "sprint", "turns-images", "turns-images-trials")
OF_RECORDINGS = ("recording-batches-trials",)
END_METRICS = chosen("alignment centred_alignment above_floor")
METHOD_METRICS = chosen(
    "best_validation validation_accuracy accuracy macro_f1 roc_auc ece operations training_minutes cpu_minutes"
)
STUDY_METRICS = [*METHOD_METRICS, *chosen("ece_scaled auroc auroc_equal auprc"), *END_METRICS]
OF_TRAINING = [
    "alignment", "centred_alignment", "above_floor", "validation_accuracy", "best_validation", "operations", "training_minutes",
]  # fmt: skip
"""Metrics of the last epoch, and of the best one, from the history of training."""
FACTORS = ["kernel", "target", "method", "rate", "length"]
STUDY_COLUMNS = ["dataset", "model", *FACTORS, "rule", "metric", "mean", "sd", "n", "low", "high", "data"]


def further_frame(sources: Sources) -> pd.DataFrame:
    """Return validation and test results by dataset and model, then what others report, whose `data` is the source."""
    evidence = sources.evidence
    rows: list[dict[Any, Any]] = []
    for dataset in evidence.expected:
        models = layout.models_of(evidence, dataset, TABLE1_MODELS)
        measured = [*chosen("accuracy roc_auc"), *FURTHER_METRICS]
        rows += with_printed(layout.result_rows(evidence, dataset, models, measured), sources)
        rows += _validation_rows(evidence, dataset, models)
        reported = sources.reported_values[sources.reported_values["dataset"] == dataset]
        rows += reported.rename(columns={"value": "mean", "source": "data"}).assign(n=0).to_dict("records")
    return pd.DataFrame(rows, columns=layout.RESULT_COLUMNS)


def _validation_rows(evidence: Evidence, dataset: str, models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the validation accuracy after the last epoch, and what it exceeds the test accuracy by, over seeds."""
    history, metrics = evidence.frame(dataset, "history.csv"), evidence.metrics(dataset)
    rows: list[dict[str, Any]] = []
    for model in models:
        own = history[history["cell"] == model].sort_values("epoch")
        validation = replicates(own.groupby("seed", as_index=False).tail(1), "validation_accuracy")
        test = replicates(metrics[(metrics["cell"] == model) & (metrics["metric"] == "accuracy")])
        for metric, values in (("validation_accuracy", validation), ("shift", (validation - test).dropna())):
            of_model = {"dataset": dataset, "model": model, "metric": metric, "data": evidence.data(dataset)}
            rows.append(of_model | layout.summary(100 * values))
    return rows


further_tex = layout.results(Block([*SHIFT_METRICS, *FURTHER_METRICS]), label="tab:further")


def rules_frame(sources: Sources) -> pd.DataFrame:
    """Return metrics of both kernels by decision rule, as fractions, and in intensive care by loss and class shares as well.

    `dataset` is the dataset or study whose runs were measured, low and high are limits of 95 % intervals. In intensive care the
    paired difference of the models, CLaI-M minus CLaI-C, stands below the two, without a spread. A dataset that was not run has
    one row, without model, rule and metric.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for cohort in [key for key in evidence.expected if "cells" not in evidence.expected[key]]:
        shared = {"cohort": cohort, "data": evidence.data(cohort)}
        measured = evidence.frame(cohort, "metrics.csv").rename(columns={"cell": "model"})
        if not evidence.has(cohort):
            rows.append({**shared, "dataset": cohort, "n": 0})
        elif (measured["metric"] == "accuracy").any():
            by = {"shares": [PRINTED_SHARES], "model": CLAI, "rule": RULES}
            rows += layout.rows_by(measured, RULE_METRICS, by, {**shared, "dataset": cohort, "loss": "printed"})
        else:
            rows += _sepsis_rows(evidence, cohort, CLAI, {"cohort": cohort, "loss": "balanced"})
            for study in filter(evidence.has, PRINTED_LOSS.get(cohort, ())):
                cells = evidence.cells(study)
                models = [cells[model] for model in CLAI]
                rows += _sepsis_rows(evidence, study, models, {"cohort": cohort, "loss": "printed"})
    return pd.DataFrame(rows, columns=RULE_COLUMNS)


def _sepsis_rows(
    evidence: Evidence, dataset: str, models: Sequence[str], named: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of one loss: for each shares and rule two models and their paired difference, without a spread."""
    measured = evidence.frame(dataset, "metrics.csv").rename(columns={"cell": "model"})
    own, other = (measured[measured["model"] == model] for model in models)
    difference = layout.DIFFERENCE.join(models)
    gaps = minus(own, other, ["seed", "fold", "shares", "rule", "metric"]).assign(model=difference)
    rows: list[dict[str, Any]] = []
    # With equal shares the centred rule is the printed one, and the balanced one a multiple of it.
    for shares, rules in zip(SHARES, (RULES, ("printed", "parzen")), strict=True):
        by = {"shares": [shares], "rule": rules, "model": [*models, difference]}
        shared = {**named, "dataset": dataset, "data": evidence.data(dataset)}
        rows += layout.rows_by(pd.concat([measured, gaps]), SEPSIS_RULE_METRICS, by, shared)
    return [entry | {"sd": np.nan} if entry["model"] == difference else entry for entry in rows]


rules_tex = layout.results(
    Block(RULE_METRICS, {"model": "Model", "rule": "Rule"}),
    Block(SEPSIS_RULE_METRICS, {"shares": "Shares", "rule": "Rule", "model": "Model"}),
    label="tab:rules",
)


def sepsis_frame(sources: Sources) -> pd.DataFrame:
    """Return all metrics of all models by cohort, with limits low and high of 95 % intervals by patient where there are any."""
    evidence = sources.evidence
    metrics = [*DETECTION_METRICS, *CALIBRATION_METRICS, *BRIER_METRICS]
    rows, limits = [], [pd.DataFrame(columns=["dataset", "model", "metric", "low", "high"])]
    for dataset in evidence.at_hand():
        rows += layout.result_rows(evidence, dataset, layout.models_of(evidence, dataset), metrics)
        drawn = evidence.frame(dataset, "intervals.csv").assign(dataset=dataset)
        limits.append(drawn.loc[drawn["other"].isna(), list(limits[0])])
    frame = pd.DataFrame(rows, columns=[column for column in layout.RESULT_COLUMNS if column != "printed"])
    return frame.merge(pd.concat(limits), how="left", on=["dataset", "model", "metric"])


sepsis_tex = layout.results(
    Block(DETECTION_METRICS, limits=True), Block(CALIBRATION_METRICS), Block(BRIER_METRICS), label="tab:sepsis"
)


def studies_frame(sources: Sources) -> pd.DataFrame:
    """Return the metrics of each study's cells by decision rule, with limits low and high of 95 % t-intervals over seeds.

    `dataset` is the study and `model` the cell, whose variants stand in `FACTORS`. The rule is empty for how training ended, for
    minutes, and for models without a rule. Accuracies and areas of many classes are in per cent. training_minutes are wall time
    of the steps alone; cpu_minutes are processor time of the whole run, evaluation included.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        variants, measured = evidence.expected[study]["cells"], _measured(evidence, study)
        for cell in in_order(measured["model"], list(variants)):
            own = measured[measured["model"] == cell]
            named = {"dataset": study, **variants.get(cell, {}), "data": evidence.data(study)}
            rows += layout.rows_by(own, STUDY_METRICS, {"model": [cell], "rule": own["rule"].unique()}, named)
    frame = pd.DataFrame(rows, columns=STUDY_COLUMNS)
    return frame[frame["n"] > 0]


def _measured(evidence: Evidence, study: str) -> pd.DataFrame:
    """Return the metrics of a study's cells, how their training ended and how long the processor took, by seed.

    Columns: model, seed, fold, rule (empty for the two latter), metric, value.
    """
    history = evidence.frame(study, "history.csv").sort_values("epoch")
    by_run = history.groupby(["cell", "seed"])
    last = by_run.last().reindex(
        columns=["loss", "floor", "seconds", "operations", *OF_TRAINING[:2], "validation_accuracy"]
    )
    last = last.assign(
        above_floor=last["loss"] - last["floor"], best_validation=by_run["validation_accuracy"].max(),
        operations=last["operations"] / 1e12, training_minutes=last["seconds"] / 60,
    ).reset_index()  # fmt: skip
    ends = last.melt(["cell", "seed"], OF_TRAINING, "metric")
    minutes = [(run_cell(run), run["seed"], run["cpu_seconds"] / 60) for run in evidence.runs(study)]
    times = pd.DataFrame(minutes, columns=["cell", "seed", "value"]).assign(metric="cpu_minutes")
    metrics = evidence.frame(study, "metrics.csv")
    equal = metrics[(metrics["shares"] == "equal") & (metrics["metric"] == "auroc")].assign(metric="auroc_equal")
    metrics = metrics[metrics["shares"].isin([PRINTED_SHARES, ""])]
    measured = pd.concat([metrics, equal, pd.concat([ends, times]).assign(rule="", fold=np.nan)])
    return measured.rename(columns={"cell": "model"})


def study_title(evidence: Evidence, study: str) -> str:
    """Return the name of a study with the widths of its encoders, its epochs and its threads."""
    if not evidence.has(study):
        return evidence.title(study)
    runs = evidence.runs(study)
    last = evidence.frame(study, "history.csv").groupby("cell")["epoch"].max().astype(int)
    widths, epochs, threads = (
        " or ".join(map(str, sorted(set(values))))
        for values in ((run["settings"]["encoder"]["width"] for run in runs), last, (run["threads"] for run in runs))
    )
    return f"{evidence.title(study)}: width {widths}, {epochs} epochs, {threads} thread(s)"


def studies_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return the table of studies: the printed rule, and accuracy under each other one as a column of its own."""
    other = ~frame["rule"].isin(["", PRINTED_RULE])
    shown = frame.assign(metric=frame["metric"].mask(other, frame["metric"] + " " + frame["rule"]))
    by_rule = [Metric("accuracy" if rule == PRINTED_RULE else f"accuracy {rule}", rule, True) for rule in RULES]
    blocks = [
        Block([*by_rule, *chosen("macro_f1 roc_auc")], {"model": "Accuracy by decision rule"}, ABLATIONS),
        Block([*chosen("ece ece_scaled"), *END_METRICS], {"model": "Kernel and target"}, ABLATIONS),
        Block(METHOD_METRICS, {"model": "Method"}, METHODS),
        Block(chosen("auroc auroc_equal auprc ece"), {"model": "Kernel and rate"}, OF_RECORDINGS),
    ]
    return layout.results_tex(shown, sources, text, blocks, "tab:studies", title=study_title)


def comparisons_frame(sources: Sources) -> pd.DataFrame:
    """Return the differences of `PAIRS` by dataset, model minus other, in the table's units; `p_holm` is p, adjusted.

    A dataset without comparisons has one row, without models.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        compared: list[dict[Any, Any]] = evidence.frame(dataset, "comparisons.csv").to_dict("records")
        if not compared:
            rows.append({"dataset": dataset, "data": layout.lacking(evidence, dataset, "comparisons.csv")})
        found = {(entry["model"], entry["other"], entry["metric"]): entry for entry in compared}
        named = {"dataset": dataset, "data": evidence.data(dataset)}
        for (model, other), metric in product(PAIRS, COMPARED_METRICS):
            if entry := found.get((model, other, metric.key)):
                scaled = {name: entry[name] * metric.scale for name in ("value", "low", "high")}
                rows.append(entry | scaled | named)
    frame = pd.DataFrame(rows, columns=COMPARED_COLUMNS)
    frame["p_holm"] = holm(frame["p"].to_numpy(dtype=np.float64))
    return frame.astype({"samples": "Int64", "seeds": "Int64"})


def comparisons_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return the table of comparisons, whose last line names their number."""
    evidence = sources.evidence
    heads = ["Metric", "Difference [95 \\% interval]", "$p$", "$p$, adjusted", "Samples", "Seeds"]
    groups = []
    for dataset in evidence.expected:
        of_dataset = frame[(frame["dataset"] == dataset) & frame["model"].notna()]
        if of_dataset.empty:
            reason = layout.lacking(evidence, dataset, "comparisons.csv")
            groups.append(layout.group(evidence.title(dataset), len(heads), reason))
        for (model, other), part in of_dataset.groupby(["model", "other"], sort=False):
            title = f"{evidence.title(dataset)}: {model_title(str(model))} minus {model_title(str(other))}"
            groups.append(layout.group(title, len(heads), [_comparison(entry) for entry in part.to_dict("records")]))
    count = int(frame["p"].notna().sum())
    note = layout.spanning(f"$p$ is adjusted for the {count} comparisons of this table.", len(heads))
    groups.append(f"\\midrule\n{note}")
    return layout.floats(layout.row(*heads), groups, "lccccc", text, "tab:comparisons", evidence.miniature)


def _comparison(entry: dict[Any, Any]) -> str:
    metric = next(metric for metric in COMPARED_METRICS if metric.key == entry["metric"])
    value, low, high = (f"{entry[name]:+.{metric.digits}f}" for name in ("value", "low", "high"))
    interval = f"${value}$ [${low}$, ${high}$]" if pd.notna(entry["low"]) else f"${value}$"
    tests = (_p(entry[name]) for name in ("p", "p_holm"))
    return layout.indented(metric.title, interval, *tests, str(entry["samples"]), str(entry["seeds"]))


def _p(value: float) -> str:
    """Write a p-value; one below `LEAST_P` by this bound: the far tails of t are approximate."""
    if pd.isna(value):
        return "--"
    return f"$<${LEAST_P:g}" if value < LEAST_P else f"{value:.2g}"
