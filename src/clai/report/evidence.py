"""Evidence folders: what a run measured, read back, summarised and traced to its run records.

An evidence folder `<root>/<dataset>/evidence/` holds tidy CSV files, `dataset.json` and `runs.json`; every table,
figure and verdict is a function of such folders. The unit of replication is the test fold where there are folds (values
of several seeds are averaged within a fold first) and the seed otherwise. All spreads are sample standard deviations
(ddof = 1); all intervals are two-sided 95 % Student-t intervals.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from clai.errors import InputError
from clai.report.publication import PATIENT_LEVEL, shows_patients

COLUMNS: dict[str, list[str]] = {
    "metrics.csv": ["dataset", "model", "seed", "fold", "rule", "metric", "value"],
    "history.csv": [
        "dataset", "model", "seed", "fold", "epoch", "loss", "floor", "alignment", "centred_alignment",
        "validation_accuracy", "learning_rate", "pairs",
    ],  # and, in studies, passes
    "reliability.csv": ["model", "seed", "fold", "mapping", "bin", "n", "confidence", "accuracy"],
    "similarity.csv": ["model", "seed", "class_a", "class_b", "similarity"],
    "tsne.csv.gz": ["model", "x", "y", "label"],
    "stages.csv.gz": ["stage", "x", "y", "label"],
    "intervals.csv": ["model", "other", "metric", "value", "low", "high", "patients", "draws"],
    "decision.csv": ["model", "seed", "fold", "threshold", "net_benefit", "always"],
    "signals.csv": ["model", "hour", "signal", "value", "sd", "event"],
    "latent.csv": ["model", "seed", "fold", "quantity", "value"],
    "theory.csv": ["check", "setting", "quantity", "value"],
    "benchmark.csv": ["comparison", "variant", "setting", "repetition", "quantity", "value"],
}  # fmt: skip


PRINTED_RULE = "printed"


@cache
def _read_csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


@cache
def _read_text(path: Path) -> str:
    return path.read_text()


@dataclass(frozen=True)
class Evidence:
    """The evidence folders below `root` of the datasets in `expected`.

    root: folder named by the evidence it holds (`published`, `paper` or `mini`).
    expected: dataset key -> {"title", "needs"}, in the order in which datasets are shown.
    available: keys of the datasets whose evidence may be read ("theory" among them).
    """

    root: Path
    expected: Mapping[str, Mapping[str, str]]
    available: frozenset[str]

    @classmethod
    def found(cls, root: Path, expected: Mapping[str, Mapping[str, str]]) -> "Evidence":
        """Everything that lies below `root`."""
        keys = [path.parent.parent.name for path in root.glob("*/evidence/*")]
        return cls(root, expected, frozenset(keys))

    @classmethod
    def of_files(cls, root: Path, expected: Mapping[str, Mapping[str, str]], files: Iterable[str]) -> "Evidence":
        """Only the datasets that own one of `files`; folders left below `root` by earlier runs are not looked at."""
        return cls(root, expected, frozenset(Path(file).parent.parent.name for file in files))

    @property
    def name(self) -> str:
        """`published`, `paper` or `mini`."""
        return self.root.name

    @property
    def miniature(self) -> bool:
        """Whether any dataset shown is synthetic, by the name of the folder or by its own description."""
        return self.name == "mini" or any(self.description(key)["miniature"] for key in self.at_hand())

    def path(self, dataset: str, file: str) -> Path:
        return self.root / dataset / "evidence" / file

    def has(self, dataset: str) -> bool:
        return dataset in self.available

    def at_hand(self) -> list[str]:
        return [key for key in self.expected if self.has(key)]

    def not_run(self, dataset: str) -> str:
        return f"not run: needs {self.expected[dataset]['needs']}"

    def title(self, dataset: str) -> str:
        """Name of the data that numbers of `dataset` rest on, and of the study they belong to; of the expected data if it was not
        run.
        """
        if not self.has(dataset):
            return self.expected[dataset]["title"]
        description = self.description(dataset)
        study = f", study {dataset}" if description.get("dataset", dataset) != dataset else ""
        return f"{description['title']}{study}"

    def data(self, dataset: str) -> str:
        """What the cells of `dataset` rest on, or what they would need."""
        return self.title(dataset) if self.has(dataset) else self.not_run(dataset)

    def description(self, dataset: str) -> dict[str, Any]:
        return dict(self._json(dataset, "dataset.json"))

    def runs(self, dataset: str, models: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Run records of `dataset`, of `models` only if given, sorted by run. Empty if it was not run."""
        if not self.has(dataset):
            return []
        records: list[dict[str, Any]] = self._json(dataset, "runs.json")
        chosen = [r for r in records if models is None or run_model(r) in models]
        return sorted(chosen, key=lambda r: str(r["run"]))

    def runs_behind(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Run records of every pair of dataset and model in a tidy frame; all models of a dataset without one."""
        if "dataset" not in frame:
            return []
        records: list[dict[str, Any]] = []
        for dataset in [key for key in self.at_hand() if key in set(frame["dataset"])]:
            rows = frame[frame["dataset"] == dataset]
            models = [str(m) for m in rows["model"].dropna().unique()] if "model" in frame else None
            records += self.runs(dataset, models)
        return records

    def frame(self, dataset: str, file: str) -> pd.DataFrame:
        """One CSV file of a dataset with the columns of `COLUMNS`; empty if the dataset or the file is not there.

        `rule` is "" where empty. Empty, too, where it shows single patients and their licence forbids it: what is drawn
        from evidence is tracked. Raises InputError if a column is missing.
        """
        path = self.path(dataset, file)
        if not self.has(dataset) or not path.exists():
            return pd.DataFrame(columns=COLUMNS[file])
        if file in PATIENT_LEVEL and shows_patients(file, self.description(dataset)):
            return pd.DataFrame(columns=COLUMNS[file])
        frame = _read_csv(path).copy()
        missing = [column for column in COLUMNS[file] if column not in frame]
        if missing:
            raise InputError(f"{path}: columns {missing} are missing, found {list(frame)}; run its evaluation again")
        if "rule" in frame:
            frame["rule"] = frame["rule"].fillna("").astype(str)
        return frame

    def metrics(self, dataset: str, rule: str = PRINTED_RULE) -> pd.DataFrame:
        """Metrics of a dataset under one decision rule; models without decision rules are kept as they are."""
        frame = self.frame(dataset, "metrics.csv")
        return frame[frame["rule"].isin([rule, ""])].drop(columns="rule")

    def _json(self, dataset: str, file: str) -> Any:
        path = self.path(dataset, file)
        if not path.exists():
            raise InputError(f"{path} is missing although {dataset} has evidence there; run its evaluation again")
        return json.loads(_read_text(path))


def run_dataset(record: Mapping[str, Any]) -> str:
    """Key of a run record's dataset or study, whose folder has its evidence."""
    return str(record["run"]).split("/")[0]


def run_model(record: Mapping[str, Any]) -> str:
    """Model key of a run record, whose `run` is dataset/model/seed0[/fold3]."""
    return str(record["run"]).split("/")[1]
