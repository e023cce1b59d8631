"""Supplementary tables of the setup: the datasets, and the trials of settings."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import Evidence, run_cell
from replication.report.labels import METRICS, Metric, chosen, in_order, model_title
from replication.report.statistics import over_samples
from replication.report.tables import layout
from replication.report.tables.layout import Sources
from replication.runs.registry import PREFIX

STATED = {
    "Samples": "images",
    "Recordings": "recordings",
    "Classes": "classes",
    "Split train": "training images",
    "Split test": "test images",
}
"""By quantity the name of what the paper states of it."""
UNITS = {"images": "images", "signals": "epochs", "features": "rows", "recordings": "hours"}
"""What samples of a kind of data are."""
SCORES = chosen("auroc accuracy")
"""What trials are compared by: the first that the evidence has."""
TRIAL_COLUMNS = [
    "dataset", "model", "method", "trial", "metric", "mean", "sd", "n", "low", "high", "cpu_minutes", "settings", "chosen",
    "data",
]  # fmt: skip
TRIAL_HEADS = ["Method", "Trials", "Validation score", "Settings of the best trial", "CPU minutes", "Test score"]


def datasets_frame(sources: Sources) -> pd.DataFrame:
    """Return datasets as used: columns dataset, quantity, ours, printed (the figure that the paper states, or empty)."""
    evidence, printed = sources.evidence, sources.printed_values
    rows: list[tuple[str, str, str, str]] = []
    for dataset in evidence.expected:
        own = printed[(printed["table"] == "text") & (printed["row"] == dataset)]
        stated = {metric: f"{value:,.0f}" for metric, value in zip(own["metric"], own["value"], strict=True)}
        if evidence.has(dataset):
            rows += [(dataset, *described) for described in _described(evidence.description(dataset), stated)]
            continue
        rows.append((dataset, "Data", evidence.not_run(dataset), ""))
        rows += [
            (dataset, quantity, "not run", f"{stated[key]} {key}") for quantity, key in STATED.items() if key in stated
        ]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "printed"])


def _described(content: Mapping[str, Any], stated: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return quantity, our text and the paper's text of a dataset's description."""
    # The splits of recordings are the whole ("all") and its test folds, those of other kinds are disjoint.
    whole = {name: split for name, split in content["splits"].items() if name == "all"} or content["splits"]
    unit, flow = UNITS[content["kind"]], content.get("flow", [])
    samples = sum(int(split["n"]) for split in whole.values())
    people = pd.DataFrame(list(whole.values())).filter(["recordings", "subjects", "groups"]).sum().astype(int).to_dict()
    usable = [("recordings", step["n"]) for step in flow if step["step"] == "usable"]
    recordings = ", ".join(f"{n:,} {name}" for name, n in (dict(usable) | people).items())
    rows = [
        ("Data", f"{content['title']}, version {content['version']}", ""),
        ("Samples", f"{samples:,} {unit}", stated.get(unit, "")),
        ("Recordings", recordings, f"{stated['recordings']} recordings" if "recordings" in stated else ""),
        ("Classes", str(len(content["classes"])), stated.get("classes", "")),
        ("Split", str(content["split_rule"]),
         f"{stated['share for training']} % for training" if "share for training" in stated else ""),
        *((f"Split {name}", f"{split['n']:,}: {_shares(content['classes'], split['counts'])}",
           stated.get(STATED.get(f"Split {name}", name), "")) for name, split in whole.items()),
        ("Cohort", "; ".join(f"{step['n']:,} {step['unit']}: {step['step']}" for step in flow), ""),
        ("Exclusions", "; ".join(f"{item['reason']}: {item['count']:,}" for item in content["exclusions"]) or "none", ""),
        ("Lacking", ", ".join(content.get("lacking", [])), ""),
        ("Files", _files(content["files"]), ""),
        ("Licence, access", f"{content['licence']}; {content['access']}", ""),
    ]  # fmt: skip
    return [row for row in rows if row[1] or row[2]]


