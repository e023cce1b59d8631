"""The paper's tables and their supplements: evidence -> tidy frame -> LaTeX or Markdown.

Frames of tables 1 and 3 have the columns dataset, model, metric, mean, sd, n, paper, data: one row per metric, in the
unit in which the table shows it (table 1: per cent, calibration errors as fractions; table 3: fractions); n is the
number of seeds or folds, `paper` the printed value and `data` the data that the number rests on, or what it would need.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clai.benchmark import analysis
from clai.errors import InputError
from clai.report.captions import caption
from clai.report.evidence import RULES, Evidence, run_model
from clai.report.labels import CLASS_COLOURS, CLASS_LABELS, CLASS_TITLES, MAJORITY, VARIANT_TITLES, model_title
from clai.report.printed_values import printed_value
from clai.report.statistics import interval, replicates, spread
from clai.runs.models import CLAI, MODELS


@dataclass(frozen=True)
class Metric:
    """A column of a results table: its key in the evidence, heading and unit."""

    key: str
    title: str
    percent: bool

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        return 2 if self.percent else 3


TABLE1_METRICS = [
    Metric("accuracy", "Accuracy", True),
    Metric("precision", "Precision", True),
    Metric("recall", "Recall", True),
    Metric("f1", "F1-score", True),
    Metric("roc_auc", "ROC-AUC", True),
    Metric("ece", "ECE", False),
    Metric("macro_f1", "Macro F1", True),
    Metric("ece_scaled", "ECE, scaled", False),
]
TABLE3_METRICS = [
    Metric("auroc", "AUROC", False),
    Metric("auprc", "AUPRC", False),
    Metric("f1", "F1", False),
    Metric("ece", "ECE", False),
    Metric("f1_validation", "F1, val. threshold", False),
    Metric("ece_top", "ECE, top label", False),
    Metric("ece_calibrated", "ECE, calibrated", False),
    Metric("prevalence", "Positive share", False),
]
TABLE1_MODELS = ["clai-m", "clai-c", "cross-entropy"]
TABLE3_MODELS = ["clai-m", "clai-c", "student-t-mixture"]
SEPSIS_METRICS = [
    Metric("auroc", "AUROC", False),
    Metric("auprc", "AUPRC", False),
    Metric("utility", "Utility", False),
    Metric("f1_validation", "F1, val. threshold", False),
    Metric("ece", "ECE", False),
    Metric("ece_calibrated", "calibrated", False),
    Metric("ece_top_calibrated", "top label, calibrated", False),
    Metric("brier", "Brier", False),
    Metric("brier_reliability", "reliability", False),
    Metric("brier_resolution", "resolution", False),
    Metric("brier_calibrated", "Brier, calibrated", False),
    Metric("prevalence", "Positive share", False),
]
FINE = {"ece_calibrated", "ece_top_calibrated", "brier_reliability", "brier_resolution"}  # mostly below 0.001 there


@dataclass(frozen=True)
class Sources:
    """What tables are made of: evidence, the paper's printed values, and (table S1) choices and settings."""

    evidence: Evidence
    printed_values: pd.DataFrame
    choices: pd.DataFrame
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A rendered table: its tidy frame, LaTeX source, full caption and the run records behind it."""

    frame: pd.DataFrame
    tex: str
    caption: str
    runs: list[dict[str, Any]]


def number(mean: float, sd: float, digits: int) -> str:
    """`mean (sd)`; the mean alone without a spread; a dash without a mean."""
    if pd.isna(mean):
        return "--"
    return f"{mean:.{digits}f}" if pd.isna(sd) else f"{mean:.{digits}f} ({sd:.{digits}f})"


# --- tidy frames ------------------------------------------------------------------------------------------------------


def _result_rows(
    sources: Sources,
    dataset: str,
    models: Sequence[str],
    metrics: Sequence[Metric],
    printed: Callable[[str, str], float],
) -> list[dict[str, Any]]:
    evidence = sources.evidence
    values = evidence.metrics(dataset)
    rows = []
    for model in models:
        for metric in metrics:
            chosen = values[(values["model"] == model) & (values["metric"] == metric.key)]
            mean, sd, n = spread(replicates(chosen) * metric.scale)
            rows.append({
                "dataset": dataset, "model": model, "metric": metric.key, "mean": mean, "sd": sd, "n": n,
                "printed": printed(model, metric.key), "data": evidence.data(dataset),
            })  # fmt: skip
    return rows


def table1_frame(sources: Sources) -> pd.DataFrame:
    """Multiclass results. The paper's row names no model: its values stand beside both CLaI models."""
    rows: list[dict[str, Any]] = []
    for dataset in sources.evidence.expected:

        def printed(model: str, metric: str, dataset: str = dataset) -> float:
            return (
                printed_value(sources.printed_values, "table1", dataset, metric)[0] if model in CLAI else float("nan")
            )

        rows += _result_rows(sources, dataset, TABLE1_MODELS, TABLE1_METRICS, printed)
        rows += _majority_rows(sources, dataset)
    return pd.DataFrame(rows)


