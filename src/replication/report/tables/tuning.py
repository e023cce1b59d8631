"""Table S17: the trials of each method's settings on validation samples, and the test score of its runs."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence, run_model
from replication.report.labels import model_title
from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.statistics import interval, over_samples, replicates, spread
from replication.report.tables.parts import Metric, Sources, cells, in_order, number
from replication.runs.tuning import PREFIX

SCORES = [Metric("auroc", "AUROC"), Metric("accuracy", "Accuracy", percent=True)]
"""What trials are compared by: the first that the evidence has."""
COLUMNS = [
    "dataset", "model", "trial", "metric", "mean", "sd", "n", "low", "high", "cpu_minutes", "settings", "chosen", "data",
]  # fmt: skip
_HEADINGS = ["Method", "Trials", "Validation score", "Settings of the best trial", "CPU minutes", "Test score"]


def score_of(metrics: pd.DataFrame) -> Metric:
    """Return what trials with these metrics are compared by: AUROC of two classes, accuracy of more."""
    return next(metric for metric in SCORES if (metrics["metric"] == metric.key).any())


def best_trials(evidence: Evidence, tuning: str) -> dict[str, str]:
    """Return by model the trial with the best validation score, the first of equals, such as `trial3`."""
    metrics = evidence.metrics(tuning)
    scored = metrics[metrics["metric"] == score_of(metrics).key]
    parts = scored["model"].str.split("_", expand=True)
    scored = scored.assign(model=parts[0], trial=parts[1], number=parts[1].str.removeprefix("trial").astype(int))
    ordered = scored.sort_values(["value", "number"], ascending=[False, True]).groupby("model", sort=False).first()
    return {str(model): str(trial) for model, trial in ordered["trial"].items()}


def tuning_frame(sources: Sources) -> pd.DataFrame:
    """Return a row a trial, and a row a model with its test score: columns `COLUMNS`.

    A trial's score is that on validation samples, its settings those that differ among the trials of its model. A test score
    has no trial; low and high are a 95 % t-interval over seeds or folds. With one seed they are that over test samples, where the
    dataset has comparisons.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for tuning in [key for key in evidence.at_hand() if key.startswith(PREFIX)]:
        metrics, best = evidence.metrics(tuning), best_trials(evidence, tuning)
        metric, dataset = score_of(metrics), tuning.removeprefix(PREFIX)
        scores = metrics[metrics["metric"] == metric.key].set_index("model")["value"] * metric.scale
        for model in in_order(best):
            trial = best[model]
            records = {run_model(run): run for run in evidence.runs(tuning) if run_model(run).split("_")[0] == model}
            drawn = _drawn_settings({cell: run["settings"] for cell, run in records.items()})
            for cell, run in sorted(records.items(), key=lambda item: int(item[0].rpartition("trial")[2])):
                name = cell.split("_")[1]
                rows.append({
                    "dataset": tuning, "model": cell, "trial": name, "metric": metric.key, "mean": scores[cell], "n": 1,
                    "cpu_minutes": run["cpu_seconds"] / 60, "settings": _text(drawn[cell]), "chosen": name == trial,
                    "data": evidence.data(tuning),
                })  # fmt: skip
            rows += _test_rows(evidence, dataset, model, metric, drawn[f"{model}_{trial}"])
    return pd.DataFrame(rows, columns=COLUMNS)


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
    (mean, sd, n), around = spread(values), interval(values)
    sampled = over_samples(evidence.frame(dataset, "comparisons.csv"), metric.key, model) if n == 1 else None
    low, high = (sampled.low * metric.scale, sampled.high * metric.scale) if sampled else (around.low, around.high)
    return [{
        "dataset": dataset, "model": model, "metric": metric.key, "mean": mean, "sd": sd, "n": n, "low": low, "high": high,
        "data": evidence.data(dataset),
    }]  # fmt: skip


def _drawn_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by trial the settings, by dotted key, that differ among the trials."""
    flat = {trial: _flat(of_trial) for trial, of_trial in settings.items()}
    keys = [key for key in next(iter(flat.values())) if len({str(of_trial.get(key)) for of_trial in flat.values()}) > 1]
    return {trial: {key: of_trial.get(key) for key in sorted(keys)} for trial, of_trial in flat.items()}


def _text(settings: Mapping[str, Any]) -> str:
    """Return settings as the table has them: `batch_size 64, learning_rate 0.0032`."""
    return ", ".join(f"{key.rpartition('.')[2]} {_plain(value)}" for key, value in settings.items())


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested settings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return flat


def _plain(value: Any) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def tuning_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S17: of each model the best trial, the number of trials and their time together."""
    evidence, span, groups = sources.evidence, len(_HEADINGS), []
    for tuning in [key for key in evidence.expected if key.startswith(PREFIX)]:
        if not evidence.has(tuning):
            groups.append(missing_group(evidence.title(tuning).split(", study")[0], span, evidence.not_run(tuning)))
            continue
        of_tuning = frame[frame["dataset"] == tuning]
        metric = score_of(of_tuning)
        lines = []
        for model, trials in of_tuning.groupby(of_tuning["model"].str.split("_").str[0], sort=False):
            best = trials[trials["chosen"]].iloc[0]
            test = frame[(frame["dataset"] == tuning.removeprefix(PREFIX)) & (frame["model"] == model)]
            lines.append(
                row(
                    rf"\quad {escape(model_title(str(model)))}",
                    str(len(trials)),
                    number(best["mean"], float("nan"), metric.digits),
                    rf"\raggedright {escape(str(best['settings']))}",
                    f"{trials['cpu_minutes'].sum():.1f}",
                    cells(test, [metric], limits=True)[0],
                )
            )
        groups.append(group(f"{evidence.data(tuning)}: {metric.title}", span, lines))
    return grouped(row(*_HEADINGS), groups, "lccp{4.8cm}cc", text, "tab:tuning", evidence.miniature, lines=2)
