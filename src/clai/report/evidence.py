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

import numpy as np
import pandas as pd
from scipy.special import stdtrit

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

# A cell of a study is a model there, named by its variants: full_zero.
VARIANT_TITLES: dict[str, str] = {
    "cosine": "Cosine (CLaI-C)", "identity": "Gaussian, M = I", "scalar": "Gaussian, scalar M",
    "diagonal": "Gaussian, diagonal M", "full": "Gaussian, full M (CLaI-M)", "zero": "zero", "product": "product",
    "masked": "masked", "sequential-all": "sequential, all references", "joint-all": "joint, all references",
    "joint-1": "joint, one reference", "cross-entropy": "Cross-entropy",
    "supervised-contrastive": "Supervised contrastive", "single": "single batches",
}  # fmt: skip

MODEL_TITLES: dict[str, str] = {
    "clai-m": "CLaI-M",
    "clai-c": "CLaI-C",
    "cross-entropy": "Cross-entropy (same encoder)",
    "student-t-mixture": "Mixture of Student-t",
    "deep-kernel-gp": "Deep-kernel Gaussian process",
    "gp": "Gaussian process",
    "gradient-boosting": "Gradient boosting",
    "logistic-regression": "Logistic regression",
    "constant": "Constant at the prevalence",
    "majority-class": "Majority class, always",
}

# The paper's table 2: labels by class index; colours are shared by its datasets.
CLASS_LABELS: dict[str, list[str]] = {
    "pathmnist": [
        "Adipose", "Background", "Debris", "Lymphocytes", "Mucus", "Smooth Muscle", "Normal Colon Mucosa",
        "Cancer-associated Stroma", "Colorectal Adenocarcinoma Epith.",
    ],
    "cifar10": ["Airplane", "Automobile", "Bird", "Cat", "Deer", "Dog", "Frog", "Horse", "Ship", "Truck"],
    "sleepedf": ["Wake", "N1", "N2", "N3", "REM"],
}  # fmt: skip
CLASS_TITLES: dict[str, str] = {"pathmnist": "PathMNIST", "cifar10": "CIFAR-10", "sleepedf": "SleepEDF"}
CLASS_COLOURS: list[str] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
]  # fmt: skip

MINI_NOTE = "Miniature synthetic data: shows that the pipeline works, not how well the method does."

RULES = ("printed", "centred", "balanced", "parzen")
PRINTED_RULE = "printed"

LEVEL = 0.95


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


def model_title(model: str) -> str:
    """Name of a model or of a study's cell in tables and figures; its key if it has no name here."""
    if model in MODEL_TITLES:
        return MODEL_TITLES[model]
    return "; ".join(VARIANT_TITLES.get(part, part) for part in model.split("_"))


def replicates(frame: pd.DataFrame, value: str = "value") -> pd.Series:
    """Values indexed by replicate: by fold, averaged over seeds, where there are folds; by seed otherwise.

    frame: columns seed, fold and `value`, one model and one metric.
    """
    unit = "fold" if frame["fold"].notna().any() else "seed"
    return frame.dropna(subset=[value]).groupby(unit)[value].mean()


def spread(values: Iterable[float]) -> tuple[float, float, int]:
    """Mean, sample standard deviation (nan for fewer than two) and number of `values`."""
    array = np.asarray(list(values), dtype=float)
    mean = float(array.mean()) if len(array) else float("nan")
    return mean, float(array.std(ddof=1)) if len(array) > 1 else float("nan"), len(array)