def _majority_rows(sources: Sources, dataset: str) -> list[dict[str, Any]]:
    """Accuracy (and recall, the same) on the test set of always naming the class that is most frequent in training."""
    if not sources.evidence.has(dataset):
        return []
    splits = sources.evidence.description(dataset)["splits"]
    train, test = (splits[name]["counts"] for name in ("train", "test"))
    accuracy = 100 * test[train.index(max(train))] / sum(test)
    return [
        {"dataset": dataset, "model": MAJORITY, "metric": metric, "mean": accuracy, "sd": float("nan"), "n": 1,
         "printed": float("nan"), "data": sources.evidence.data(dataset)}
        for metric in ("accuracy", "recall")
    ]  # fmt: skip


def table3_frame(sources: Sources) -> pd.DataFrame:
    """Sepsis results, one block of rows per cohort; `printed_sd` is the spread that the paper prints."""

    def printed(model: str, metric: str) -> float:
        return printed_value(sources.printed_values, "table3", model, metric)[0]

    rows: list[dict[str, Any]] = []
    for dataset in sources.evidence.expected:
        further = [model for model in _models(sources, dataset) if model not in TABLE3_MODELS]
        rows += _result_rows(sources, dataset, TABLE3_MODELS + further, TABLE3_METRICS, printed)
    frame = pd.DataFrame(rows)
    pairs = zip(frame["model"], frame["metric"], strict=True)
    frame["printed_sd"] = [printed_value(sources.printed_values, "table3", model, metric)[1] for model, metric in pairs]
    return frame


def sepsis_frame(sources: Sources) -> pd.DataFrame:
    """All cohorts and models of sepsis detection: columns of table 3 without the paper's, and low and high, the limits of the
    95 % interval by patient of the metrics that have one.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        if evidence.has(dataset):
            rows += _result_rows(sources, dataset, _models(sources, dataset), SEPSIS_METRICS, lambda *_: float("nan"))
    frame = pd.DataFrame(rows, columns=["dataset", "model", "metric", "mean", "sd", "n", "data"])
    limits = [
        evidence.frame(dataset, "intervals.csv").assign(dataset=dataset)
        for dataset in evidence.expected
        if evidence.has(dataset)
    ]
    if not limits:
        return frame.assign(low=[], high=[])
    drawn = pd.concat(limits)
    own = drawn[drawn["other"].isna()][["dataset", "model", "metric", "low", "high"]]
    return frame.merge(own, how="left", on=["dataset", "model", "metric"])


def table2_frame(sources: Sources) -> pd.DataFrame:
    """Class indices, labels and colours of the paper's table 2."""
    rows = [
        {"dataset": key, "index": index, "label": label, "colour": CLASS_COLOURS[index]}
        for key, labels in CLASS_LABELS.items()
        for index, label in enumerate(labels)
    ]
    return pd.DataFrame(rows)


def read_choices(path: Path) -> pd.DataFrame:
    """What the paper leaves open: setting (dotted, empty where the code decides), question, reason."""
    frame = pd.read_csv(path, keep_default_na=False)
    expected = ["setting", "question", "reason"]
    if list(frame) != expected:
        raise InputError(f"{path}: expected the columns {expected}, found {list(frame)}")
    return frame


def choices_frame(sources: Sources) -> pd.DataFrame:
    """What the paper leaves open: setting, the question, its value, the reason.

    The value is what the runs recorded, in the settings for datasets and settings without a record. A choice without a setting
    is one of the code's. Raises InputError if a row names a setting that is not there.
    """
    evidence = sources.evidence
    recorded = {
        key: [
            r["settings"] | r.get("evaluation", {}).get("settings", {}) for r in evidence.runs(key) if "settings" in r
        ]
        for key in evidence.at_hand()
    }
    rows = []
    for row in sources.choices.to_dict("records"):
        value = setting_text(row["setting"], sources.settings, recorded) if row["setting"] else "in the code"
        rows.append({"setting": row["setting"], "question": row["question"], "value": value, "reason": row["reason"]})
    return pd.DataFrame(rows, columns=["setting", "question", "value", "reason"])


