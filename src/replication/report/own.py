"""What the workflow says at the end about a user's own data: accuracy by model, the paths of outputs, and what to type next."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from replication.report.evidence import read_description
from replication.report.labels import METRICS, model_title
from replication.report.tables.layout import number
from replication.runs.outputs import packed_models
from replication.runs.registry import CLAI

SHOWN = ("accuracy", "roc_auc", "ece_scaled", "auroc", "auprc", "f1")
"""Metrics of the terminal, as many as `COLUMNS`, of those that the data have."""
COLUMNS = 3


def result(settings: Mapping[str, Any], name: str) -> str:
    """Return the result of a dataset of the user's own, whose outputs and models are there, as lines of text."""
    table = Path("paper_figures", "own", name, "table_accuracy")
    about = read_description(Path("results", "real", name, "evidence", "dataset.json"))
    frame = pd.read_csv(table.with_suffix(".csv")).reindex(columns=["model", "metric", "mean", "sd"])
    shown = [metric for metric in SHOWN if metric in set(frame["metric"])][:COLUMNS]
    rows = [["Model", *(f"{METRICS[metric].title}{' (%)' * METRICS[metric].percent}" for metric in shown)]]
    for model, own in frame.groupby("model", sort=False):
        found = own.set_index("metric").reindex(shown)
        cells = (number(found["mean"][key], METRICS[key], found["sd"][key]) for key in shown)
        rows.append([model_title(str(model)), *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines = [f"{about['title']}, test samples: mean (standard deviation) over seeds or folds", *aligned]
    if len(about["classes"]) == 2:
        lines.append(f"Positive class: {about['classes'][1]}")
    lines.append(f"Table: {table}.md, {table}.tex, {table}.csv; the figures are beside it")
    return "\n".join([*lines, *_next(settings, name, about)]) + "\n"


def _next(settings: Mapping[str, Any], name: str, about: Mapping[str, Any]) -> list[str]:
    if name not in packed_models(settings):
        return []
    model = Path("results", "real", name, "models", packed_models(settings)[name])
    path = settings["datasets"][name]["path"] or "<path>"
    readable = about["kind"] == "images" and about["source"] == "image_folder" and Path(path).expanduser().is_dir()
    table = about["kind"] == "features" and path.endswith((".csv", ".csv.gz"))
    votes = " --votes 3" if packed_models(settings)[name] in CLAI else ""  # others have no references
    if readable or table:
        use = f"clailearn predict {model} {shlex.quote(str(Path(path).expanduser()))}{votes}"
    elif about["kind"] == "features" or (about["kind"] == "images" and len(about["channels"]) in (1, 3)):
        use = f"clailearn predict {model} <{'pictures' if about['kind'] == 'images' else 'table.csv'}>{votes}"
    else:
        use = f"""python -c 'import clailearn; print(clailearn.load("{model}").inputs)'"""
    return [f"Model: {model}", f"Predict: {use}"]