@dataclass(frozen=True)
class Interval:
    """A mean over n replicates with its 95 % Student-t interval; low and high are nan for n < 2."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def below_zero(self) -> bool:
        return self.high < 0

    @property
    def above_zero(self) -> bool:
        return self.low > 0

    @property
    def known(self) -> bool:
        return self.n > 1

    def text(self, digits: int = 4) -> str:
        if self.n == 0:
            return "no value"
        if not self.known:
            return f"{self.mean:+.{digits}f} (n = 1, no interval)"
        return f"{self.mean:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}] (n = {self.n})"


def interval(values: Iterable[float], prediction: bool = False) -> Interval:
    """95 % t-interval of the mean of `values`; of one further value, instead, with `prediction`."""
    mean, sd, n = spread(values)
    if n < 2:
        return Interval(mean, float("nan"), float("nan"), n)
    scale = np.sqrt(1 / n + prediction)
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2) * sd * scale)
    return Interval(mean, mean - half, mean + half, n)


def paired_difference(metrics: pd.DataFrame, metric: str, model: str, other: str) -> Interval:
    """Mean of `model` minus `other` over the replicates (seeds or folds) that both have, with its interval."""
    chosen = metrics[metrics["metric"] == metric]
    a = replicates(chosen[chosen["model"] == model])
    b = replicates(chosen[chosen["model"] == other])
    return interval((a - b).dropna())


def read_printed_values(path: Path) -> pd.DataFrame:
    """The numbers printed in the paper: table, row, metric, value, spread, unit."""
    frame = pd.read_csv(path)
    expected = ["table", "row", "metric", "value", "spread", "unit"]
    if list(frame) != expected:
        raise InputError(f"{path}: expected the columns {expected}, found {list(frame)}")
    return frame


def printed_value(values: pd.DataFrame, table: str, row: str, metric: str) -> tuple[float, float]:
    """Printed value and its spread; nan where the paper prints none."""
    found = values[(values["table"] == table) & (values["row"] == row) & (values["metric"] == metric)]
    if found.empty:
        return float("nan"), float("nan")
    return float(found["value"].iloc[0]), float(found["spread"].iloc[0])


def caption(fixed: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """The fixed sentences, then data, what was not run, seeds, hardware and, for synthetic data, the mark."""
    sentences = [" ".join(fixed.split())]
    shown = list(dict.fromkeys(evidence.title(key) for key in evidence.at_hand()))
    if shown:
        sentences.append(f"Data: {'; '.join(shown)}.")
    missing = [f"{evidence.title(key)}: {evidence.not_run(key)}" for key in evidence.expected if not evidence.has(key)]
    if missing:
        sentences.append(f"{'; '.join(missing)}.")
    for unit, word in (("seed", "Seeds"), ("fold", "Folds")):
        counts = replicate_text(evidence, runs, unit)
        if counts:
            sentences.append(f"{word}: {counts}.")
    hardware = sorted({str(run["hardware"]) for run in runs})
    if hardware:
        sentences.append(f"Hardware: {'; '.join(hardware)}.")
    if evidence.miniature:
        sentences.append(MINI_NOTE)
    return " ".join(sentences)


def replicate_text(evidence: Evidence, runs: Sequence[Mapping[str, Any]], unit: str) -> str:
    """The seeds or folds behind run records; named by dataset, or by model on a dataset, where they differ."""
    found: dict[str, dict[str, set[int]]] = {}
    for run in runs:
        if run[unit] is not None:
            models = found.setdefault(run_dataset(run), {})
            models.setdefault(run_model(run), set()).add(int(run[unit]))
    groups: dict[str, list[str]] = {}
    for dataset, models in found.items():
        texts = {model: ", ".join(map(str, sorted(values))) for model, values in models.items()}
        title = evidence.title(dataset)
        if len(set(texts.values())) == 1:
            groups.setdefault(next(iter(texts.values())), []).append(title)
            continue
        for model, text in texts.items():
            groups.setdefault(text, []).append(f"{model_title(model)} on {title}")
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{text} ({'; '.join(names)})" for text, names in groups.items())


def sidecar(text: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """The JSON beside every output: caption, data, evidence and the records of the runs used; deterministic.

    The settings of runs, mostly the same for many, stand apart, under their hash.
    """
    settings = {}
    for run in [run for run in runs if "settings" in run]:
        settings[run["config_hash"]] = run["settings"]
        if evaluation := run.get("evaluation"):
            settings[evaluation["config_hash"]] = {**run["settings"], **evaluation["settings"]}
    content = {
        "caption": text,
        "data": [evidence.title(key) for key in evidence.at_hand()],
        "evidence": evidence.name,
        "runs": [_without_settings(run) for run in runs],
        "settings": settings,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _without_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record, and the record within it, without settings."""
    return {
        key: _without_settings(value) if key == "evaluation" else value
        for key, value in record.items()
        if key != "settings"
    }


def csv_text(frame: pd.DataFrame) -> str:
    """CSV with six significant digits and Unix line ends."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