def setting_text(setting: str, settings: Mapping[str, Any], recorded: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Value of a dotted setting, followed by the values that differ from it, each after the name of its dataset.

    Args:
        recorded: by dataset, the settings of its runs; where they hold the setting, they count, not `settings`.
    """
    base = _lookup(settings, setting)
    if base is _ABSENT:
        raise InputError(
            f"workflow/config/choices.csv: the setting {setting!r} is not in the settings; "
            f"name one of theirs ({', '.join(sorted(settings))}, with dots below) or remove the row"
        )
    texts = [_plain(base)]
    for key, entry in settings["datasets"].items():
        found = [_lookup(own, setting) for own in recorded.get(key, [])]
        found = [value for value in found if not any(_is_part(value, block) for block in found)]
        values = list(dict.fromkeys(_plain(_filled(value, base)) for value in found if value is not _ABSENT))
        if not values and (value := _lookup(entry["overrides"], setting)) is not _ABSENT:
            values = [_plain(value)]
        if values and values != texts[:1]:
            texts.append(f"{key}: {' or '.join(values)}")
    return "; ".join(texts)


def _is_part(value: Any, block: Any) -> bool:
    """Whether a recorded block of settings is what another run recorded and less: it read fewer of them."""
    return isinstance(value, Mapping) and isinstance(block, Mapping) and value.items() < block.items()


def _filled(value: Any, base: Any) -> Any:
    """A recorded block of settings in the order of today's, with the settings that joined the block since."""
    return {**base, **value} if isinstance(value, Mapping) and isinstance(base, Mapping) else value


_ABSENT = object()


def _lookup(settings: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        if not isinstance(settings, Mapping) or key not in settings:
            return _ABSENT
        settings = settings[key]
    return settings


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(item) for item in value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


QUANTITIES = [
    "Data", "Samples", "Recordings", "Classes", "Split", "Split train", "Split val", "Split test", "Split all",
    "Cohort", "Exclusions", "Lacking", "Files", "Licence, access",
]  # fmt: skip


# Where the figures that the paper states belong.
STATED = [
    ("Samples", "images"), ("Recordings", "recordings"), ("Classes", "classes"), ("Split train", "training images"),
    ("Split test", "test images"),
]  # fmt: skip


def datasets_frame(sources: Sources) -> pd.DataFrame:
    """Datasets as used: columns dataset, quantity, ours, paper (the figure the paper states, or empty)."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:

        def stated(quantity: str, dataset: str = dataset) -> str:
            value = printed_value(sources.printed_values, "text", dataset, quantity)[0]
            return "" if pd.isna(value) else f"{value:,.0f}"

        if not evidence.has(dataset):
            rows.append({"dataset": dataset, "quantity": "Data", "ours": evidence.not_run(dataset), "printed": ""})
            rows += [
                {"dataset": dataset, "quantity": quantity, "ours": "not run", "printed": f"{stated(key)} {key}"}
                for quantity, key in STATED
                if stated(key)
            ]
            continue
        for quantity, ours, paper in _described(evidence.description(dataset), stated):
            rows.append({"dataset": dataset, "quantity": quantity, "ours": ours, "printed": paper})
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "printed"])


def _described(content: Mapping[str, Any], stated: Callable[[str], str]) -> list[tuple[str, str, str]]:
    # The splits of recordings are the whole ("all") and its test folds, those of other kinds are disjoint.
    whole = {name: split for name, split in content["splits"].items() if name == "all"} or content["splits"]
    unit = {"images": "images", "signals": "epochs", "recordings": "hours"}[content["kind"]]
    sizes = {name: int(split["n"]) for name, split in whole.items()}
    people = {
        name: sum(int(split.get(name, 0)) for split in whole.values())
        for name in ("recordings", "subjects")
        if any(name in split for split in whole.values())
    }
    usable = [step["n"] for step in content.get("flow", []) if step["step"] == "usable"]
    people = {"recordings": usable[0]} | people if usable else people
    recordings = stated("recordings")
    train = stated("share for training")
    rows = [
        ("Data", f"{content['title']}, version {content['version']}", ""),
        ("Samples", f"{sum(sizes.values()):,} {unit}", stated(unit)),
        (
            "Recordings",
            ", ".join(f"{n:,} {name}" for name, n in people.items()),
            recordings and f"{recordings} recordings",
        ),
        ("Classes", str(len(content["classes"])), stated("classes")),
        ("Split", str(content["split_rule"]), train and f"{train} % for training"),
    ]
    for name, split in whole.items():
        share = _shares(content["classes"], split["counts"])
        printed = stated({"train": "training images", "test": "test images"}.get(name, name))
        rows.append((f"Split {name}", f"{split['n']:,}: {share}", printed))
    excluded = "; ".join(f"{item['reason']}: {item['count']:,}" for item in content["exclusions"])
    steps = [f"{step['n']:,} {step['unit']}: {step['step']}" for step in content.get("flow", [])]
    rows += [
        ("Cohort", "; ".join(steps), ""),
        ("Exclusions", excluded or "none", ""),
        ("Lacking", ", ".join(content.get("lacking", [])), ""),
        ("Files", _files(content["files"]), ""),
        ("Licence, access", f"{content['licence']}; {content['access']}", ""),
    ]
    return [row for row in rows if row[1] or row[2]]


def _shares(classes: Sequence[str], counts: Sequence[int]) -> str:
    total = sum(counts)
    shares = [f"{100 * count / total:.1f} %" for count in counts] if total else []
    if shares and len(set(shares)) == 1:
        return f"{shares[0]} each"
    return ", ".join(f"{name} {share}" for name, share in zip(classes, shares, strict=False))


def _files(files: Sequence[Mapping[str, Any]], shown: int = 2) -> str:
    """Each file with the beginning of its checksum; of many, their number, size and one checksum over all of theirs."""
    if len(files) <= shown:
        return "; ".join(f"{item['file']} ({str(item['checksum'])[:19]})" for item in files)
    lines = "".join(f"{item['file']} {item['checksum']}\n" for item in files)
    total = sum(int(item["size"]) for item in files) / 1e6
    return f"{len(files):,} files, {total:,.1f} MB (sha256 of their list: {hashlib.sha256(lines.encode()).hexdigest()[:12]})"


def compute_frame(sources: Sources) -> pd.DataFrame:
    """Compute used, from the run records: one row per dataset and model; seconds and MB per run, pairs per run."""
    evidence = sources.evidence
    columns = [
        "dataset", "model", "hardware", "device", "threads", "n", "seconds", "seconds_sd", "peak_memory_mb", "pairs",
        "data",
    ]  # fmt: skip
    rows = []
    for dataset in evidence.expected:
        records = evidence.runs(dataset)
        for model in sorted({run_model(r) for r in records}, key=_model_order):
            mine = [r for r in records if run_model(r) == model]
            seconds, sd, n = spread(r["wall_seconds"] for r in mine)
            memory = [r["peak_memory_mb"] for r in mine if r["peak_memory_mb"] is not None]
            pairs = [r["pairs"] for r in mine if r["pairs"] is not None]
            shared = [", ".join(sorted({str(r[key]) for r in mine})) for key in ("hardware", "device", "threads")]
            row = [
                dataset,
                model,
                *shared,
                n,
                seconds,
                sd,
                max(memory, default=None),
                spread(pairs)[0] if pairs else None,
            ]
            rows.append([*row, evidence.data(dataset)])
        if not records:
            rows.append([dataset, None, "", "", "", 0, None, None, None, None, evidence.data(dataset)])
    return pd.DataFrame(rows, columns=columns)


RULE_METRICS = {
    "multiclass": {"decision": "accuracy", "ranking": "roc_auc", "calibration": "ece"},
    "binary": {"decision": "f1", "ranking": "auroc", "calibration": "ece"},
}


def rules_frame(sources: Sources) -> pd.DataFrame:
    """The four decision rules of Collaborative Inference; fractions; columns as in table 1, and rule.

    A dataset that was not run has one row, without model, rule and metric.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            rows.append({"dataset": dataset, "n": 0, "data": evidence.data(dataset)})
            continue
        frame = evidence.frame(dataset, "metrics.csv")
        metrics = RULE_METRICS["multiclass" if (frame["metric"] == "accuracy").any() else "binary"]
        for model in CLAI:
            for rule in RULES:
                chosen = frame[(frame["model"] == model) & (frame["rule"] == rule)]
                for metric in metrics.values():
                    mean, sd, n = spread(replicates(chosen[chosen["metric"] == metric]))
                    rows.append({
                        "dataset": dataset, "model": model, "rule": rule, "metric": metric,
                        "mean": mean, "sd": sd, "n": n, "data": evidence.data(dataset),
                    })  # fmt: skip
    return pd.DataFrame(rows, columns=["dataset", "model", "rule", "metric", "mean", "sd", "n", "data"])


ABLATION_METRICS = [
    Metric("accuracy", "Accuracy", True),
    Metric("macro_f1", "Macro F1", True),
    Metric("roc_auc", "ROC-AUC", True),
    Metric("ece", "ECE", False),
    Metric("ece_scaled", "ECE, scaled", False),
]
TRAINING_METRICS = [
    Metric("alignment", "Alignment", False),
    Metric("centred_alignment", "Centred alignment", False),
    Metric("above_floor", "Loss $-$ floor", False),
]


def ablation_frame(sources: Sources) -> pd.DataFrame:
    """Kernel against target: test metrics of each decision rule, and how training ended (rule empty).

    Columns: dataset (the study), model (the cell), kernel, target, rule, metric, mean, sd, n, low, high (95 % t-interval of the
    mean over seeds), data. Accuracies, F1 and ROC-AUC in per cent.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        metrics, history = evidence.frame(study, "metrics.csv"), evidence.frame(study, "history.csv")
        last = history.sort_values("epoch").groupby(["model", "seed"], as_index=False).last()
        last["above_floor"] = last["loss"] - last["floor"]
        for model in sorted(set(metrics["model"]), key=_cell_order):
            kernel, target = model.split("_")
            parts = [
                (rule, metric, replicates(_of(metrics, model, rule, metric.key)) * metric.scale)
                for rule in RULES
                for metric in ABLATION_METRICS
            ]
            own = last[last["model"] == model].set_index("seed")
            parts += [("", metric, own[metric.key]) for metric in TRAINING_METRICS]
            for rule, metric, values in parts:
                around, (mean, sd, n) = interval(values), spread(values)
                rows.append({
                    "dataset": study, "model": model, "kernel": kernel, "target": target, "rule": rule,
                    "metric": metric.key, "mean": mean, "sd": sd, "n": n, "low": around.low, "high": around.high,
                    "data": evidence.data(study),
                })  # fmt: skip
    columns = ["dataset", "model", "kernel", "target", "rule", "metric", "mean", "sd", "n", "low", "high", "data"]
    return pd.DataFrame(rows, columns=columns)


def _of(metrics: pd.DataFrame, model: str, rule: str, metric: str) -> pd.DataFrame:
    chosen = (metrics["model"] == model) & (metrics["rule"] == rule) & (metrics["metric"] == metric)
    return metrics[chosen]


def _cell_order(cell: str) -> list[int]:
    known = list(VARIANT_TITLES)
    return [known.index(part) if part in known else len(known) for part in cell.split("_")]


def _models(sources: Sources, dataset: str) -> list[str]:
    return sorted(set(sources.evidence.frame(dataset, "metrics.csv")["model"]), key=_model_order)


def _model_order(model: str) -> tuple[int, str]:
    known = list(MODELS)
    return (known.index(model) if model in known else len(known), model)


# --- LaTeX ------------------------------------------------------------------------------------------------------------

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
    "μ": r"$\mu$", "φ": r"$\phi$",
}  # fmt: skip


def escape(text: str) -> str:
    """Text in LaTeX, with its special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _paragraphs(*cells: str) -> str:
    """A row of paragraph cells: escaped, ragged, with breaks allowed inside long names and paths."""
    broken = [re.sub(r"(\\_|[/:=](?=\S)|\.(?=[a-z]))", r"\1\\allowbreak{}", escape(cell)) for cell in cells]
    return " & ".join(rf"\raggedright {cell}" for cell in broken) + " \\tabularnewline\n"


def _float(body: str, columns: str, text: str, label: str, mini: bool, part: str = "") -> str:
    """A table* float no wider than the line; `body` from the first \\toprule to the last \\bottomrule."""
    n_columns = len(re.sub(r"p\{[^}]*\}", "p", re.sub(r"@\{[^}]*\}", "", columns)))
    mark = rf"\multicolumn{{{n_columns}}}{{c}}{{\textbf{{Miniature synthetic data}}}} \\" + "\n" if mini else ""
    return (
        "\\begin{table*}[tp]\n\\centering\n\\footnotesize\n\\setlength{\\tabcolsep}{4pt}\n"
        + ("\\addtocounter{table}{-1}\n" if part else "")
        + f"\\caption{{{escape(text)}{part}}}\n"
        + (f"\\label{{{label}}}\n" if not part else "")
        + "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{columns}}}\n{mark}{body}\\end{{tabular}}}}\n\\end{{table*}}\n"
    )


HEADER = "% Needs \\usepackage{booktabs}, {multirow}, {graphicx} and {xcolor}. Generated: edit nothing here.\n"


def _row(*cells: str) -> str:
    return " & ".join(cells) + r" \\" + "\n"


def _not_run_row(label: str, text: str, span: int) -> str:
    return _row("", label, rf"\multicolumn{{{span}}}{{l}}{{\emph{{{escape(text)}}}}}")


def _values(rows: pd.DataFrame, metrics: Sequence[Metric], mean: str, sd: str | None) -> list[str]:
    means = dict(zip(rows["metric"], rows[mean], strict=True))
    deviations = dict(zip(rows["metric"], rows[sd], strict=True)) if sd else {}
    return [number(means.get(m.key, float("nan")), deviations.get(m.key, float("nan")), m.digits) for m in metrics]


def _block(title: str, lines: Sequence[str]) -> str:
    """Rows whose empty first cell becomes one cell over all of them."""
    first = rf"\multirow{{{len(lines)}}}{{*}}{{{escape(title)}}}"
    return first + "".join(lines)


def _table1_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence, metrics = sources.evidence, TABLE1_METRICS
    body = "\\toprule\n" + _row("Dataset", "Model", *(escape(metric.title) for metric in metrics))
    for dataset in evidence.expected:
        rows = frame[frame["dataset"] == dataset]
        wanted, title = evidence.expected[dataset]["title"], evidence.title(dataset)
        paper = "Paper" if title == wanted else f"Paper, on {wanted}"
        lines = [_row("", escape(paper), *_values(rows[rows["model"] == CLAI[0]], metrics, "printed", None))]
        if evidence.has(dataset):
            for model in [*TABLE1_MODELS, MAJORITY]:
                mine = rows[rows["model"] == model]
                lines.append(_row("", escape(model_title(model)), *_values(mine, metrics, "mean", "sd")))
        else:
            lines.append(_not_run_row("This work", evidence.not_run(dataset), len(metrics)))
        body += "\\midrule\n" + _block(title, lines)
    return _float(body + "\\bottomrule\n", "ll" + "c" * len(metrics), text, "tab:results", evidence.miniature)


def _table3_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence, metrics = sources.evidence, TABLE3_METRICS
    body = "\\toprule\n" + _row("Cohort", "Model", *(escape(metric.title) for metric in metrics))
    first = frame[frame["dataset"] == next(iter(evidence.expected))]
    printed = [
        model for model in first["model"].unique() if first.loc[first["model"] == model, "printed"].notna().any()
    ]
    lines = [
        _row("", escape(model_title(m)), *_values(first[first["model"] == m], metrics, "printed", "printed_sd"))
        for m in printed
    ]
    body += "\\midrule\n" + _block("MIMIC-IV, the paper's values", lines)
    for dataset in evidence.expected:
        rows = frame[frame["dataset"] == dataset]
        if evidence.has(dataset):
            lines = [
                _row("", escape(model_title(m)), *_values(rows[rows["model"] == m], metrics, "mean", "sd"))
                for m in rows["model"].unique()
            ]
        else:
            lines = [_not_run_row("This work", evidence.not_run(dataset), len(metrics))]
        body += "\\midrule\n" + _block(evidence.title(dataset), lines)
    columns = "ll" + "c" * len(metrics)
    return _float(body + "\\bottomrule\n", columns, text, "tab:detection_UQ_experiments", evidence.miniature)


def _table2_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    heads = [rf"\multicolumn{{3}}{{c}}{{{escape(CLASS_TITLES[key])}}}" for key in CLASS_LABELS]
    trims = ["r", *["lr"] * (len(heads) - 2), "l"]
    rules = " ".join(rf"\cmidrule({trim}){{{3 * i + 1}-{3 * i + 3}}}" for i, trim in enumerate(trims))
    body = "\\toprule\n" + _row(*heads) + rules + "\n" + _row(*["Idx", "Label", "Colour"] * len(heads)) + "\\midrule\n"
    for index in range(max(map(len, CLASS_LABELS.values()))):
        cells: list[str] = []
        for key in CLASS_LABELS:
            found = frame[(frame["dataset"] == key) & (frame["index"] == index)]
            if found.empty:
                cells += ["", "", ""]
            else:
                colour = str(found["colour"].iloc[0]).lstrip("#").upper()
                swatch = rf"\textcolor[HTML]{{{colour}}}{{\rule{{0.8em}}{{0.8em}}}}"
                cells += [str(index), escape(str(found["label"].iloc[0])), swatch]
        body += _row(*cells)
    return _float(body + "\\bottomrule\n", "clc" * len(heads), text, "tab:class_mappings", sources.evidence.miniature)


def _choices_tex(frame: pd.DataFrame, sources: Sources, text: str, rows_per_part: int = 14) -> str:
    columns = "p{3.2cm}p{3.6cm}p{3.2cm}p{7cm}"
    parts = []
    for start in range(0, max(len(frame), 1), rows_per_part):
        body = "\\toprule\n" + _row("Setting", "What the paper leaves open", "Value", "Reason") + "\\midrule\n"
        for row in frame.iloc[start : start + rows_per_part].to_dict("records"):
            body += _paragraphs(*(row[key] for key in ("setting", "question", "value", "reason")))
        part = " (continued)" if start else ""
        shown = text if not start else text.split(". ")[0].rstrip(".")
        parts.append(_float(body + "\\bottomrule\n", columns, shown, "tab:choices", sources.evidence.miniature, part))
    return "\n".join(parts)


def _datasets_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    datasets = list(sources.evidence.expected)
    body = (
        "\\toprule\n" + _row("", *(escape(sources.evidence.expected[key]["title"]) for key in datasets)) + "\\midrule\n"
    )
    for quantity in sorted(frame["quantity"].unique(), key=QUANTITIES.index):
        cells = []
        for dataset in datasets:
            found = frame[(frame["dataset"] == dataset) & (frame["quantity"] == quantity)]
            texts = [
                f"{row['ours']} (paper: {row['printed']})".strip() if row["printed"] else row["ours"]
                for row in found.to_dict("records")
            ]
            cells.append(texts[0] if texts else "")
        body += _paragraphs(quantity, *cells)
    columns = "p{2.2cm}" + "p{3.1cm}" * len(datasets)
    return _float(body + "\\bottomrule\n", columns, text, "tab:datasets", sources.evidence.miniature)


def _compute_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence = sources.evidence
    heads = ["Runs", "Seconds per run", "Peak memory (MB)", "Pairs per run", "Threads", "Device", "Hardware"]
    body = "\\toprule\n" + _row("Data", "Model", *heads)
    for dataset in evidence.expected:
        lines = []
        for row in frame[frame["dataset"] == dataset].to_dict("records"):
            if row["n"] == 0:
                lines.append(_not_run_row("", row["data"], len(heads)))
                continue
            texts = [escape(str(row[key])) for key in ("threads", "device", "hardware")]
            seconds = number(row["seconds"], row["seconds_sd"], 1)
            memory = number(row["peak_memory_mb"], float("nan"), 0)
            model = escape(model_title(row["model"]))
            lines.append(_row("", model, str(row["n"]), seconds, memory, _scientific(row["pairs"]), *texts))
        body += "\\midrule\n" + _block(evidence.title(dataset), lines)
    return _float(body + "\\bottomrule\n", "llccccccl", text, "tab:compute", evidence.miniature)


def costs_frame(sources: Sources) -> pd.DataFrame:
    """The benchmark's comparisons: columns of `clai.benchmark.analysis.comparisons`, and dataset, model, data."""
    evidence = sources.evidence
    (dataset,) = evidence.expected
    frame = analysis.comparisons(evidence.frame(dataset, "benchmark.csv"))
    return frame.assign(dataset=dataset, model="measurements", data=evidence.data(dataset))


def _costs_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence = sources.evidence
    (dataset,) = evidence.expected
    heads = ["Size", "First", "Second", "Of the first", "Of the second", "Ratio (range)", "Counted"]
    body = "\\toprule\n" + _row("Compared", *heads)
    if not evidence.has(dataset):
        body += "\\midrule\n" + _row(
            rf"\multicolumn{{{len(heads) + 1}}}{{l}}{{\emph{{{escape(evidence.not_run(dataset))}}}}}"
        )
    for quantity, part in frame.groupby("quantity", sort=False):
        body += "\\midrule\n" + _row(rf"\multicolumn{{{len(heads) + 1}}}{{l}}{{{analysis.QUANTITIES[str(quantity)]}}}")
        for row in part.to_dict("records"):
            names = [escape(analysis.VARIANT_TITLES[row[side]]) for side in ("first", "second")]
            shown = [_significant(row[side]) for side in ("first_value", "second_value")]
            ratio = "--" if pd.isna(row["ratio"]) else f"{row['ratio']:.2f}"
            if not pd.isna(row["n"]) and row["n"] > 1:
                ratio += f" ({row['low']:.2f}--{row['high']:.2f})"
            counted = "--" if pd.isna(row["counted"]) else f"{row['counted']:.2f}"
            size = escape(str(row["setting"]).replace(";", ", "))
            body += _row(escape(row["comparison"]), size, *names, *shown, ratio, counted)
    for record in evidence.runs(dataset):
        body += "\\midrule\n" + _row(
            rf"\multicolumn{{{len(heads) + 1}}}{{l}}{{Device: {record['device']}; threads: {record['threads']}}}"
        )
    return _float(body + "\\bottomrule\n", "llllrrrr", text, "tab:costs", evidence.miniature)


def _significant(value: float) -> str:
    if pd.isna(value):
        return "--"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e3 else f"{value:.0f}" if value >= 1e3 else _scientific(value)


def _scientific(value: float) -> str:
    if pd.isna(value) or value == 0:
        return "--"
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa}\times 10^{{{int(exponent)}}}$"


def _rules_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence = sources.evidence
    body = "\\toprule\n" + _row("Data", "Model", "Decision rule", "Accuracy, or F1 (binary)", "ROC-AUC", "ECE")
    for dataset in evidence.expected:
        rows = frame[frame["dataset"] == dataset]
        lines = []
        if not evidence.has(dataset):
            lines = [_not_run_row("", evidence.not_run(dataset), 4)]
        else:
            for (model, rule), part in rows.groupby(["model", "rule"], sort=False):
                cells = [number(mean, sd, 3) for mean, sd in zip(part["mean"], part["sd"], strict=True)]
                lines.append(_row("", escape(model_title(str(model))), str(rule), *cells))
        body += "\\midrule\n" + _block(evidence.title(dataset), lines)
    return _float(body + "\\bottomrule\n", "llcccc", text, "tab:rules", evidence.miniature)


def _sepsis_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence = sources.evidence
    body = "\\toprule\n" + _row("Cohort", "Model", *(escape(metric.title) for metric in SEPSIS_METRICS))
    for dataset in evidence.expected:
        if not evidence.has(dataset):
            lines = [_not_run_row("", evidence.not_run(dataset), len(SEPSIS_METRICS))]
        else:
            lines = []
            for model, part in frame[frame["dataset"] == dataset].groupby("model", sort=False):
                cells = []
                limits = part[["mean", "sd", "low", "high"]].to_numpy(dtype=float)
                for metric, (mean, sd, low, high) in zip(part["metric"], limits, strict=True):
                    digits = 5 if metric in FINE else 3
                    between = "" if np.isnan(low) else f" [{low:.{digits}f}, {high:.{digits}f}]"
                    cells.append(number(mean, sd, digits) + between)
                lines.append(_row("", escape(model_title(str(model))), *cells))
        body += "\\midrule\n" + _block(evidence.title(dataset), lines)
    columns = "ll" + "c" * len(SEPSIS_METRICS)
    return _float(body + "\\bottomrule\n", columns, text, "tab:sepsis", evidence.miniature)


def _ablation_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    evidence = sources.evidence
    others = [f"Accuracy, {rule}" for rule in RULES[1:]]
    heads = [*(m.title for m in ABLATION_METRICS), *others, *(m.title for m in TRAINING_METRICS)]
    body = "\\toprule\n" + _row("Kernel", "Target", *heads)
    for study in evidence.expected:
        body += "\\midrule\n"
        if not evidence.has(study):
            body += _row(rf"\multicolumn{{{len(heads) + 2}}}{{l}}{{\emph{{{escape(evidence.not_run(study))}}}}}")
            continue
        epochs = int(evidence.frame(study, "history.csv")["epoch"].max())
        widths = sorted({run["settings"]["encoder"]["width"] for run in evidence.runs(study)})
        title = escape(f"{evidence.data(study)}: encoder width {', '.join(map(str, widths))}, {epochs} epochs")
        body += _row(rf"\multicolumn{{{len(heads) + 2}}}{{l}}{{{title}}}")
        of_study = frame[frame["dataset"] == study]
        for kernel, part in of_study.groupby("kernel", sort=False):
            lines = []
            for target, cell in part.groupby("target", sort=False):
                cells = _values(cell[cell["rule"] == "printed"], ABLATION_METRICS, "mean", "sd")
                for rule in RULES[1:]:
                    cells += _values(cell[cell["rule"] == rule], ABLATION_METRICS[:1], "mean", "sd")
                cells += _values(cell[cell["rule"] == ""], TRAINING_METRICS, "mean", "sd")
                lines.append(_row("", str(target), *cells))
            body += _block(VARIANT_TITLES.get(str(kernel), str(kernel)), lines)
    return _float(body + "\\bottomrule\n", "ll" + "c" * len(heads), text, "tab:ablation", evidence.miniature)


TABLES: dict[str, tuple[Callable[[Sources], pd.DataFrame], Callable[[pd.DataFrame, Sources, str], str]]] = {
    "table1": (table1_frame, _table1_tex),
    "table2": (table2_frame, _table2_tex),
    "table3": (table3_frame, _table3_tex),
    "tableS1": (choices_frame, _choices_tex),
    "tableS2": (datasets_frame, _datasets_tex),
    "tableS3": (compute_frame, _compute_tex),
    "tableS4": (rules_frame, _rules_tex),
    "tableS5": (ablation_frame, _ablation_tex),
    "tableS6": (sepsis_frame, _sepsis_tex),
    "tableS7": (costs_frame, _costs_tex),
}


def render(name: str, sources: Sources, fixed_caption: str) -> Table:
    """One of `TABLES`, with its caption and the records of the runs that its numbers rest on."""
    make_frame, make_tex = TABLES[name]
    frame = make_frame(sources)
    runs = sources.evidence.runs_behind(frame) if "model" in frame else []
    if name == "tableS1":
        runs = [record for dataset in sources.evidence.at_hand() for record in sources.evidence.runs(dataset)]
    text = caption(fixed_caption, sources.evidence, runs)
    return Table(frame, HEADER + make_tex(frame, sources, text), text, runs)


# --- Markdown ---------------------------------------------------------------------------------------------------------

README_TABLES: list[tuple[str, str, list[str], list[str]]] = [
    ("table1", "Multiclass (accuracy and ROC-AUC in per cent)", ["pathmnist", "cifar10", "sleepedf"],
     ["accuracy", "roc_auc", "ece"]),
    ("table3", "Sepsis detection (the paper's values are on MIMIC-IV)", ["mimic-iv", "challenge2019"],
     ["auroc", "auprc", "f1", "ece"]),
]  # fmt: skip
README_MARKERS = ("<!-- results:begin -->", "<!-- results:end -->")


def readme_results(evidence: Evidence, printed_values: pd.DataFrame) -> str:
    """The README's results: paper, ours as mean (sd) over n seeds or folds, data, hardware and command."""
    blocks = []
    for name, heading, datasets, keys in README_TABLES:
        part = Evidence(evidence.root, {key: evidence.expected[key] for key in datasets}, evidence.available)
        sources = Sources(part, printed_values, pd.DataFrame(), {})
        frame = TABLES[name][0](sources)
        metrics = [m for m in (TABLE1_METRICS if name == "table1" else TABLE3_METRICS) if m.key in keys]
        heads = ["Data", "Model", *(f"{m.title}: paper | {m.title}: ours" for m in metrics), "n", "Hardware", "Command"]
        lines = [f"**{heading}**", "", "| " + " | ".join(heads) + " |"]
        lines.append("|" + " --- |" * lines[-1].count(" |"))
        for dataset in part.expected:
            lines += _readme_rows(part, frame[frame["dataset"] == dataset], dataset, metrics)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _readme_rows(evidence: Evidence, frame: pd.DataFrame, dataset: str, metrics: Sequence[Metric]) -> list[str]:
    lines = []
    for model in frame["model"].unique():
        rows = frame[frame["model"] == model]
        pairs = zip(_values(rows, metrics, "printed", None), _values(rows, metrics, "mean", "sd"), strict=True)
        cells = [evidence.title(dataset), model_title(model), *(cell for pair in pairs for cell in pair)]
        records = evidence.runs(dataset, [model])
        n = int(rows["n"].max())
        if n == 0 and (evidence.has(dataset) or rows["printed"].isna().all()):
            continue
        commands = sorted({str(r["command"]) for r in records})
        more = f" and {len(commands) - 1} alike" if len(commands) > 1 else ""
        cells += [str(n), "; ".join(sorted({str(r["hardware"]) for r in records}))]
        if model == MAJORITY:
            cells[-2:] = ["--", "--", "class counts of the prepared data"]
        else:
            cells.append(f"`{commands[0]}`{more}" if records else evidence.not_run(dataset))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def replace_results(readme: str, block: str) -> str:
    """README text with `block` between the results markers; raises InputError if they are not there, in order."""
    begin, end = (readme.find(marker) for marker in README_MARKERS)
    if not 0 <= begin < end:
        raise InputError(f"README.md: expected the lines {README_MARKERS[0]} and {README_MARKERS[1]}, in this order")
    return f"{readme[: begin + len(README_MARKERS[0])]}\n{block}\n{readme[end:]}"
