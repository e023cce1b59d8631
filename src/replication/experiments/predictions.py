"""Predictions of all runs as Parquet files, from which anybody computes figures of merit again.

`samples.parquet` has a row for each test sample of a dataset, `predictions_<model>.parquet` one for each run and sample that it
is tested on, in the order of the samples. docs/architecture.md says what the columns mean.

Scores are rounded to BITS significant bits, so that the files stay small; log-odds keep their resolution where events are rare.
The predicted class is exact. The files hold no measurements and no identifiers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax

from clailearn.calibration import LogisticCalibration
from clailearn.errors import InputError
from replication.datasets.files import read_parquet, reading
from replication.datasets.prepared import DEVELOPMENT, Prepared, load
from replication.metrics.classification import Floats, binary_metrics, sample_metrics
from replication.metrics.intervals import DRAWS, Fitted, Predictions, compare_models
from replication.runs.run import COLUMNS, SAMPLES, RunId

BITS = 17
"""Significant bits of a score: with float16's 11 so many scores tie that the average precision and p-values change in print."""
_FITTED = ("temperature", "slope", "intercept", "vote")
_SAMPLE_COLUMNS = ("y", "group", "recording", "fold")
_TWO_CLASS_COLUMNS = ("run", "log_odds", "vote", "slope", "intercept")
_OPTIONAL = ("recording", "fold")
_WITNESS = "witness_"
_LARGEST = np.nextafter(np.float32(1), np.float32(0))
"""A larger vote would have infinite log-odds."""


@dataclass(frozen=True)
class Samples:
    """The class indices y of a dataset's test samples and what else `samples.parquet` has, (N,) each."""

    y: NDArray[np.int64]
    group: NDArray[np.int64]
    recording: NDArray[np.int64] | None = None
    fold: NDArray[np.int64] | None = None

    def rows(self, fold: int | None) -> NDArray[np.intp]:
        """Return the samples that a run of a fold is tested on."""
        chosen = np.ones(len(self.y), dtype=bool) if self.fold is None else self.fold == fold
        return np.flatnonzero(chosen)


def samples_of(data: Prepared) -> Samples:
    """Return the test samples of prepared data; patients and recordings get new numbers in the order of theirs."""
    if data.info["kind"] == "recordings":
        rows = np.asarray(data["folds_all"]) != DEVELOPMENT
        y, patients, recordings, folds = (
            np.asarray(data[f"{n}_all"])[rows] for n in ("y", "patients", "groups", "folds")
        )
        return Samples(y.astype(np.int64), _renumbered(patients), _renumbered(recordings), folds.astype(np.int64))
    y = np.asarray(data["y_test"]).astype(np.int64)
    grouped = "groups_test" in data.info["arrays"]
    return Samples(y, _renumbered(np.asarray(data["groups_test"])) if grouped else np.arange(len(y)))


