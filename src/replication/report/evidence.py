"""Evidence folders, read, and the rows of outputs that are made of them.

An evidence folder `<root>/<dataset>/evidence/` holds tidy CSV files (`runs.run.COLUMNS`), `dataset.json` and the records of
its runs (`replication.runs.run`). Every table, figure and verdict is a function of such folders. Rows of single patients are
shown and published only where the licence of their data is open.

Evidence is by `name` (a dataset or study) and `cell` (a model of a dataset, or a cell of a study). Outputs have the columns
`dataset` and `model`, in rows of a study `study` and `cell` as well, and `other` where a row is the model minus another one.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from clailearn.errors import InputError
from replication.metrics.intervals import interval, replicates
from replication.report.labels import MAJORITY, MODEL_OF, VARIANT_TITLES, Metric, model_title
from replication.runs.registry import MODELS, REPOSITORY_DATASETS, read_json
from replication.runs.run import COLUMNS, RUNS, SAMPLES, RunId, predictions_of, read_records

PRINTED_RULE, PRINTED_SHARES = "printed", "population"
"""The reading of inference that tables and claims take where they name no other: the printed sum over all references."""
SEPSIS_READINGS = {
    "mimic-recording-batches": ("mimic-iv", "one recording"),
    "recording-batches": ("challenge2019-septic", "one recording"),
    "mimic-sixteen-recordings": ("mimic-iv", "many recordings"),
    "sixteen-recordings": ("challenge2019-septic", "many recordings"),
}
"""Septic patients with the printed loss over all hours: a recording as a batch, as we read section IV-A, and the next reading.

With each the dataset of the same patients that has baselines on hours, and what it is called where it is not the paper's."""