def _shares(classes: Sequence[str], counts: Sequence[int]) -> str:
    total = sum(counts)
    shares = [f"{100 * count / total:.1f} %" for count in counts] if total else []
    if shares and len(set(shares)) == 1:
        return f"{shares[0]} each"
    return ", ".join(f"{name} {share}" for name, share in zip(classes, shares, strict=False))


def _files(files: Sequence[Mapping[str, Any]]) -> str:
    """Return each file with the beginning of its checksum; of many, their number, size and one checksum over all of theirs."""
    if len(files) <= 2:
        return "; ".join(f"{item['file']} ({str(item['checksum'])[:19]})" for item in files)
    lines = "".join(f"{item['file']} {item['checksum']}\n" for item in files)
    total = sum(int(item["size"]) for item in files) / 1e6
    return f"{len(files):,} files, {total:,.1f} MB (sha256 of their list: {hashlib.sha256(lines.encode()).hexdigest()[:12]})"


def datasets_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return the table of datasets, which runs over pages."""
    evidence = sources.evidence
    body = ""
    for dataset, rows in frame.fillna("").set_index("dataset").groupby("dataset", sort=False):
        lines = [layout.paragraphs(*entry) for entry in rows.itertuples(index=False)]
        body += layout.group(evidence.expected[str(dataset)]["title"], 3, lines)
    head = layout.paragraphs("Quantity", "As used", "Stated by the paper")
    return layout.long_table(head, body, "p{2.2cm}p{10.6cm}p{2.6cm}", text, "tab:datasets", evidence.miniature)


def trials_frame(sources: Sources) -> pd.DataFrame:
    """Return a row a trial, and a row a method with its test score: columns `TRIAL_COLUMNS`.

    A trial's score is that on validation samples, its settings those that differ among the trials of its method. A test score
    has no trial; low and high are a 95 % t-interval over seeds or folds. With one seed they are that over test samples, where the
    dataset has comparisons.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for tuning in [key for key in evidence.at_hand() if key.startswith(PREFIX)]:
        scores, best = scores_of_trials(evidence, tuning), best_trials(evidence, tuning)
        runs = evidence.runs(tuning)
        seconds = pd.Series([run["cpu_seconds"] for run in runs]).groupby([run_cell(run) for run in runs]).sum()
        for method in in_order(best):
            own = scores[scores["method"] == method]
            metric = METRICS[own["metric"].iloc[0]]
            settings = _settings(evidence, tuning, own["model"])
            texts = settings.map(str)
            drawn = settings.loc[~settings.index.duplicated(), (texts != texts.iloc[0]).any()].sort_index(axis=1)
            own = own.assign(
                dataset=tuning, mean=own["mean"] * metric.scale, sd=own["sd"] * metric.scale,
                cpu_minutes=own["model"].map(seconds / 60), settings=[_text(drawn.loc[cell]) for cell in own["model"]],
                chosen=own["trial"] == f"trial{best[method]}", data=evidence.data(tuning),
            )  # fmt: skip
            rows += [dict(trial) for _, trial in own.iterrows()]
            (cell,) = own.loc[own["chosen"], "model"]
            rows += _test_rows(evidence, tuning.removeprefix(PREFIX), method, metric, drawn.loc[cell])
    return pd.DataFrame(rows, columns=TRIAL_COLUMNS)


def _settings(evidence: Evidence, dataset: str, models: Iterable[str]) -> pd.DataFrame:
    """Return the settings of runs, a row a run named by its model, by dotted key."""
    runs = evidence.runs(dataset, list(models))
    settings = pd.json_normalize([run["settings"] for run in runs]).set_axis(list(map(run_cell, runs)))
    return settings.astype(object).where(settings.notna(), None)


