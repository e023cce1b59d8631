"""Supplementary tables of studies: kernels against targets, methods on the convolutional trunk, and trials of settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import PRINTED_RULE, Evidence, run_model
from replication.report.labels import RULES, VARIANT_TITLES, model_title
from replication.report.statistics import over_samples, replicates
from replication.report.tables.layout import (
    Metric,
    Sources,
    by_dataset,
    cells,
    chosen,
    escape,
    group,
    grouped,
    in_order,
    model_lines,
    named,
    number,
    row,
    rows_by,
    summary,
)
from replication.runs.tuning import PREFIX

Column = tuple[str, Metric]
"""Rule and metric of a column; the rule is empty for how training ended."""

DECISION_METRICS = chosen("accuracy macro_f1 roc_auc")
CALIBRATION_METRICS = chosen("ece ece_scaled")
END_METRICS = chosen("alignment centred_alignment above_floor")
TRIAL_METRICS = chosen("accuracy cpu_minutes")
METHOD_METRICS = chosen("validation_accuracy accuracy macro_f1 roc_auc ece training_minutes cpu_minutes")
AT_THE_END = ["alignment", "centred_alignment", "above_floor", "validation_accuracy", "training_minutes"]
"""Metrics of the last epoch, from the history of training."""
STUDY_COLUMNS = [
    "dataset", "model", "kernel", "target", "rule", "metric", "mean", "sd", "n", "low", "high", "data",
]  # fmt: skip
METHOD_COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "low", "high", "data"]

SCORES = chosen("auroc accuracy")
"""What trials are compared by: the first that the evidence has."""
TUNING_COLUMNS = [
    "dataset", "model", "trial", "metric", "mean", "sd", "n", "low", "high", "cpu_minutes", "settings", "chosen", "data",
]  # fmt: skip
TUNING_HEADS = ["Method", "Trials", "Validation score", "Settings of the best trial", "CPU minutes", "Test score"]


def decisions_frame(sources: Sources) -> pd.DataFrame:
    """Return accuracy, macro F1 and ROC-AUC in per cent by study, cell and decision rule.

    Columns: dataset (the study), model (the cell), kernel, target, rule, metric, mean, sd, n, low, high (95 % t-interval of the
    mean over seeds), data.
    """
    return _ablation_frame(sources.evidence, DECISION_METRICS, [])


def training_frame(sources: Sources) -> pd.DataFrame:
    """Return calibration errors by decision rule and how training ended (rule empty); columns as of `decisions_frame`."""
    return _ablation_frame(sources.evidence, CALIBRATION_METRICS, END_METRICS)


def _ablation_frame(evidence: Evidence, metrics: Sequence[Metric], at_the_end: Sequence[Metric]) -> pd.DataFrame:
    rows = []
    for study in evidence.at_hand():
        measured = _measured(evidence, study)
        for cell in sorted(measured["model"].unique(), key=_cell_order):
            kernel, _, target = cell.partition("_")
            named = {"dataset": study, "kernel": kernel, "target": target, "data": evidence.data(study)}
            rows += rows_by(measured, metrics, {"model": [cell], "rule": RULES}, named)
            rows += rows_by(measured, at_the_end, {"model": [cell], "rule": [""]}, named)
    return pd.DataFrame(rows, columns=STUDY_COLUMNS)


def methods_frame(sources: Sources) -> pd.DataFrame:
    """Return the results by method: columns `METHOD_COLUMNS`, accuracies in per cent, low and high a 95 % t-interval over seeds.

    Accuracy and what follows it are of test images, validation_accuracy is that after the last epoch. training_minutes are wall
    time of the steps alone; cpu_minutes are processor time of the whole run, evaluation included.
    """
    return _methods_frame(sources.evidence, METHOD_METRICS)


def trials_frame(sources: Sources) -> pd.DataFrame:
    """Return accuracy on validation images and CPU minutes by trial, the best first; columns as of `methods_frame`."""
    frame = _methods_frame(sources.evidence, TRIAL_METRICS)
    best = frame[frame["metric"] == "accuracy"].sort_values("mean", ascending=False)["model"]
    return frame.set_index("model").loc[best.drop_duplicates()].reset_index()[METHOD_COLUMNS]


def _methods_frame(evidence: Evidence, metrics: Sequence[Metric]) -> pd.DataFrame:
    rows = []
    for study in evidence.at_hand():
        measured = _measured(evidence, study)
        measured = measured[measured["rule"].isin([PRINTED_RULE, ""])]
        named = {"dataset": study, "data": evidence.data(study)}
        rows += rows_by(measured, metrics, {"model": measured["model"].unique()}, named)
    return pd.DataFrame(rows, columns=METHOD_COLUMNS)


def _measured(evidence: Evidence, study: str) -> pd.DataFrame:
    """Return the metrics of a study's cells, how their training ended and how long the processor took, by seed.

    Columns: model, seed, fold, rule (empty for the two latter), metric, value.
    """
    history = evidence.frame(study, "history.csv").reindex(columns=["model", "seed", "epoch", "loss", "floor", "seconds",
                                                                   *AT_THE_END[:2], "validation_accuracy"])  # fmt: skip
    last = history.sort_values("epoch").groupby(["model", "seed"], as_index=False).last()
    last = last.assign(above_floor=last["loss"] - last["floor"], training_minutes=last["seconds"] / 60)
    ends = last.melt(["model", "seed"], AT_THE_END, "metric")
    minutes = [(run_model(run), run["seed"], run.get("cpu_seconds", np.nan) / 60) for run in evidence.runs(study)]
    times = pd.DataFrame(minutes, columns=["model", "seed", "value"]).assign(metric="cpu_minutes")
    return pd.concat([evidence.frame(study, "metrics.csv"), pd.concat([ends, times]).assign(rule="", fold=np.nan)])


def _cell_order(cell: str) -> list[int]:
    known = list(VARIANT_TITLES)
    return [known.index(part) if part in known else len(known) for part in cell.split("_")]


def decisions_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S5."""
    accuracy, *others = DECISION_METRICS
    columns = {(rule, accuracy): rule for rule in RULES} | {(PRINTED_RULE, metric): metric.title for metric in others}
    last = 2 + len(RULES)
    above = rf" & & \multicolumn{{{len(RULES)}}}{{c}}{{Accuracy by decision rule}} \\ \cmidrule(lr){{3-{last}}}" + "\n"
    return _ablation_tex(frame, sources, columns, text, "tab:ablation", above)