SIGNALS = "signals.csv"
PATIENT_LEVEL = (SIGNALS, SAMPLES, predictions_of("*"))
"""Evidence files that show single patients. Labels and scores of images do not."""
PROJECTED = ("tsne.csv.gz", "stages.csv.gz")
"""Evidence files with a point a sample: drawn for the user under any licence, and published as the ones above."""
OPEN_LICENCES = {"CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "generated"}
"""Licences that allow passing on such rows, by their SPDX names. Under any other licence they are withheld."""


def is_open(licence: Any) -> bool:
    """Return whether a licence is known to allow passing on single rows."""
    return str(licence).replace(" ", "-") in OPEN_LICENCES


def withheld(file: Path, patterns: Iterable[str] = PATIENT_LEVEL) -> bool:
    """Return whether an evidence file shows single patients although the licence in the `dataset.json` beside it forbids it.

    patterns: of the names of files that show single patients.
    """
    if not any(fnmatchcase(file.name, pattern) for pattern in patterns):
        return False
    description = read_description(file.with_name("dataset.json"))
    return not is_open(description["licence"]) and (file.name == SIGNALS or description.get("kind") != "images")


def read_description(path: Path) -> dict[str, Any]:
    """Return a `dataset.json`; raises InputError where it is missing, is no JSON, or states no title or licence."""
    description = read_json(path)
    texts = [description.get(key) for key in ("title", "licence")] if isinstance(description, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{path}: found no title or no licence, expected both as texts. Compute this evidence again")
    return description


@cache
def _read_csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (ValueError, OSError, EOFError, zlib.error) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path}: cannot be read ({error}), expected a table; run its evaluation again") from error


_read_description, _read_records = cache(read_description), cache(read_records)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence folders below `root` of the datasets and studies in `expected`.

    Args:
        root: folder named by the evidence that it holds: `published`, `real` or `mini`.
        expected: by name its "title" and "needs", in the order of tables; of a study its "dataset" and "cells", by the name of
            a cell the variant of each factor; of some datasets "substitute_for", "raw_of" and "class_labels".
        available: names whose evidence may be read, `theory` among them.
        files: paths that may be read.
        recomputed: by name and file, frames that stand in place of CSV files.
    """

    root: Path
    expected: Mapping[str, Mapping[str, Any]]
    available: frozenset[str]
    files: frozenset[Path]
    recomputed: Mapping[str, Mapping[str, pd.DataFrame]] = field(default_factory=dict)

    @classmethod
    def found(cls, root: Path, expected: Mapping[str, Mapping[str, Any]]) -> "Evidence":
        """Return everything that lies below `root`."""
        return cls.of_files(root, expected, root.glob("*/evidence/*"))

    @classmethod
    def of_files(cls, root: Path, expected: Mapping[str, Mapping[str, Any]], files: Iterable[str | Path]) -> "Evidence":
        """Return the evidence in `files`; of several datasets of the same raw files one alone is expected in vain.

        What else earlier runs left below `root` is not read.
        """
        paths = frozenset(map(Path, files))
        available = frozenset(path.parent.parent.name for path in paths)
        lacking = expected.keys() - available
        shown = {
            name: entry for name, entry in expected.items() if name in available or entry.get("raw_of") not in lacking
        }
        return cls(root, shown, available, paths)

    @property
    def miniature(self) -> bool:
        """Return whether any dataset shown is synthetic, by the folder's name or by the dataset's own description."""
        return self.root.name == "mini" or any(self.description(name)["miniature"] for name in self.at_hand())

    def path(self, name: str, file: str) -> Path:
        """Return the path of a file of the evidence of a name, whether it is there or not.

        Raises:
            InputError: it is there, and the output that is rendered does not name it.
        """
        path = self.root / name / "evidence" / file
        if self.has(name) and path not in self.files and path.exists():
            raise InputError(f"{path}: outputs.yaml does not name {file} for this output; add it to its `files`")
        return path

    def has(self, name: str) -> bool:
        """Return whether a dataset or study has evidence that may be read."""
        return name in self.available

    def at_hand(self) -> list[str]:
        """Return the expected names that have evidence, in the order of tables."""
        return [name for name in self.expected if self.has(name)]

    def stand_ins(self, dataset: str) -> list[str]:
        """Return the dataset, or where it has no evidence its substitutes that have some, if there are any."""
        if self.has(dataset):
            return [dataset]
        others = [name for name, entry in self.expected.items() if entry.get("substitute_for") == dataset]
        return [name for name in others if self.has(name)] or [dataset]

    def shown(self) -> list[str]:
        """Return the expected names in the order of tables, each substitute in place of its dataset or left out."""
        expected = self.expected.items()
        shown = [name for name, entry in expected if entry.get("substitute_for") not in self.expected]
        return [other for name in shown for other in self.stand_ins(name)]

    def dataset_of(self, name: str) -> str:
        """Return the dataset of a study; a dataset is its own."""
        return str(self.expected.get(name, {}).get("dataset", name))

    def is_substitute(self, name: str) -> bool:
        """Return whether the data of a dataset or study stand in for other ones."""
        return "substitute_for" in self.expected.get(self.dataset_of(name), {})

    def not_run(self, name: str) -> str:
        """Return the text in place of evidence that is not there: what running the dataset or study needs."""
        return f"not run: needs {self.expected[name]['needs']}"

    def title(self, name: str) -> str:
        """Return the name of the data that were used, or of the expected data if they were not; a study's ends in its key."""
        study = f", study {name}" if self.has(name) and self.dataset_of(name) != name else ""
        return f"{self.data_title(name)}{study}"

    def data_title(self, name: str) -> str:
        """Return the title without the study's key."""
        return str((self.description(name) if self.has(name) else self.expected[name])["title"])

    def dataset_title(self, name: str) -> str:
        """Return the title of the dataset alone, without the number of samples, of what has evidence."""
        return str(self.expected.get(self.dataset_of(name), {}).get("title", self.data_title(name)))

    def model_title(self, name: str, cell: str) -> str:
        """Return the name of a model, or of a study's cell: the names of its variants."""
        variants = self.expected[name].get("cells", {}).get(cell, {}).values()
        return "; ".join(VARIANT_TITLES.get(variant, variant) for variant in variants) or model_title(cell)

    def description(self, name: str) -> dict[str, Any]:
        """Return the `dataset.json` of a name that has evidence; raise InputError if it is missing or damaged."""
        return dict(_read_description(self.path(name, "dataset.json")))

    def positive_class(self, name: str) -> str:
        """Return the positive class of the user's own data with two classes, which have evidence; nothing for other data."""
        classes = self.description(name).get("classes", [])
        return str(classes[1]) if len(classes) == 2 and self.dataset_of(name) not in REPOSITORY_DATASETS else ""

    def runs(self, name: str, cells: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the run records of a name, of these models or cells or of all, sorted by run; none if it has no evidence."""
        records = _read_records(self.path(name, RUNS)) if self.has(name) else []
        return [record for record in records if cells is None or run_cell(record) in cells]

    def frame(self, name: str, file: str) -> pd.DataFrame:
        """Return a CSV file of a name, with the columns of `COLUMNS`; an empty cell of `rule` or `shares` reads as "".

        The frame is empty if the name or the file is not there. It is also empty if the file shows single patients whose
        licence forbids passing them on, because git tracks the pictures drawn from it.

        Raises:
            InputError: a column is missing.
        """
        path = self.path(name, file)
        if not self.has(name) or not path.exists() or withheld(path):
            return pd.DataFrame(columns=COLUMNS[file])
        recomputed = self.recomputed.get(name, {})
        frame = (recomputed[file] if file in recomputed else _read_csv(path)).copy()
        missing = [column for column in COLUMNS[file] if column not in frame]
        if missing:
            raise InputError(f"{path}: columns {missing} are missing, found {list(frame)}; run its evaluation again")
        for column in [name for name in ("rule", "shares") if name in frame]:
            frame[column] = frame[column].fillna("").astype(str)
        return frame

    def table(self, file: str) -> pd.DataFrame:
        """Return a CSV file of all expected names below each other, with their column `name`; a column `model` is `cell` here."""
        frames = [self.frame(name, file).assign(name=name) for name in self.at_hand()]
        nothing = pd.DataFrame(columns=list(dict.fromkeys(["name", *COLUMNS[file]])))
        there = [frame for frame in frames if len(frame)] or [nothing]
        return pd.concat(there, ignore_index=True).rename(columns={"model": "cell"})

    def metrics(self, name: str) -> pd.DataFrame:
        """Return the metrics of a name under the printed reading; those of a model without references stay as they are."""
        frame = self.frame(name, "metrics.csv")
        return frame[printed_reading(frame)].drop(columns=["rule", "shares"])


def printed_reading(metrics: pd.DataFrame, rule: str = PRINTED_RULE, shares: str = PRINTED_SHARES) -> pd.Series:
    """Return which rows of metrics are of a decision rule and class shares, or of a model that has neither."""
    return metrics["rule"].fillna("").isin([rule, ""]) & metrics["shares"].fillna("").isin([shares, ""])


def run_name(record: Mapping[str, Any]) -> str:
    """Return the key of the dataset or study of a run record, whose folder holds its evidence."""
    return RunId.parse(record["run"]).name


def run_cell(record: Mapping[str, Any]) -> str:
    """Return the key of the model, or of the study's cell, of a run record."""
    return RunId.parse(record["run"]).cell


# Rows of outputs: means of evidence, and the columns that say what a row is of


def summary(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean, sd and n of each group over seeds or folds, and the limits low and high of the 95 % t-interval.

    Values of several seeds are averaged within a fold first, by `replicates`. A group has folds in all its rows, or in none.

    values: seed, fold, value and the columns `by`.
    """
    rows = []
    for key, part in values.dropna(subset="value").groupby(list(by), sort=False, dropna=False):
        own = replicates(part)
        around = interval(own)
        rows.append((*key, around.mean, own.std(), around.n, around.low, around.high))
    return pd.DataFrame(rows, columns=[*by, "mean", "sd", "n", "low", "high"])


def in_units(values: pd.DataFrame, metrics: Iterable[Metric], columns: Sequence[str] = ("value",)) -> pd.DataFrame:
    """Return the rows of some metrics in the units of tables; evidence has fractions."""
    scale = values["metric"].map({metric.key: metric.scale for metric in metrics})
    return values.assign(**{column: values[column] * scale for column in columns})[scale.notna()]


def identified(evidence: Evidence, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in the order of tables, with the columns of outputs in place of `name` and `cell`.

    In rows of a study `model` is the one of the paper that the cell stands for, if any. What the registry of models does not have
    is a cell, too.
    """
    pairs = list(zip(frame["name"], frame["cell"], strict=True))
    known = {pair: _identity(evidence, *pair) for pair in set(pairs)}
    columns = ["dataset", "study", "cell", "model", "order"]
    named = pd.DataFrame([known[pair] for pair in pairs], columns=columns, dtype=object)
    whole = named.join(frame.drop(columns=["name", "cell"]).reset_index(drop=True))
    return whole.sort_values("order", kind="stable").drop(columns="order").reset_index(drop=True)


def _identity(evidence: Evidence, name: str, cell: str) -> tuple[Any, ...]:
    """Return dataset, study, cell and model of a name and cell, and their rank in tables."""
    cells: Mapping[str, Mapping[str, str]] = evidence.expected[name].get("cells", {})
    variants, known = cells.get(cell, {}), list(cells or MODELS)
    behind = next((variants[factor] for factor in ("kernel", "method", "model") if factor in variants), cell)
    model = MODEL_OF.get(behind, behind)
    rank = (list(evidence.expected).index(name), known.index(cell) if cell in known else len(known))
    study, in_registry = name if cells else None, model in (*MODELS, MAJORITY)
    own = None if in_registry and not cells else cell
    return evidence.dataset_of(name), study, own, model if in_registry else None, rank


def owners(frame: pd.DataFrame) -> pd.DataFrame:
    """Return name, cell and `other` of the rows of an output: study and cell, or else dataset and model."""
    columns = frame.reindex(columns=["study", "dataset", "cell", "model", "other"]).astype(object)
    name, cell = columns["study"].fillna(columns["dataset"]), columns["cell"].fillna(columns["model"])
    return pd.DataFrame({"name": name, "cell": cell, "other": columns["other"]})


def runs_behind(evidence: Evidence, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the run records behind the rows of an output."""
    behind = owners(frame).dropna(subset="cell")
    records: list[dict[str, Any]] = []
    for name in [name for name in evidence.at_hand() if name in set(behind["name"])]:
        own = behind[behind["name"] == name]
        records += evidence.runs(name, [*own["cell"], *own["other"]])
    return records


def titles(evidence: Evidence, frame: pd.DataFrame) -> list[str]:
    """Return what each row of an output is of: a model, a cell by its variants, or one model minus another."""
    found = []
    for name, cell, other, model in owners(frame).assign(model=frame["model"]).itertuples(index=False):
        if isinstance(other, str):
            found.append(f"{model_title(model)} minus {model_title(other)}")
        else:
            found.append("" if pd.isna(cell) else evidence.model_title(name, cell))
    return found
