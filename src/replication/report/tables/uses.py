"""What CLaI is for: one embedding for all classes, classes that training did not have, wrong labels, unequal classes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from replication.report.evidence import MODEL_OF, Evidence, run_model
from replication.report.labels import Metric, chosen, model_title
from replication.report.statistics import minus, replicates
from replication.report.tables.layout import Block, Sources, results_tex, rows_by, summary

NUMBERS = ("1", "5", "50", "all")
"""References of each class that training left out."""
ALL_CLASSES = "all-classes"
BASELINE = "cross-entropy"
OWN = chosen("accuracy log_loss_scaled brier_scaled")
COSTS = chosen("training_minutes peak_memory_mb")
NEW = chosen("balanced_accuracy old_accuracy new_accuracy")
GAIN = chosen("gain")
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
    accuracy on validation samples has the best mean over seeds. `gain` is the difference in balanced accuracy from
    cross-entropy at the same number, paired by seed. Accuracies are in per cent. Metrics of what is unseen have a score as
    `read_out` and an outside set as `references`; `unseen_gain` is the difference from cross-entropy's own score.
    """
    evidence = sources.evidence
    rows = [row for study in evidence.at_hand() for row in _rows_of_study(evidence, study)]
    return pd.DataFrame(rows, columns=USES_COLUMNS)


def title_of(method: str) -> str:
    """Return the name of the model behind a method."""
    return model_title(MODEL_OF.get(method, method))


