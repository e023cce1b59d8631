"""Predictions of all runs in compact files, from which anybody computes figures of merit again.

`samples.npz` holds the labels of a dataset's test samples, `predictions_<model>.npz` the scores of a model's runs. Samples stand
in the order of the prepared data, recordings without development patients. The files hold no measurements and no identifiers.

Scores are rounded, because each costs a byte or more:

- C classes. A score is stored as its distance to the largest one of the sample, in LEVELS levels up to the run's largest
  distance, or LEVELS_OF_FEW for at most FEW samples; levels of small distances are narrower. Level 0 is that of the largest score
  alone, so that the predicted class is exact. A sample whose confidence would move to another bin of a calibration error has
  finer levels, of FINE_BYTES bytes.
- Two classes. Scores fall into some BINS bins, or BINS_OF_FEW for at most FEW samples. The bins divide ranks, ranks from above
  on a logarithmic scale, and scores evenly: rare events at the top, and probabilities, keep their resolution. No bin crosses 0,
  the threshold of alarms or of a decision curve, or a limit between the bins of a calibration error. Reading spreads the samples
  of a bin over it at random, with a fixed seed: ties would bias the average precision.

The files are plain NumPy archives. Numbers of several bytes are stored as all low bytes, then all higher ones; bins, and the
numbers of groups, recordings and folds, as differences from sample to sample. They pack better so.
"""

import io
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from clai.calibration import LogisticCalibration, scaled_softmax
from clai.errors import InputError
from replication.datasets.files import opened_zip, reading
from replication.datasets.prepared import Prepared
from replication.datasets.splits import DEVELOPMENT
from replication.metrics.bootstrap import DECISION_THRESHOLDS
from replication.metrics.classification import ECE_BINS
from replication.runs.identity import RunId

Floats = NDArray[np.float64]
BYTES, FINE_BYTES = 2, 3
"""Bytes of a level or a bin, before they are packed, and of a finer level."""
LEVELS, BINS = 511, 127
"""Levels of the distances of a run with more than two classes, and bins of the scores of one with two."""
FEW, LEVELS_OF_FEW, BINS_OF_FEW = 10_000, 2047, 16383
"""Up to so many samples have more: one that moves to another bin or rank shows in their intervals."""
LARGEST_VALUES = 50_000_000
"""Scores that a run may have: beyond it a file is refused before it is unpacked."""
CLOSE = 1e-4
"""Largest difference between probabilities and their mapping, which float32 leaves below a hundredth of it."""
_FINE = 256**FINE_BYTES - 1
_LARGEST = 1e30
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Samples:
    """The test samples of a dataset.

    Attributes:
        y: labels, class indices (N,).
        group: a number for each patient or subject (N,); that of the sample itself where samples stand for themselves.
        recording: a number for each recording (N,), and fold: its test fold (N,). None for a fixed test set.
    """

    y: NDArray[np.int64]
    group: NDArray[np.int64]
    recording: NDArray[np.int64] | None = None
    fold: NDArray[np.int64] | None = None

    def rows(self, fold: int | None) -> NDArray[np.intp]:
        """Return the samples that a run of a fold is tested on."""
        chosen = np.ones(len(self.y), dtype=bool) if self.fold is None else self.fold == fold
        return np.flatnonzero(chosen)


@dataclass(frozen=True)
class Predictions:
    """What a run predicts for its test samples.

    Attributes:
        score, probability, calibrated: (N,) for two classes, (N, C) for more.
        alarm: (N,), or None where alarms have no utility.
    """

    score: Floats
    probability: Floats
    calibrated: Floats
    alarm: NDArray[np.bool_] | None = None


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


def save_samples(path: str | Path, samples: Samples) -> None:
    """Write `samples.npz`."""
    parts = {name: getattr(samples, name) for name in _OF_SAMPLES}
    steps = {name: np.diff(part, prepend=0).astype(np.int32) for name, part in parts.items() if part is not None}
    _write(path, {"y": samples.y.astype(np.uint8), **steps})