def training_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S11."""
    columns = {(PRINTED_RULE, metric): metric.title for metric in CALIBRATION_METRICS}
    columns |= {("", metric): metric.title for metric in END_METRICS}
    return _ablation_tex(frame, sources, columns, text, "tab:ablation_training")


def _ablation_tex(
    frame: pd.DataFrame, sources: Sources, columns: Mapping[Column, str], text: str, label: str, above: str = ""
) -> str:
    """Return a table with a row for each kernel and target; `columns` are the headings by rule and metric."""
    evidence = sources.evidence

    def lines(of_study: pd.DataFrame) -> list[str]:
        rows = []
        for (kernel, target), part in of_study.groupby(["kernel", "target"], sort=False):
            numbers = [cells(part[part["rule"] == rule], [metric])[0] for rule, metric in columns]
            rows.append(named(VARIANT_TITLES.get(str(kernel), str(kernel)), str(target), *numbers))
        return rows

    def title(study: str) -> str:
        widths, epochs, _ = _setting(evidence, study)
        return f"{evidence.data(study)}: encoder width {widths}, {epochs} epochs"

    return by_dataset(
        frame, sources, ["Kernel", "Target", *columns.values()], lines, text, label,
        columns="ll" + "c" * len(columns), title=_or_missing(evidence, title), above=above,
    )  # fmt: skip


def methods_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S12."""
    return _trunk_tex(frame, sources, METHOD_METRICS, text, "tab:fast_trunk", "Method")