def scores_of_trials(evidence: Evidence, tuning: str) -> pd.DataFrame:
    """Return the validation scores over seeds: columns model (the cell), method, trial, metric, mean, sd, n; in order of trials.

    The metric is AUROC of two classes and accuracy of more.
    """
    metrics = evidence.metrics(tuning)
    metric = next(metric.key for metric in SCORES if (metrics["metric"] == metric.key).any())
    scores = metrics[metrics["metric"] == metric].groupby("cell")["value"].agg(mean="mean", sd="std", n="size")
    trials = pd.DataFrame(evidence.expected[tuning]["cells"]).T.set_axis(["method", "trial"], axis=1)
    return trials.join(scores, how="inner").rename_axis("model").reset_index().assign(metric=metric)


def standard_error(sd: pd.Series, seeds: int) -> float:
    """Return the standard error of a trial's mean over seeds, the variance pooled over trials; nan for one seed."""
    return float(np.sqrt((sd**2).mean() / seeds))


def best_trials(evidence: Evidence, tuning: str) -> dict[str, int]:
    """Return the number of the trial that is chosen for each method.

    It is the one with the best mean score, the first of equals. Where the dataset's own settings, those of trial 0, are within
    one standard error of it, they stay.
    """
    best = {}
    for method, trials in scores_of_trials(evidence, tuning).groupby("method"):
        means = trials["mean"].to_numpy()
        error = np.nan_to_num(standard_error(trials["sd"], int(trials["n"].max())))
        best[str(method)] = 0 if means[0] >= means.max() - error else int(means.argmax())
    return best


def _test_rows(evidence: Evidence, dataset: str, method: str, metric: Metric, drawn: pd.Series) -> list[dict[str, Any]]:
    """Return the row of a method's test score; none where the dataset has no runs of it, or runs with other settings."""
    runs = _settings(evidence, dataset, [method]).reindex(columns=drawn.index)
    if runs.empty or (runs.map(str) != drawn.map(str)).any(axis=None):
        return []
    (found,) = layout.result_rows(evidence, dataset, [method], [metric])
    found["method"] = method
    sampled = over_samples(evidence.frame(dataset, "comparisons.csv"), metric.key, method) if found["n"] == 1 else None
    return [found | {"low": sampled.low * metric.scale, "high": sampled.high * metric.scale} if sampled else found]


def _text(settings: pd.Series) -> str:
    """Return settings as the table has them: `batch_size 64, learning_rate 0.0032`."""
    texts = {key: " or ".join(map(str, v)) if isinstance(v, list) else str(v) for key, v in settings.items()}
    return ", ".join(f"{str(key).rpartition('.')[2]} {text}" for key, text in texts.items())


def trials_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return of each method the best trial, the number of trials and their time together."""
    evidence, span, groups = sources.evidence, len(TRIAL_HEADS), []
    for tuning in [key for key in evidence.expected if key.startswith(PREFIX)]:
        if not evidence.has(tuning):
            groups.append(layout.group(evidence.title(tuning).split(", study")[0], span, evidence.not_run(tuning)))
            continue
        trials = frame[frame["dataset"] == tuning]
        tests = frame[frame["dataset"] == tuning.removeprefix(PREFIX)]
        metric = METRICS[trials["metric"].iloc[0]]
        lines = [
            _tuned(str(method), of_method, tests[tests["method"] == method], metric)
            for method, of_method in trials.groupby("method", sort=False)
        ]
        groups.append(layout.group(f"{evidence.data(tuning)}: {metric.title}", span, lines))
    return layout.floats(
        layout.row(*TRIAL_HEADS), groups, "lccp{4.8cm}cc", text, "tab:tuning", evidence.miniature, height=2
    )


def _tuned(model: str, trials: pd.DataFrame, test: pd.DataFrame, metric: Metric) -> str:
    best = trials[trials["chosen"]].iloc[0]
    return layout.indented(
        model_title(model),
        str(len(trials)),
        layout.number(best["mean"], standard_error(trials["sd"].astype(float), best["n"]), digits=metric.digits),
        rf"\raggedright {layout.escape(str(best['settings']))}",
        f"{trials['cpu_minutes'].sum():.1f}",
        layout.cells(test, [metric], limits=True)[0],
    )