def _renumbered(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def measure_predictions(
    y: NDArray[np.int64], given: Predictions, recordings: bool, threshold: float | None = None
) -> dict[str, float]:
    """Return the metrics of predictions of samples with these labels; of two classes a threshold gives one F1 more.

    Two classes have the metrics of table 3, and of table 1 unless they are of hours of recordings, where events are rare.
    """
    probability, calibrated = given.probability, given.calibrated
    if given.score.ndim == 2:
        return sample_metrics(y, probability, calibrated)
    metrics = binary_metrics(y, given.score, probability, calibrated, threshold)
    return metrics if recordings else sample_metrics(y, probability, calibrated) | metrics


def compare_runs(samples: Samples, runs: Mapping[RunId, Predictions], draws: int = DRAWS) -> pd.DataFrame:
    """Compare the models of these runs: `comparisons.csv`.

    The epochs of a sleeper resemble each other, so that sleepers are drawn; images stand for themselves.
    """
    models = list(dict.fromkeys(run.cell for run in runs))
    by_model = {model: {run.seed: found for run, found in runs.items() if run.cell == model} for model in models}
    compared = compare_models(samples.y, samples.group, by_model, draws)
    rows = [shared_witnesses(model, list(found.values())) for model, found in by_model.items()]
    return pd.concat([compared, *(row for row in rows if row is not None)])


def shared_witnesses(cell: str, runs: Sequence[Predictions]) -> pd.DataFrame | None:
    """Return the share of a test sample's witnesses that two seeds of a cell have in common, as a row of `comparisons.csv`.

    The value is a mean over test samples and pairs of seeds, without an interval. None where fewer than two runs name witnesses.
    """
    named = [run.witnesses for run in runs if run.witnesses is not None]
    if len(named) < 2:
        return None
    shares = [(one[:, :, None] == other[:, None]).any(2).mean() for one, other in combinations(named, 2)]
    found = {"cell": cell, "other": "", "metric": "shared_witnesses", "value": np.mean(shares)}
    counts = {"samples": len(named[0]), "seeds": len(named), "draws": 0}
    return pd.DataFrame([found | counts], columns=COLUMNS["comparisons.csv"])


def compare_predictions(description: Path, predictions: Iterable[Path]) -> pd.DataFrame:
    """Compare the models, or cells, of runs by their files of predictions, on the data that `dataset.json` describes."""
    data = load(description.parent)
    samples, classes = samples_of(data), len(data.info["classes"])
    found = ((path, one) for path in predictions for _, one in load_predictions(path, samples, classes))
    return compare_runs(samples, {RunId.parse(path): one for path, one in found})


def save_samples(path: Path, samples: Samples) -> None:
    """Write `samples.parquet`."""
    _write(path, pd.DataFrame({name: part for name, part in vars(samples).items() if part is not None}))


def load_samples(path: Path) -> Samples:
    """Read `samples.parquet`; raise InputError, naming the file, if it is damaged."""
    return Samples(**{str(name): column.to_numpy() for name, column in _read(path, _SAMPLE_COLUMNS).items()})


def save_predictions(path: Path, runs: Mapping[RunId, Predictions]) -> None:
    """Write what runs of a model predict, and what they fitted."""
    frames = []
    for run, given in runs.items():
        score, fitted = given.score.astype(np.float64), given.calibration
        if score.ndim == 1:  # log-odds, or votes in [-1, 1]
            log_odds = 2 * np.arctanh(np.clip(score, -_LARGEST, _LARGEST)) if fitted.vote else score
            columns = {
                "log_odds": _rounded(log_odds),
                "vote": fitted.vote,
                "slope": fitted.slope,
                "intercept": fitted.intercept,
            }
        else:
            rounded = _rounded(score - score.max(axis=1, keepdims=True))
            columns = {f"score_{k}": column for k, column in enumerate(rounded.T)}
            columns["temperature"] = fitted.temperature
        if given.witnesses is not None:
            columns |= {f"{_WITNESS}{k}": column.astype(np.int32) for k, column in enumerate(given.witnesses.T)}
        frames.append(pd.DataFrame({"run": run.replicate, **columns}))
    _write(path, pd.concat(frames))


def _rounded(values: Floats) -> NDArray[np.float32]:
    """Return values with BITS significant bits; only 0 becomes 0."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS).astype(np.float32)


def load_predictions(path: Path, samples: Samples, classes: int) -> Iterator[tuple[str, Predictions]]:
    """Yield the replicate of each run, such as `seed0/fold1`, and its predictions; raise InputError for other samples."""
    scores = [f"score_{k}" for k in range(classes)]
    columns = _TWO_CLASS_COLUMNS if classes == 2 else ("run", *scores, "temperature")
    for replicate, rows in _read(path, columns).groupby("run", sort=False):
        run = _run_of(str(replicate))
        n = len(samples.rows(run.fold))
        if (run.fold is None) != (samples.fold is None) or len(rows) != n:
            raise InputError(
                f"{path}: found {len(rows)} rows of {run.replicate}, not {n}; expected predictions of the samples beside it. "
                "Restore both files, or compute them again"
            )
        fitted = Fitted(**{name: rows[name].iloc[0].item() for name in _FITTED if name in rows})
        if classes > 2:
            score = rows[scores].to_numpy(np.float64)
            parts = score, softmax(score, axis=1), softmax(score / fitted.temperature, axis=1)
        else:
            log_odds = rows["log_odds"].to_numpy(np.float64)
            score = np.tanh(log_odds / 2) if fitted.vote else log_odds
            parts = score, expit(log_odds), LogisticCalibration(fitted.slope, fitted.intercept)(score)
        named = rows.filter(like=_WITNESS).to_numpy()
        yield run.replicate, Predictions(*parts, fitted, named if named.size else None)


def gather_predictions(path: Path, sources: Sequence[Path]) -> None:
    """Write the test samples of `dataset.json`, or what the files of runs of a model hold, in the order of the files."""
    if path.name == SAMPLES:
        save_samples(path, samples_of(load(sources[0].parent)))
    else:
        _write(path, pd.concat([_read(source) for source in sources]))


def add_runs(path: Path, source: Path, replicates: Collection[str]) -> None:
    """Add these runs, such as `seed0`, of another file to a file of predictions, which need not exist yet."""
    further = _read(source)
    frames = [*([_read(path)] if path.exists() else []), further[further["run"].isin(replicates)]]
    runs = {_run_of(str(name)): rows for frame in frames for name, rows in frame.groupby("run")}
    _write(path, pd.concat([runs[run] for run in sorted(runs)]))


def _run_of(replicate: str) -> RunId:
    return RunId.parse(f"dataset/model/{replicate}")


def _read(path: Path, columns: Collection[str] = ()) -> pd.DataFrame:
    """Return these columns of a file, of which the optional ones may lack, and those of witnesses; all without any."""
    with reading(path, "predictions"):
        frame: pd.DataFrame = read_parquet(path)
        wanted = [*columns, *(name for name in map(str, frame) if name.startswith(_WITNESS) or not columns)]
        return frame[[name for name in wanted if name in frame or name not in _OPTIONAL]]


def _write(path: Path, frame: pd.DataFrame) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as database:
        database.register("frame", frame)
        # Version 2 puts bytes of one significance side by side, which takes a fifth off scores
        database.execute("COPY frame TO ? (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION V2)", [str(path)])