def trials_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S13."""
    return _trunk_tex(frame, sources, TRIAL_METRICS, text, "tab:trials", "Trial")


def _trunk_tex(
    frame: pd.DataFrame, sources: Sources, metrics: Sequence[Metric], text: str, label: str, kind: str
) -> str:
    evidence = sources.evidence

    def title(study: str) -> str:
        widths, epochs, threads = _setting(evidence, study)
        return f"{evidence.data(study)}: trunk of width {widths}, {epochs} epochs, {threads} thread(s)"

    def lines(part: pd.DataFrame) -> list[str]:
        return model_lines(part.drop(columns=["low", "high"]), metrics)

    heads = [kind, *(metric.title for metric in metrics)]
    return by_dataset(frame, sources, heads, lines, text, label, title=_or_missing(evidence, title))


def _setting(evidence: Evidence, study: str) -> tuple[str, str, str]:
    """Return the widths of a study's encoders, its epochs and its threads: `32 or 48`."""

    def together(values: Iterable[int]) -> str:
        return " or ".join(map(str, sorted(set(values))))

    runs = evidence.runs(study)
    epochs = evidence.frame(study, "history.csv").groupby("model")["epoch"].max().astype(int)
    widths = together(run["settings"]["encoder"]["width"] for run in runs)
    return widths, together(epochs), together(run["threads"] for run in runs)


def _or_missing(evidence: Evidence, title: Callable[[str], str]) -> Callable[[str], str]:
    return lambda study: title(study) if evidence.has(study) else f"Study {study}"


def tuning_frame(sources: Sources) -> pd.DataFrame:
    """Return a row a trial, and a row a model with its test score: columns `TUNING_COLUMNS`.

    A trial's score is that on validation samples, its settings those that differ among the trials of its model. A test score
    has no trial; low and high are a 95 % t-interval over seeds or folds. With one seed they are that over test samples, where the
    dataset has comparisons.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for tuning in [key for key in evidence.at_hand() if key.startswith(PREFIX)]:
        metrics, best = evidence.metrics(tuning), best_trials(evidence, tuning)
        metric = score_of(metrics)
        scores = scores_of_trials(metrics)
        for model in in_order(best):
            runs = [run for run in evidence.runs(tuning) if _trial(run_model(run))[0] == model]
            drawn = _drawn_settings({run_model(run): run["settings"] for run in runs})
            for trial, mean, sd, n in scores.loc[scores["model"] == model, ["number", "mean", "sd", "n"]].to_numpy():
                cell = f"{model}_trial{trial:.0f}"
                minutes = sum(run["cpu_seconds"] for run in runs if run_model(run) == cell) / 60
                rows.append({
                    "dataset": tuning, "model": cell, "trial": f"trial{trial:.0f}", "metric": metric.key,
                    "mean": mean * metric.scale, "sd": sd * metric.scale, "n": int(n),
                    "cpu_minutes": minutes, "settings": _text(drawn[cell]), "chosen": trial == best[model],
                    "data": evidence.data(tuning),
                })  # fmt: skip
            rows += _test_rows(
                evidence, tuning.removeprefix(PREFIX), model, metric, drawn[f"{model}_trial{best[model]}"]
            )
    return pd.DataFrame(rows, columns=TUNING_COLUMNS)


def score_of(metrics: pd.DataFrame) -> Metric:
    """Return what trials with these metrics are compared by: AUROC of two classes, accuracy of more."""
    return next(metric for metric in SCORES if (metrics["metric"] == metric.key).any())


def scores_of_trials(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return mean, sd and number n of the validation scores over seeds: columns model, number (of the trial), mean, sd, n."""
    scored = metrics[metrics["metric"] == score_of(metrics).key]
    scores = scored.groupby("model", sort=False, as_index=False).agg(
        mean=("value", "mean"), sd=("value", "std"), n=("value", "size")
    )
    scores["number"] = [_trial(cell)[1] for cell in scores["model"]]
    scores["model"] = [_trial(cell)[0] for cell in scores["model"]]
    return scores.sort_values("number", kind="stable")


def standard_error(sd: pd.Series, seeds: int) -> float:
    """Return the standard error of a trial's mean over seeds, the variance pooled over trials; nan for one seed."""
    return float(np.sqrt((sd**2).mean() / seeds))