def load_samples(path: Path, classes: int) -> Samples:
    """Read `samples.npz`; raise InputError, naming the file, if it is damaged or not that of a dataset of so many classes."""
    arrays = _Archive(path)
    with arrays:
        y = arrays.read("y", np.uint8, 1).astype(np.int64)
        others = {
            name: np.cumsum(arrays.read(name, np.int32, 1), dtype=np.int64) for name in _OF_SAMPLES if arrays.has(name)
        }
    if not len(y) or y.max() >= classes or any(len(part) != len(y) for part in others.values()):
        raise _bad(
            path, f"{len(y)} labels and other parts of {[len(p) for p in others.values()]}, or labels beyond {classes}"
        )
    if "group" not in others or others["group"].min() < 0 or len({"recording", "fold"} & set(others)) == 1:
        raise _bad(path, f"the parts {sorted(others)}, or groups below 0")
    if "recording" in others and (np.diff(others["recording"]) != 0).sum() + 1 != len(np.unique(others["recording"])):
        raise _bad(path, "recordings whose hours are apart")
    return Samples(y, **others)


_OF_SAMPLES = ("group", "recording", "fold")


def save_predictions(
    path: str | Path,
    runs: Mapping[RunId, Mapping[str, NDArray[np.float32]]],
    temperatures: Mapping[RunId, float],
) -> None:
    """Write `predictions_<model>.npz`.

    Args:
        runs: by run the arrays of its `predictions.npz`.
        temperatures: of the runs with more than two classes.

    Raises:
        InputError: a run has scores that are not finite.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for run, given in runs.items():
        if not np.isfinite(given["score"]).all():
            raise InputError(f"{run}: found scores that are not finite, expected numbers. Compute the run again")
        score = given["score"].astype(np.float64)
        parts = _of_classes(score, temperatures[run]) if score.ndim == 2 else _of_two(score, given)
        arrays |= {f"{run.replicate}/{name}": values for name, values in parts.items()}
    _write(path, arrays)


def join_predictions(path: Path, *parts: Path) -> None:
    """Write the runs of several files of predictions, by seed and fold, to one file, which may be among them.

    Raises:
        InputError: a file cannot be read.
    """
    runs: dict[RunId, dict[str, bytes]] = {}
    for part in parts:
        with _Archive(part) as arrays:
            runs |= arrays.members_by_run()
    _write_runs(path, runs)


def keep_runs(path: Path, replicates: Collection[str]) -> None:
    """Keep these runs, such as `seed0`, of a file of predictions; the file goes where none is left.

    Raises:
        InputError: the file cannot be read.
    """
    with _Archive(path) as arrays:
        kept = {run: members for run, members in arrays.members_by_run().items() if run.replicate in replicates}
    if kept:
        _write_runs(path, kept)
    else:
        path.unlink()


def _of_classes(score: Floats, temperature: float) -> dict[str, NDArray[Any]]:
    """Return the levels (N, C) of the distances to the largest score, finer ones for samples that would move, and constants."""
    distance = score.max(axis=1, keepdims=True) - score
    largest, top = float(distance.max()) or 1.0, score.argmax(axis=1)
    number = _number_of_levels(len(score))
    levels = _levels(distance, largest, number, top)
    rounded = _distances(levels, largest, number)
    moved = np.zeros(len(score), dtype=bool)
    for scale in (1.0, temperature):
        moved |= np.not_equal(*(_bin_of_confidence(d, scale) for d in (distance, rounded)))
    return {
        "levels": _bytes_apart(levels),
        "moved": _bytes_apart(np.diff(np.flatnonzero(moved), prepend=0), FINE_BYTES),
        "fine": _bytes_apart(_levels(distance[moved], largest, _FINE, top[moved]), FINE_BYTES),
        "constants": np.array([largest, temperature]),
    }


def _number_of_levels(samples: int) -> int:
    return LEVELS if samples > FEW else LEVELS_OF_FEW


def _levels(distance: Floats, largest: float, number: int, top: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the level of each distance (N, C), from 1; 0 for the class with the largest score."""
    levels = np.clip(np.ceil(np.sqrt(distance / largest) * number), 1, number).astype(np.int64)
    levels[np.arange(len(levels)), top] = 0
    return levels