def chosen_read_outs(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of the read-out that validation samples choose, for each cell and number of references.

    Args:
        metrics: columns model, seed, rule, shares, metric, value, of a study of new classes.
    """
    added = metrics[metrics["shares"].isin(NUMBERS)]
    by = ["model", "shares", "rule"]
    validated = added[added["metric"] == "validation_balanced_accuracy"].groupby(by)["value"].mean().reset_index()
    best = validated.sort_values("value", ascending=False, kind="stable").drop_duplicates(["model", "shares"])
    return added.merge(best[by], on=by)


def _rows_of_study(evidence: Evidence, study: str) -> Iterator[dict[str, Any]]:
    cells = evidence.expected[study]["cells"]
    metrics = evidence.frame(study, "metrics.csv")
    named = {"rule": "read_out", "shares": "references"}
    read = chosen_read_outs(metrics).rename(columns=named)
    unseen = metrics[metrics["metric"] == "unseen_auroc"].rename(columns=named)
    baselines = {cells[cell]["left-out"]: cell for cell in cells if cells[cell]["method"] == BASELINE}
    for cell in [cell for cell in cells if cell in set(metrics["model"])]:
        method, left_out = cells[cell]["method"], cells[cell]["left-out"]
        baseline = baselines[left_out]
        shared = {
            "dataset": study,
            "model": cell,
            "method": title_of(method),
            "left_out": left_out,
            "data": evidence.data(study),
        }
        if left_out == ALL_CLASSES:
            for metric, values in _own(evidence, study, cell, metrics):
                yield {**shared, "metric": metric.key, **summary(values * metric.scale)}
        own, other = (read[read["model"] == of] for of in (cell, baseline))
        balanced = own[own["metric"] == "balanced_accuracy"] if cell != baseline else own[:0]
        gains = minus(balanced, other, ["seed", "references", "metric"]).assign(metric="gain")
        by_number = {"references": NUMBERS, "read_out": own["read_out"].unique()}
        scores, others = (unseen[unseen["model"] == of] for of in (cell, baseline))
        compared = scores[scores["read_out"] != "own"] if cell == baseline else scores
        leads = minus(compared, others[others["read_out"] == "own"], ["seed", "references"])
        by_set = {"references": OUTSIDE, "read_out": SCORES}
        rows = [
            *rows_by(pd.concat([own, gains]), [*NEW, *GAIN], by_number, shared),
            *rows_by(pd.concat([scores, leads.assign(metric="unseen_gain")]), UNSEEN, by_set, shared),
        ]
        yield from (row for row in rows if row["n"])


def _own(evidence: Evidence, study: str, cell: str, metrics: pd.DataFrame) -> Iterator[tuple[Metric, pd.Series]]:
    """Yield the metrics of a cell by its own rule, and what its runs cost, by seed."""
    own = metrics[(metrics["model"] == cell) & metrics["rule"].isin(["", "printed"]) & ~metrics["shares"].isin(NUMBERS)]
    for metric in OWN:
        yield metric, replicates(own[own["metric"] == metric.key])
    runs = [run for run in evidence.runs(study) if run_model(run) == cell]
    seeds = pd.Index([run["seed"] for run in runs], name="seed")
    values = ([run["training_seconds"] / 60 for run in runs], [run["peak_memory_mb"] for run in runs])
    for metric, of_runs in zip(COSTS, values, strict=True):
        yield metric, pd.Series(of_runs, index=seeds, dtype=float)


def uses_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return the methods trained on all classes; then accuracy with classes added by references, and its gain."""
    whole = frame[(frame["left_out"] == ALL_CLASSES) & (frame["references"].isin(["all"]) | frame["references"].isna())]
    added = frame[frame["left_out"] != ALL_CLASSES]
    by_score = added["read_out"].where(added["metric"].str.startswith("unseen"), "").radd(" ").str.rstrip()
    added = added.assign(metric=added["metric"] + " " + added["references"] + by_score)
    of_all = [metric.key for metric in (*OWN, *COSTS)]
    shown = pd.concat([whole[whole["metric"].isin(of_all)], added])
    (balanced, old, new), (gain,) = NEW, GAIN
    by_number = [_numbered(balanced, number, number) for number in NUMBERS]
    ends = [_numbered(metric, "all", metric.title) for metric in (old, new)]
    gains = [_numbered(gain, number, number) for number in NUMBERS]
    auroc, auroc_gain = UNSEEN
    noticed = {
        outside: [_numbered(auroc, f"{outside} {score}", SCORES[score]) for score in SCORES] for outside in OUTSIDE
    }
    leads = [_numbered(auroc_gain, f"left-out {score}", SCORES[score]) for score in SCORES]
    blocks = [
        Block([*OWN, *COSTS], {"method": "Trained on all classes"}),
        Block([*by_number, *ends], {"method": "Balanced accuracy by references of a new class"}),
        Block(gains, {"method": "Minus cross-entropy"}, limits=True),
        *(Block(noticed[outside], {"method": f"{title}: AUROC"}) for outside, title in OUTSIDE.items()),
        Block(leads, {"method": "Classes left out, minus cross-entropy's own"}, limits=True),
    ]
    return results_tex(shown, sources, text, blocks, "tab:uses")


def _numbered(metric: Metric, references: str, title: str) -> Metric:
    """Return a metric as the column of one number of references."""
    return replace(metric, key=f"{metric.key} {references}", title=title)


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
        measured = evidence.frame(study, "metrics.csv")
        cells = evidence.expected[study]["cells"]
        baselines = {variants["labels"]: cell for cell, variants in cells.items() if variants["method"] == BASELINE}
        for cell, variants in cells.items():
            own, baseline = (measured[measured["model"] == of] for of in (cell, baselines[variants["labels"]]))
            named = {"method": title_of(variants["method"]), "labels": variants["labels"]}
            shared = {"dataset": study, **named, "data": evidence.data(study)}
            rules = list(own["rule"].unique())
            rows += rows_by(own, LABEL_METRICS, {"model": [cell], "rule": rules}, shared)
            if variants["method"] != BASELINE:
                gains = minus(own, baseline, ["seed", "metric"])
                gains["metric"] = "gain_" + gains["metric"]
                rows += rows_by(gains, LABEL_GAINS, {"model": [cell], "rule": rules}, shared)
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
    wrong = {share: rf"{100 * share:.0f} \%" for share in WRONG.values()}
    tails = {ratio: f"{ratio:g}" for ratio in TAILS.values()}
    blocks = [
        Block(
            [replace(metric, key=f"{metric.key} {place}", title=title) for place, title in cases.items()],
            {"method": f"{heading}{ending}", "rule": "Rule"},
            limits=bool(ending),
        )
        for ending, columns in (("", LABEL_METRICS), (", minus cross-entropy", LABEL_GAINS))
        for metric, heading, cases in zip(
            columns, ("Accuracy by wrong labels", "Macro F1 by ratio"), (wrong, tails), strict=True
        )
    ]
    return results_tex(shown, sources, text, blocks, "tab:labels")