def best_trials(evidence: Evidence, tuning: str) -> dict[str, int]:
    """Return the number of the trial that is chosen for each model.

    It is the one with the best mean score, the first of equals. Where the dataset's own settings, those of trial 0, are within
    one standard error of it, they stay.
    """
    best = {}
    for model, trials in scores_of_trials(evidence.metrics(tuning)).groupby("model"):
        means = trials.set_index("number")["mean"]
        error = np.nan_to_num(standard_error(trials["sd"], int(trials["n"].max())))
        best[str(model)] = 0 if means[0] >= means.max() - error else int(means.to_numpy().argmax())
    return best


def _trial(cell: str) -> tuple[str, int]:
    """Return model and number of a trial: `clai-m`, 3 of `clai-m_trial3`."""
    model, _, trial = cell.partition("_trial")
    return model, int(trial)


def _test_rows(
    evidence: Evidence, dataset: str, model: str, metric: Metric, chosen: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the row of a model's test score; none where the dataset has no runs of it, or runs with other settings."""
    settings = [_flat(run["settings"]) for run in evidence.runs(dataset) if run_model(run) == model]
    if any(of_run.get(key) != value for of_run in settings for key, value in chosen.items()):
        return []
    measured = evidence.metrics(dataset)
    values = replicates(measured[(measured["model"] == model) & (measured["metric"] == metric.key)]) * metric.scale
    if values.empty:
        return []
    found = {"dataset": dataset, "model": model, "metric": metric.key, "data": evidence.data(dataset)} | summary(values)
    sampled = over_samples(evidence.frame(dataset, "comparisons.csv"), metric.key, model) if len(values) == 1 else None
    if sampled:
        found |= {"low": sampled.low * metric.scale, "high": sampled.high * metric.scale}
    return [found]


def _drawn_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by trial the settings, by dotted key, that differ among the trials."""
    flat = {trial: _flat(of_trial) for trial, of_trial in settings.items()}
    keys = [key for key in next(iter(flat.values())) if len({str(of_trial.get(key)) for of_trial in flat.values()}) > 1]
    return {trial: {key: of_trial.get(key) for key in sorted(keys)} for trial, of_trial in flat.items()}


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested settings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return flat


def _text(settings: Mapping[str, Any]) -> str:
    """Return settings as the table has them: `batch_size 64, learning_rate 0.0032`."""
    texts = {key: " or ".join(map(str, v)) if isinstance(v, list) else str(v) for key, v in settings.items()}
    return ", ".join(f"{key.rpartition('.')[2]} {text}" for key, text in texts.items())


def tuning_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S17: of each model the best trial, the number of trials and their time together."""
    evidence, span, groups = sources.evidence, len(TUNING_HEADS), []
    for tuning in [key for key in evidence.expected if key.startswith(PREFIX)]:
        if not evidence.has(tuning):
            groups.append(group(evidence.title(tuning).split(", study")[0], span, evidence.not_run(tuning)))
            continue
        trials = frame[frame["dataset"] == tuning]
        tests = frame[frame["dataset"] == tuning.removeprefix(PREFIX)]
        metric = score_of(trials)
        lines = [
            _tuned(str(model), of_model, tests[tests["model"] == model], metric)
            for model, of_model in trials.groupby(trials["model"].str.split("_").str[0], sort=False)
        ]
        groups.append(group(f"{evidence.data(tuning)}: {metric.title}", span, lines))
    return grouped(row(*TUNING_HEADS), groups, "lccp{4.8cm}cc", text, "tab:tuning", evidence.miniature, height=2)


def _tuned(model: str, trials: pd.DataFrame, test: pd.DataFrame, metric: Metric) -> str:
    best = trials[trials["chosen"]].iloc[0]
    return named(
        model_title(model),
        str(len(trials)),
        number(best["mean"], standard_error(trials["sd"].astype(float), best["n"]), digits=metric.digits),
        rf"\raggedright {escape(str(best['settings']))}",
        f"{trials['cpu_minutes'].sum():.1f}",
        cells(test, [metric], limits=True)[0],
    )