def _distances(levels: NDArray[Any], largest: float, number: int) -> Floats:
    """Return the distances in the middle of levels."""
    return np.where(levels > 0, largest * ((levels - 0.5) / number) ** 2, 0.0)


def _bin_of_confidence(distance: Floats, temperature: float) -> NDArray[np.intp]:
    confidence = scaled_softmax(-distance, temperature).max(axis=1)
    return np.digitize(confidence, np.linspace(0, 1, ECE_BINS + 1))


def _of_two(score: Floats, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return bins of the scores (N,) with their limits, and how probabilities and alarms follow from scores."""
    mapping = next((n for n, to in MAPPINGS.items() if np.abs(to(score) - given["probability"]).max() < CLOSE), None)
    if mapping is None:
        raise InputError(
            f"found probabilities that are neither of {', '.join(MAPPINGS)} of the scores; expected one of these mappings. Add "
            "the model's own to MAPPINGS of replication.experiments.predictions"
        )
    slope, intercept = _logistic(score, given["calibrated"].astype(np.float64))
    limits = np.r_[0.5, np.arange(1, ECE_BINS) / ECE_BINS]
    edges = [
        *(2 * limits - 1 if mapping == "half" else logit(limits)),
        *((logit(np.r_[limits, DECISION_THRESHOLDS]) - intercept) / (slope or np.inf)),
    ]
    threshold = np.inf
    if "alarm" in given:
        silent = score[~given["alarm"]]
        threshold = float(silent.max()) if len(silent) else float(np.nextafter(score.min(), -np.inf))
        edges.append(threshold)
    bins, low, high = _bins(score, edges)
    change = np.diff(bins, prepend=0)
    return {
        "bins": _bytes_apart(np.where(change >= 0, 2 * change, -2 * change - 1)),
        "low": low.astype(np.float32),
        "high": high.astype(np.float32),
        "constants": np.array([list(MAPPINGS).index(mapping), slope, intercept, threshold]),
        "alarms": np.bool_("alarm" in given),  # type: ignore[dict-item]
    }


def _half(score: Floats) -> Floats:
    return (1 + score) / 2


MAPPINGS = {"half": _half, "logistic": expit}
"""How models of two classes map scores to probabilities: (1 + f) / 2 of votes, or the logistic function of log-odds."""


def _logistic(score: Floats, calibrated: Floats) -> tuple[float, float]:
    """Return slope and intercept of the logistic calibration that maps scores to these probabilities."""
    weight = calibrated * (1 - calibrated)  # float32 keeps little of a log-odds where the probability is near 0 or 1
    known = weight > 0
    x, target, weight = score[known], logit(calibrated[known]), weight[known]
    mean, height = np.average(x, weights=weight), np.average(target, weights=weight)
    spread = float((weight * (x - mean) ** 2).sum())
    slope = float((weight * (x - mean) * (target - height)).sum()) / spread if spread > 0 else 0.0
    return slope, float(height - slope * mean)


def _bins(score: Floats, edges: list[float]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the bin of each score (N,), and the lowest and highest score of each bin (bins,)."""
    values, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    above = len(score) - np.cumsum(counts) + counts / 2
    scales = (
        1 - above / len(score),
        1 - np.log1p(above) / np.log1p(len(score)),
        (values - values[0]) / max(values[-1] - values[0], np.finfo(float).tiny),
    )
    number = BINS if len(score) > FEW else BINS_OF_FEW
    rough = np.floor(sum(scales) / len(scales) * (number - 1)) + np.searchsorted(np.sort(edges), values, side="left")
    first = np.r_[True, np.diff(rough) > 0]
    fine = np.cumsum(first) - 1
    return fine[place], values[first], values[np.r_[first[1:], True]]


def load_predictions(path: Path, samples: Samples, classes: int) -> Iterator[tuple[str, Predictions]]:
    """Yield the replicate of each run in `predictions_<model>.npz`, such as `seed0/fold1`, and its predictions.

    Raises:
        InputError: the file is damaged, or not of these samples and so many classes.
    """
    with _Archive(path) as arrays:
        for replicate in arrays.replicates():
            run = _run_of(replicate)
            if (run.fold is None) != (samples.fold is None) or str(run) != f"dataset/model/{replicate}":
                raise _bad(path, f"the run {replicate[:40]}")
            n = len(samples.rows(run.fold))
            yield replicate, (arrays.of_two if classes == 2 else arrays.of_classes)(replicate, n, classes)


class _Archive:
    """The arrays of a file that is not trusted: each is checked before it is unpacked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise _bad(path, "no such file")
        self.opened = opened_zip(path, largest=2 * LARGEST_VALUES + 1024)

    def __enter__(self) -> "_Archive":
        self.archive: zipfile.ZipFile = self.opened.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.opened.__exit__(*error)

    def members_by_run(self) -> dict[RunId, dict[str, bytes]]:
        """Return the content of each member, as it is, by the run that it is of; raise InputError for a member of none."""
        content: dict[RunId, dict[str, bytes]] = {_run_of(name): {} for name in self.replicates()}
        for name in self.archive.namelist():
            with reading(f"{self.path}: {name}", "predictions"), self.archive.open(name) as stream:
                content[_run_of(name.rpartition("/")[0])][name] = stream.read()
        return content

    def has(self, name: str) -> bool:
        return f"{name}.npy" in self.archive.namelist()

    def replicates(self) -> list[str]:
        """Return the runs in the file; raise InputError for a member that is of none."""
        names = self.archive.namelist()
        found = list(dict.fromkeys(name.rpartition("/")[0] for name in names))
        try:
            known = found and all(_run_of(name) for name in found)
        except ValueError:
            known = False
        if not known:
            raise _bad(self.path, f"the members {names[:3]}")
        return found

    def read(self, name: str, dtype: Any, dimensions: int, *, size: int | None = None) -> NDArray[Any]:
        """Return an array of this type, dimensions and number of values; raise InputError for any other."""
        if not self.has(name):
            raise _bad(self.path, f"no array {name}")
        with reading(f"{self.path}: {name}", "predictions"), self.archive.open(f"{name}.npy") as stream:
            content = io.BytesIO(stream.read())
        try:
            version = np.lib.format.read_magic(content)
            if version != (1, 0):
                raise ValueError(f"version {version}")
            shape, fortran, found = np.lib.format.read_array_header_1_0(content)
        except Exception as error:  # numpy evaluates the header, which can raise almost any error
            raise _bad(self.path, f"{name} as no plain .npy array ({error})") from error
        expected = np.dtype(dtype)
        values = 1
        for n in shape:
            values *= n
        rest = len(content.getbuffer()) - content.tell()
        if found != expected or fortran or len(shape) != dimensions or values * expected.itemsize != rest:
            raise _bad(self.path, f"{name} as {found} {shape} before {rest} bytes")
        if size is not None and values != size:
            raise _bad(self.path, f"{name} of {values} values, not {size}")
        return np.frombuffer(content.read(), expected).reshape(shape)

    def of_classes(self, run: str, n: int, classes: int) -> Predictions:
        levels = _bytes_together(self.read(f"{run}/levels", np.uint8, 1, size=BYTES * n * classes)).reshape(n, classes)
        steps = self.read(f"{run}/moved", np.uint8, 1)
        count = len(steps) // FINE_BYTES
        packed = self.read(f"{run}/fine", np.uint8, 1, size=FINE_BYTES * count * classes)
        largest, temperature = self.read(f"{run}/constants", np.float64, 1, size=2).tolist()
        number = _number_of_levels(n)
        if len(steps) != FINE_BYTES * count or levels.max(initial=0) > number:
            raise _bad(self.path, f"{run}/moved of {len(steps)} bytes, or levels beyond {number}")
        moved = np.cumsum(_bytes_together(steps, FINE_BYTES).astype(np.int64))
        fine = _bytes_together(packed, FINE_BYTES).reshape(count, classes)
        if count and (moved[-1] >= n or count > n):
            raise _bad(self.path, f"{run} with {count} finer samples, to number {moved[-1]} of {n}")
        if not all(1 / _LARGEST < value < _LARGEST for value in (largest, temperature)):
            raise _bad(self.path, f"{run} with distances to {largest} or a temperature of {temperature}")
        if not all(((part == 0).sum(axis=1) == 1).all() for part in (levels, fine)):
            raise _bad(self.path, f"{run} with samples that lack one class, or have several")
        distance = _distances(levels, largest, number)
        distance[moved] = _distances(fine, largest, _FINE)
        return Predictions(-distance, scaled_softmax(-distance, 1.0), scaled_softmax(-distance, temperature))

    def of_two(self, run: str, n: int, _: int) -> Predictions:
        packed = _bytes_together(self.read(f"{run}/bins", np.uint8, 1, size=2 * n)).astype(np.int64)
        bins = np.cumsum(np.where(packed % 2, -(packed + 1) // 2, packed // 2))
        low = self.read(f"{run}/low", np.float32, 1).astype(np.float64)
        high = self.read(f"{run}/high", np.float32, 1, size=len(low)).astype(np.float64)
        constants = self.read(f"{run}/constants", np.float64, 1, size=4)
        alarms = bool(self.read(f"{run}/alarms", np.bool_, 0))
        if (
            not np.isfinite(np.r_[low, high, constants[:3]]).all()
            or np.isnan(constants[3])
            or constants[0] not in range(len(MAPPINGS))
        ):
            raise _bad(self.path, f"{run} with numbers that are not finite, or an unknown mapping")
        if (
            not len(bins)
            or bins.min() < 0
            or bins.max() >= len(low)
            or (low > high).any()
            or (high[:-1] >= low[1:]).any()
        ):
            raise _bad(self.path, f"{run} with bins that are not there, or not in order")
        spread = np.random.default_rng(0).random(n)
        score = low[bins] + (high - low)[bins] * spread
        probability = list(MAPPINGS.values())[int(constants[0])](score)
        if not ((probability >= 0) & (probability <= 1)).all():
            raise _bad(self.path, f"{run} with probabilities from {probability.min()} to {probability.max()}")
        calibrated = LogisticCalibration(constants[1], constants[2])(score)
        return Predictions(score, probability, calibrated, score > constants[3] if alarms else None)


def _run_of(replicate: str) -> RunId:
    return RunId.parse(f"dataset/model/{replicate}")


def _bytes_apart(values: NDArray[Any], width: int = BYTES) -> NDArray[np.uint8]:
    """Return the lowest bytes of whole numbers of so many bytes, then the next ones, as (width N,)."""
    return np.ascontiguousarray(values.astype("<u4").reshape(-1, 1).view(np.uint8)[:, :width].T).reshape(-1)


def _bytes_together(parts: NDArray[np.uint8], width: int = BYTES) -> NDArray[np.uint32]:
    """Return the numbers (N,) that `_bytes_apart` took apart."""
    padded = np.zeros((len(parts) // width, 4), np.uint8)
    padded[:, :width] = parts.reshape(width, -1).T
    return padded.view("<u4").reshape(-1)


def _write(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez_compressed` does, packed as well as deflate can; the bytes depend on the arrays alone."""
    members = {}
    for name, values in arrays.items():
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asanyarray(values), version=(1, 0), allow_pickle=False)
        members[f"{name}.npy"] = content.getvalue()
    _write_members(path, members)


def _write_runs(path: Path, runs: Mapping[RunId, Mapping[str, bytes]]) -> None:
    _write_members(path, {name: content for run in sorted(runs) for name, content in runs[run].items()})


def _write_members(path: str | Path, members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content, compresslevel=9)


def _bad(path: Path, found: str) -> InputError:
    return InputError(
        f"{path}: found {found}; expected predictions as the workflow writes them. Restore the file, or compute it again"
    )
