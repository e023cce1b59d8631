"""What CLaI is for: one embedding for all classes, classes that training did not have, wrong labels, unequal classes."""

from dataclasses import replace
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence, run_model
from replication.report.labels import chosen, model_title
from replication.report.statistics import minus
from replication.report.tables.layout import Block, Sources, across, by_variants, results_tex, rows_by

NUMBERS = ("1", "5", "50", "all")
"""References of each class that training left out."""
ALL_CLASSES = "all-classes"
BASELINE = "cross-entropy"
ONE_EMBEDDING = {"full": "unconditioned-m", "cosine": "unconditioned-c"}
"""By method with an embedding a class, the one with the same kernel and one embedding for all classes."""
OWN = chosen("accuracy log_loss_scaled brier_scaled")
COSTS = chosen("training_minutes peak_memory_mb")
NEW = chosen("balanced_accuracy old_accuracy new_accuracy")
GAINS = chosen("gain embedding_gain", gain="Cross-entropy", embedding_gain="An embedding a class")
UNSEEN = chosen("unseen_auroc unseen_gain")
SCORES = {"own": "Own score", "density": "Parzen density", "nearest": "Nearest reference"}
OUTSIDE = {"left-out": "Classes left out", "blends": "Blends of two samples", "noise": "Noise"}
"""Scores that are high for familiar samples, and the sets that they tell from these (`replication.experiments.unseen`)."""
USES_COLUMNS = [
    "dataset", "model", "method", "left_out", "read_out", "references", "metric", "mean", "sd", "n", "low", "high", "data",
]  # fmt: skip

WRONG = {"right": 0.0, "wrong-20": 0.2, "wrong-40": 0.4, "wrong-60": 0.6}
TAILS = {"tail-1": 1.0, "tail-10": 10.0, "tail-100": 100.0}
"""The variants of labels: the share that is wrong, and how many times the largest class has the samples of the smallest."""
LABEL_METRICS = chosen("accuracy macro_f1")
"""By wrong labels, and by unequal classes."""
LABEL_GAINS = [replace(metric, key=f"gain_{metric.key}") for metric in LABEL_METRICS]
LABEL_COLUMNS = ["dataset", "model", "method", "labels", "rule", "metric", "mean", "sd", "n", "low", "high", "data"]


def uses_frame(sources: Sources) -> pd.DataFrame:
    """Return the metrics of methods, trained on all classes and without some, with limits of 95 % t-intervals over seeds.

    `dataset` is the study, `model` the cell, `method` and `left_out` its variants. Metrics by a method's own rule have no
    `read_out`. The others are those of a read-out with so many `references` of each class left out: the one whose balanced
    accuracy on validation samples has the best mean over seeds. `gain` is the difference from cross-entropy, paired by seed: in
    accuracy by a method's own rule, else in balanced accuracy at the same number. `embedding_gain` is the difference
    in accuracy of one embedding from an embedding a class with the same kernel. Accuracies are in per cent. Metrics of what is
    unseen have a score as `read_out` and an outside set as `references`; `unseen_gain` is the difference from cross-entropy's
    own score.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        measured = _measured(evidence, study)
        for cell, variants in evidence.expected[study]["cells"].items():
            own = measured[measured["model"] == cell]
            by = {
                "references": ["", *NUMBERS, *OUTSIDE],
                "read_out": list(dict.fromkeys(["", *SCORES, *own["read_out"]])),
            }
            named = {"method": model_title(variants["method"]), "left_out": variants["left-out"]}
            shared = {"dataset": study, "model": cell, **named, "data": evidence.data(study)}
            rows += rows_by(own, [*OWN, *COSTS, *NEW, *GAINS, *UNSEEN], by, shared)
    frame = pd.DataFrame(rows, columns=USES_COLUMNS)
    return frame[frame["n"] > 0]


def chosen_read_outs(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of the read-out that validation samples choose, for each cell and number of references."""
    added = metrics[metrics["shares"].isin(NUMBERS)]
    by = ["model", "shares", "rule"]
    validated = added[added["metric"] == "validation_balanced_accuracy"].groupby(by)["value"].mean().reset_index()
    best = validated.sort_values("value", ascending=False, kind="stable").drop_duplicates(["model", "shares"])
    return added.merge(best[by], on=by)


