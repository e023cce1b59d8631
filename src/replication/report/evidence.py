"""Evidence folders, read.

An evidence folder `<root>/<dataset>/evidence/` holds tidy CSV files (`runs.run.COLUMNS`), `dataset.json` and the records of
its runs (`replication.runs.run`). Every table, figure and verdict is a function of such folders.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from clailearn.errors import InputError
from replication.report.labels import MODEL_OF, VARIANT_TITLES, model_title
from replication.report.patients import read_description, withheld
from replication.runs.run import COLUMNS, RUNS, RunId, read_records

PRINTED_RULE, PRINTED_SHARES = "printed", "population"
"""The reading of inference that tables and claims take where they name no other: the printed sum over all references."""
PRINTED_LOSS = {
    "challenge2019": ("printed-loss",),
    "challenge2019-septic": ("recording-batches", "printed-loss-septic"),
}
"""By cohort the studies that train CLaI with the printed loss, which weights all pairs alike; first the paper's batches."""


@cache
def _read_csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (ValueError, OSError, EOFError, zlib.error) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path}: cannot be read ({error}), expected a table; run its evaluation again") from error


_read_description, _read_records = cache(read_description), cache(read_records)


@dataclass(frozen=True)
class Evidence:
    """The evidence folders below `root` of the datasets in `expected`.

    Args:
        root: folder named by the evidence that it holds: `published`, `real` or `mini`.
        expected: by key of the dataset or study its "title" and "needs", in the order of tables; of a study "cells", by the
            name of a cell the variant of each factor; of some datasets "substitute_for" and "class_labels".
        available: keys whose evidence may be read, `theory` among them.
        files: paths that may be read; None: all of these keys.
        recomputed: by key and name, frames that stand in place of CSV files.
    """

    root: Path
    expected: Mapping[str, Mapping[str, Any]]
    available: frozenset[str]
    files: frozenset[Path] | None = None
    recomputed: Mapping[str, Mapping[str, pd.DataFrame]] = field(default_factory=dict)

    @classmethod
    def found(cls, root: Path, expected: Mapping[str, Mapping[str, Any]]) -> "Evidence":
        """Return everything that lies below `root`."""
        return cls(root, expected, frozenset(path.parent.name for path in root.glob("*/evidence")))

    @classmethod
    def of_files(cls, root: Path, expected: Mapping[str, Mapping[str, Any]], files: Iterable[str]) -> "Evidence":
        """Return the evidence in `files`. What else earlier runs left below `root` is not read."""
        paths = frozenset(map(Path, files))
        return cls(root, expected, frozenset(path.parent.parent.name for path in paths), paths)

    @property
    def name(self) -> str:
        """Return `published`, `real` or `mini`."""
        return self.root.name

    @property
    def miniature(self) -> bool:
        """Return whether any dataset shown is synthetic, by the folder's name or by the dataset's own description."""
        return self.name == "mini" or any(self.description(key)["miniature"] for key in self.at_hand())

    def path(self, dataset: str, file: str) -> Path:
        """Return the path of a file of the dataset's evidence, whether it is there or not.

        Raises:
            InputError: it is there, and the output that is rendered does not name it.
        """
        path = self.root / dataset / "evidence" / file
        if self.files is not None and path not in self.files and path.exists():
            raise InputError(f"{path}: outputs.yaml does not name {file} for this output; add it to its `files`")
        return path

    def has(self, dataset: str) -> bool:
        """Return whether the dataset has evidence that may be read."""
        return dataset in self.available

    def at_hand(self) -> list[str]:
        """Return the keys of the expected datasets that have evidence, in the order of tables."""
        return [key for key in self.expected if self.has(key)]

    def stand_ins(self, dataset: str) -> list[str]:
        """Return the dataset, or where it has no evidence its substitutes that have some, if there are any."""
        if self.has(dataset):
            return [dataset]
        others = [key for key, entry in self.expected.items() if entry.get("substitute_for") == dataset]
        return [key for key in others if self.has(key)] or [dataset]

    def is_substitute(self, key: str) -> bool:
        """Return whether the data of a dataset or study with evidence stand in for other ones."""
        return "substitute_for" in self.expected.get(self.dataset_of(key), {})

    def dataset_of(self, key: str) -> str:
        """Return the dataset of a study with evidence; a dataset is its own."""
        return str(self.description(key).get("dataset", key))

    def shown(self) -> list[str]:
        """Return the expected datasets in the order of tables, each substitute in place of its dataset or left out."""
        expected = self.expected.items()
        shown = [key for key, entry in expected if entry.get("substitute_for") not in self.expected]
        return [other for key in shown for other in self.stand_ins(key)]

    def not_run(self, dataset: str) -> str:
        """Return the text of a cell without evidence: what running the dataset needs."""
        return f"not run: needs {self.expected[dataset]['needs']}"

    def title(self, dataset: str) -> str:
        """Return the name of the data that were used, or of the expected data if the dataset was not run.

        The title of a study ends in the study's key.
        """
        study = f", study {dataset}" if self.has(dataset) and self.dataset_of(dataset) != dataset else ""
        return f"{self.data_title(dataset)}{study}"

    def dataset_title(self, key: str) -> str:
        """Return the title of the dataset alone, without the number of samples, of what has evidence."""
        return str(self.expected.get(self.dataset_of(key), {}).get("title", self.data_title(key)))

    def data_title(self, dataset: str) -> str:
        """Return the title without the study's key."""
        return str((self.description(dataset) if self.has(dataset) else self.expected[dataset])["title"])

    def model_title(self, dataset: str, model: str) -> str:
        """Return the name of a model, or of a study's cell: the names of its variants."""
        variants = self.expected[dataset].get("cells", {}).get(model, {}).values()
        return "; ".join(VARIANT_TITLES.get(variant, variant) for variant in variants) or model_title(model)

    def cells(self, study: str) -> dict[str, str]:
        """Return the cells of a study that has one for each kernel, by model."""
        return {MODEL_OF[variants["kernel"]]: cell for cell, variants in self.expected[study]["cells"].items()}

    def cell(self, study: str, **variants: str) -> str:
        """Return the first cell of a study with these variants, by factor; a factor that the study does not vary is left out."""
        cells = self.expected[study]["cells"].items()
        return next(
            cell for cell, own in cells if all(own.get(factor, name) == name for factor, name in variants.items())
        )

    def data(self, dataset: str) -> str:
        """Return the name of the data that were used, or what running the dataset needs."""
        return self.title(dataset) if self.has(dataset) else self.not_run(dataset)

    def description(self, dataset: str) -> dict[str, Any]:
        """Return the `dataset.json` of a dataset that has evidence; raise InputError if it is missing or damaged."""
        return dict(_read_description(self.path(dataset, "dataset.json")))

    def runs(self, dataset: str, models: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the run records of a dataset, of these models or of all, sorted by run; none if it has no evidence."""
        records = _read_records(self.path(dataset, RUNS)) if self.has(dataset) else []
        return [record for record in records if models is None or run_cell(record) in models]

    def runs_behind(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the run records of each pair of dataset and model in a tidy frame, whose column `other` may name models, too."""
        records: list[dict[str, Any]] = []
        for dataset in [key for key in self.at_hand() if key in set(frame["dataset"])]:
            rows = frame[frame["dataset"] == dataset]
            named = [rows[column].dropna() for column in ("model", "other") if column in frame]
            records += self.runs(dataset, list(pd.concat(named).unique()))
        return records

    def frame(self, dataset: str, file: str) -> pd.DataFrame:
        """Return a CSV file of a dataset, with the columns of `COLUMNS`; an empty cell of `rule` or `shares` reads as "".

        The frame is empty if the dataset or the file is not there. It is also empty if the file shows single patients whose
        licence forbids passing them on, because git tracks the pictures drawn from it.

        Raises:
            InputError: a column is missing.
        """
        path = self.path(dataset, file)
        if not self.has(dataset) or not path.exists() or withheld(path):
            return pd.DataFrame(columns=COLUMNS[file])
        recomputed = self.recomputed.get(dataset, {})
        frame = (recomputed[file] if file in recomputed else _read_csv(path)).copy()
        missing = [column for column in COLUMNS[file] if column not in frame]
        if missing:
            raise InputError(f"{path}: columns {missing} are missing, found {list(frame)}; run its evaluation again")
        for column in [name for name in ("rule", "shares") if name in frame]:
            frame[column] = frame[column].fillna("").astype(str)
        return frame

    def metrics(self, dataset: str) -> pd.DataFrame:
        """Return the metrics of a dataset under the printed reading; those of a model without references stay as they are."""
        frame = self.frame(dataset, "metrics.csv")
        return frame[printed_reading(frame)].drop(columns=["rule", "shares"])


def printed_reading(metrics: pd.DataFrame, rule: str = PRINTED_RULE, shares: str = PRINTED_SHARES) -> pd.Series:
    """Return which rows of metrics are of a decision rule and class shares, or of a model that has neither."""
    return metrics["rule"].fillna("").isin([rule, ""]) & metrics["shares"].fillna("").isin([shares, ""])


def by_setting(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the names in the column `setting` as further columns, of numbers where all values are numbers.

    A setting is `name=value` pairs separated by semicolons.
    """
    pairs = [dict(pair.split("=", 1) for pair in str(setting).split(";")) for setting in frame["setting"]]
    settings = pd.DataFrame(pairs, index=frame.index, dtype=object)
    numbers = settings.apply(pd.to_numeric, errors="coerce")
    whole = numbers.columns[numbers.count() == settings.count()]
    settings[whole] = numbers[whole]
    return frame.assign(**settings)


def run_name(record: Mapping[str, Any]) -> str:
    """Return the key of the dataset or study of a run record, whose folder holds its evidence."""
    return RunId.parse(record["run"]).name


def run_cell(record: Mapping[str, Any]) -> str:
    """Return the key of the model, or of the study's cell, of a run record."""
    return RunId.parse(record["run"]).cell