def _minus_baseline(measured: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the metrics of other methods less those of the baseline among `others`, in rows with the same `keys`."""
    baseline = others[others["method"] == BASELINE]
    return minus(measured.drop(baseline.index), baseline, keys)


def _measured(evidence: Evidence, study: str) -> pd.DataFrame:
    """Return what the table summarises of a study: model, read_out, references, seed, fold, metric and value."""
    metrics, cells = by_variants(evidence, study), evidence.expected[study]["cells"]
    by_own_rule = metrics["rule"].isin(["", "printed"]) & ~metrics["shares"].isin(NUMBERS)
    own = metrics[by_own_rule & (metrics["left-out"] == ALL_CLASSES)]
    runs = [
        (run_model(run), run["seed"], run["training_seconds"] / 60, run["peak_memory_mb"])
        for run in evidence.runs(study)
        if cells[run_model(run)]["left-out"] == ALL_CLASSES
    ]
    costs = pd.DataFrame(runs, columns=["model", "seed", *(metric.key for metric in COSTS)])
    own = pd.concat([own, costs.melt(["model", "seed"], var_name="metric")]).assign(rule="", shares="")
    accuracy = own[own["metric"] == "accuracy"]
    of_a_class = accuracy.assign(method=accuracy["method"].map(ONE_EMBEDDING))
    embedding_gains = minus(accuracy, of_a_class, ["method", "seed"]).assign(metric="embedding_gain")
    added, unseen = chosen_read_outs(metrics), metrics[metrics["metric"] == "unseen_auroc"]
    added = added[added["metric"].isin([metric.key for metric in NEW])]
    compared = pd.concat([accuracy, added[added["metric"] == "balanced_accuracy"]], ignore_index=True)
    gains = _minus_baseline(compared, compared, ["left-out", "seed", "shares", "metric"]).assign(metric="gain")
    leads = _minus_baseline(unseen, unseen[unseen["rule"] == "own"], ["left-out", "seed", "shares"])
    measured = pd.concat([own, embedding_gains, added, gains, unseen, leads.assign(metric="unseen_gain")])
    return measured.rename(columns={"rule": "read_out", "shares": "references"})


def uses_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return the methods trained on all classes; then accuracy with classes added by references, and its gain."""
    added = frame[frame["left_out"] != ALL_CLASSES]
    by_score = added["read_out"].where(added["metric"].str.startswith("unseen"), "").radd(" ").str.rstrip()
    added = added.assign(metric=added["metric"] + " " + added["references"] + by_score)
    shown = pd.concat([frame[frame["references"] == ""], added])
    (balanced, *by_age), (gain, _), (auroc, lead) = NEW, GAINS, UNSEEN
    numbers = {number: number for number in NUMBERS}
    ends = [column for metric in by_age for column in across(metric, {"all": metric.title})]
    blocks = [
        Block([*OWN, *COSTS], {"method": "Trained on all classes"}),
        Block(GAINS, {"method": "Trained on all classes, accuracy minus that of"}, limits=True),
        Block([*across(balanced, numbers), *ends], {"method": "Balanced accuracy by references of a new class"}),
        Block(across(gain, numbers), {"method": "Minus cross-entropy"}, limits=True),
        *(Block(across(auroc, SCORES, f" {key}"), {"method": f"{title}: AUROC"}) for key, title in OUTSIDE.items()),
        Block(
            across(lead, SCORES, " left-out"), {"method": "Classes left out, minus cross-entropy's own"}, limits=True
        ),
    ]
    return results_tex(shown, sources, text, blocks, "tab:uses")


def labels_frame(sources: Sources) -> pd.DataFrame:
    """Return accuracy and macro F1 of methods by decision rule, in per cent, with limits of 95 % t-intervals over seeds.

    `dataset` is the study, `model` the cell, `method` and `labels` its variants. A method without votes has no `rule`. Metrics
    that begin with `gain` are differences from cross-entropy, paired by seed. A study that was not run has one row.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.expected:
        if not evidence.has(study):
            rows.append({"dataset": study, "n": 0, "data": evidence.data(study)})
            continue
        measured = by_variants(evidence, study)
        gains = _minus_baseline(measured, measured, ["labels", "seed", "metric"])
        gains["metric"] = "gain_" + gains["metric"]
        for cell, variants in evidence.expected[study]["cells"].items():
            named = {"method": model_title(variants["method"]), "labels": variants["labels"]}
            shared = {"dataset": study, "model": cell, **named, "data": evidence.data(study)}
            own, gained = (part[part["model"] == cell] for part in (measured, gains))
            rows += rows_by(own, LABEL_METRICS, {"rule": own["rule"].unique()}, shared)
            rows += rows_by(gained, LABEL_GAINS, {"rule": gained["rule"].unique()}, shared)
    return pd.DataFrame(rows, columns=LABEL_COLUMNS)


def places_of_labels(evidence: Evidence, study: str) -> dict[str, dict[str, float]]:
    """Return the cases of a study that accuracy and macro F1 are shown for, with their share or ratio.

    Where equal classes have no case of their own, right labels are it.
    """
    cases = {variants["labels"] for variants in evidence.expected[study]["cells"].values()}
    tails = {case: ratio for case, ratio in {"right": 1.0, **TAILS}.items() if case != "right" or "tail-1" not in cases}
    return {metric.key: places for metric, places in zip(LABEL_METRICS, (WRONG, tails), strict=True)}


def labels_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return accuracy by the share of wrong labels and macro F1 by the ratio of the largest class to the smallest; then gains."""
    places = {study: places_of_labels(sources.evidence, study) for study in sources.evidence.expected}

    def column(row: pd.Series) -> str | None:
        """Return metric and place of a row; None where its study was not run."""
        if pd.isna(row["metric"]):
            return None
        return f"{row['metric']} {places[row['dataset']][row['metric'].removeprefix('gain_')].get(row['labels'])}"

    shown = frame.assign(metric=frame.apply(column, axis=1))
    headings = {
        "Accuracy by wrong labels": {share: rf"{100 * share:.0f} \%" for share in WRONG.values()},
        "Macro F1 by ratio": {ratio: f"{ratio:g}" for ratio in TAILS.values()},
    }
    blocks = [
        Block(across(metric, cases), {"method": f"{heading}{ending}", "rule": "Rule"}, limits=bool(ending))
        for ending, metrics in (("", LABEL_METRICS), (", minus cross-entropy", LABEL_GAINS))
        for metric, (heading, cases) in zip(metrics, headings.items(), strict=True)
    ]
    return results_tex(shown, sources, text, blocks, "tab:labels")
