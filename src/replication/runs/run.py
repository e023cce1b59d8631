"""One run: its identity, the start of its job, its record, and the evidence that its files are gathered into.

A run leaves its record as JSON, and the evaluation of a trained model, a job of its own, one more. The evidence of a dataset or
study keeps them in `runs.jsonl` and `evaluations.jsonl`, a record a line, sorted by run.
"""

import errno
import gc
import hashlib
import json
import logging
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from threadpoolctl import threadpool_limits

from clailearn.errors import InputError, legible
from replication.runs.registry import REPOSITORY, read_json

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("replication")

PACKAGES = (
    "torch", "numpy", "scikit-learn", "gpytorch", "studenttmixture", "pytorch-metric-learning", "mne", "medmnist", "snakemake",
    "pandas", "scipy", "safetensors", "torchvision",
)  # fmt: skip

WRITTEN = ("paper_figures", "results", "README.md")
"""Tracked paths that rules and fill_pages.py write while runs go on. No run reads them."""
RUNS, EVALUATIONS = "runs.jsonl", "evaluations.jsonl"
"""Files of an evidence folder that hold the records of its runs, and of the evaluations of trained models."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk, or of a limit on files."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that libraries of threads read once, when they are loaded."""

MESSAGE_LINES = 20
"""Lines that are shown again of the message of a job that failed."""

SAMPLES = "samples.parquet"
"""File of an evidence folder that holds the labels of the test samples."""
DESCRIPTION = "dataset.json"
"""File of an evidence folder that describes the data."""

COLUMNS: dict[str, list[str]] = {
    "metrics.csv": ["name", "cell", "seed", "fold", "rule", "shares", "metric", "value"],
    "history.csv": [
        "name", "cell", "seed", "fold", "epoch", "loss", "floor", "alignment", "centred_alignment",
        "validation_accuracy", "validation_auroc", "learning_rate",
    ],
    "reliability.csv": ["model", "seed", "fold", "kind", "mapping", "bin", "n", "confidence", "accuracy"],
    "similarity.csv": ["model", "seed", "class_a", "class_b", "similarity"],
    "tsne.csv.gz": ["model", "x", "y", "label"],
    "stages.csv.gz": ["stage", "x", "y", "label"],
    "votes.csv.gz": [
        "model", "image", "predicted", "role", "place", "item", "label", "similarity", "vote", "height", "width", "pixels",
    ],
    "comparisons.csv": ["cell", "other", "metric", "value", "low", "high", "p", "samples", "seeds", "draws"],
    "signals.csv": ["model", "hour", "signal", "value", "sd", "event"],
    "areas.csv": ["model", "since_onset", "area", "low", "high", "stays"],
    "latent.csv": ["model", "seed", "fold", "quantity", "value"],
    "alignment.csv": ["cell", "seed", "epoch", "kernel", "alignment", "centred_alignment"],
    "agreement.csv": ["model", "seed", "fold", "share", "quantity", "value"],
    "theory.csv": ["check", "share", "bandwidth", "rule", "size", "seed", "quantity", "value"],
    "benchmark.csv": ["comparison", "variant", "M", "C", "B", "repetition", "quantity", "value"],
}  # fmt: skip

STUDY_HISTORY = [*COLUMNS["history.csv"], "turn_change", "operations", "seconds"]
"""Columns of the history of a study; docs/architecture.md explains them."""


@dataclass(frozen=True, order=True)
class RunId:
    """The identity of a run; as text, its folder.

    name: key of a dataset or study. cell: the model of a dataset, or the cell of a study. fold: test fold of recordings, or None.

    >>> str(RunId("challenge2019", "gp", 0, 3))
    'challenge2019/gp/seed0/fold3'
    """

    name: str
    cell: str
    seed: int
    fold: int | None = None

    def __str__(self) -> str:
        return f"{self.name}/{self.cell}/{self.replicate}"

    @property
    def replicate(self) -> str:
        """Return `seed0`, or `seed0/fold3` where there are folds."""
        return f"seed{self.seed}" + ("" if self.fold is None else f"/fold{self.fold}")

    @classmethod
    def parse(cls, text: str | Path) -> Self:
        """Read the identity from a run's name, or from the path of one of its files; raise ValueError if it names no run.

        >>> RunId.parse("results/mini/cifar10/clai-m/seed1/metrics.csv")
        RunId(name='cifar10', cell='clai-m', seed=1, fold=None)
        """
        match = re.match(r"(?:.*/)?([^/]+)/([^/]+)/seed(\d+)(?:/fold(\d+))?(?=/|$)", str(text))  # the last such place
        if match is None:
            raise ValueError(
                f"{text} names no run: expected <dataset or study>/<model or cell>/seed<n>, then /fold<n> where there are folds"
            )
        name, cell, seed, fold = match.groups()
        return cls(name, cell, int(seed), None if fold is None else int(fold))


# Jobs


def use_threads(count: int) -> None:
    """Compute with this many threads: OpenMP, MKL, OpenBLAS and torch alike, here and in processes started from here.

    Libraries that are not loaded yet, and new processes, read the environment; those that are loaded are told. Every process that
    trains or evaluates calls it, because results depend on the number of threads.
    """
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    threadpool_limits(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


class Legible(logging.Formatter):
    """Writes escapes for what a terminal would obey: messages name files and classes, of strangers too."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(legible, super().format(record).split("\n")))


def start_job(log: str | Path) -> None:
    """Send log records, warnings and exceptions to a file and the console; an `InputError`, and a full disk, as a message."""
    # After the imports: collections would go through all of torch again and again.
    gc.freeze()
    handlers = (logging.FileHandler(log, mode="w", encoding="utf-8"), logging.StreamHandler(sys.stderr))
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    for handler in handlers:
        handler.setFormatter(Legible("%(asctime)s %(message)s", "%H:%M:%S"))
    logging.captureWarnings(True)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            logger.error("error: %s", error)
        elif isinstance(error, OSError) and error.errno in NO_ROOM:
            logger.error("error: %s; make room, and give the same command again", error)
        else:
            logger.error("uncaught exception", exc_info=(kind, error, trace))

    sys.excepthook = hook


def remove_finished_checkpoints(results: Path) -> None:
    """Delete the checkpoints of runs below `results` whose last file is there: a record, or embeddings where there is none.

    A run does not: until Snakemake has noted its end, minutes later on a cluster, an interruption would start it anew.
    """
    for last in ("run.json", "embedded.safetensors"):
        for file in results.rglob(last):
            if last != "run.json" and file.with_name("evaluation.json").exists():
                continue  # of a run that is trained again, whose record has gone
            for checkpoint in file.parent.glob("*checkpoint.pt*"):
                checkpoint.unlink()


def restore_outputs(folder: str) -> None:
    """Bring tracked files of a folder back that Snakemake deleted for jobs that failed, as old ones, which it makes anew.

    Snakemake's own `update` would give them the time of the failure, after which they count as made.
    """
    with suppress(OSError, subprocess.CalledProcessError):  # without git nothing is tracked
        deleted = [path for path in git("ls-files", "-z", "--deleted", "--", folder).split("\0") if path]
        if deleted:
            git("restore", "--", *deleted)
        for path in deleted:
            os.utime(path, (0, 0))


def failures(logs: Sequence[str]) -> str:
    """Return how each job that failed ended: the error in its log, which Snakemake's own `logs` name."""
    said = "".join(Path(log).read_text(encoding="utf-8") for log in logs)
    named = re.findall(
        r"^Error in rule (.+):\n(?:    .*\n)*?    jobid: (.+)\n(?:    .*\n)*?    log: ([^ ,]+)", said, re.MULTILINE
    )
    finished = re.findall(r"^Finished jobid: (\d+)", said, re.MULTILINE)  # at a further attempt
    ends = dict[str, str]()
    for rule, job, log in named:
        text = Path(log).read_text(encoding="utf-8", errors="replace") if Path(log).exists() else ""
        *_, message = re.split(r"^\S+ (?=error: |uncaught exception)", text, flags=re.MULTILINE)
        lines = message.strip().splitlines() if message != text else ["ended without a message, as if it was killed"]
        if job not in finished:
            ends[log] = "\n".join([f"{rule} failed ({log}):", *lines[-MESSAGE_LINES:]])
    return "\n\n".join(ends.values())


# Records


def git(*arguments: str) -> str:
    """Return what a command of git says; raise OSError or CalledProcessError where it fails."""
    return subprocess.run(["git", *arguments], capture_output=True, encoding="utf-8", check=True).stdout.strip()


def digest(value: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a JSON-able value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def write_checksums(path: Path, files: Iterable[Path]) -> str:
    """Write the checksum of each file to `path`, unless it has them; return the path. A new one is as old as the newest file."""
    ordered = sorted(set(files))
    text = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(REPOSITORY)}\n" for file in ordered
    )
    new = not path.exists()
    if new or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        writing = path.with_suffix(f".{os.getpid()}")  # Processes of one machine may write at once.
        writing.write_text(text, encoding="utf-8")
        if new:
            newest = max(file.stat().st_mtime for file in ordered)
            os.utime(writing, (newest, newest))
        writing.replace(path)
    return str(path)


def commit() -> tuple[str, bool]:
    """Return the checked-out commit, and whether tracked files but `WRITTEN` differ from it; ("unknown", True) without git."""
    try:
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", ":/", *(f":(top,exclude){p}" for p in WRITTEN)
        )
        return git("rev-parse", "HEAD"), bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True


def hardware(device: str) -> str:
    """Return the processor's model and number of cores, after the GPU's model if `device` is `cuda`."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    names = re.findall(r"^model name\s*:(.*)", text, re.MULTILINE)
    model = f"{names[0].strip()}, {len(names)} cores" if names else platform.processor() or platform.machine()
    if device == "cuda":
        import torch

        return f"{torch.cuda.get_device_name()}; {model}"
    return model


def checksums(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the checksum of each raw file, from the `dataset.json` of a prepared dataset."""
    return {file["file"]: file["checksum"] for file in description["files"]}


class Recorder:
    """Collect the record of a run from its start on.

    settings: all that decide the run's results, the model among them, kept whole, so that tables can print them. description:
    `dataset.json` of the prepared data; its `files` are empty for checks and measurements.
    """

    def __init__(self, run: RunId, settings: Mapping[str, Any], description: Mapping[str, Any], device: str) -> None:
        revision, dirty = commit()
        self.started = time.perf_counter()
        self.record: dict[str, Any] = {
            "run": str(run),
            "commit": revision,
            "dirty": dirty,
            "config_hash": digest(settings),
            "settings": dict(settings),
            "data": checksums(description),
            "seed": run.seed,
            "fold": run.fold,
            "threads": settings["threads"],
            "device": device,
            "hardware": hardware(device),
            "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
        }

    def finish(self, earlier: tuple[float, float] = (0.0, 0.0), **more: Any) -> dict[str, Any]:
        """Return the record with `more`, peak memory (MiB), and wall and processor time (s), `earlier` processes included."""
        return {
            **self.record,
            "wall_seconds": round(earlier[0] + time.perf_counter() - self.started, 2),
            "cpu_seconds": round(earlier[1] + time.process_time(), 2),
            "peak_memory_mb": round(peak_memory()),
            **more,
        }

    def write(self, path: str | Path, **more: Any) -> None:
        Path(path).write_text(json.dumps(self.finish(**more), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records, in any order, a line each."""
    ordered = sorted(records, key=lambda record: str(record["run"]))
    lines = (json.dumps(record, sort_keys=True, separators=(",", ":")) for record in ordered)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, sorted by run."""
    return read_json(path, lines=True)


def records_of(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the runs of an evidence folder, sorted by run, each with that of its evaluation, if it has one."""
    path = folder / EVALUATIONS
    evaluations = {record["run"]: record for record in read_records(path)} if path.exists() else {}
    return [
        record | {"evaluation": evaluations[record["run"]]} if record["run"] in evaluations else record
        for record in read_records(folder / RUNS)
    ]


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


# Evidence


def gather(tables: Mapping[str, "pd.DataFrame"], columns: Sequence[str]) -> "pd.DataFrame":
    """Join the tables of runs, by the path of a file of the run, into one with these columns, empty where a table lacks one."""
    import pandas as pd  # slow, and the Snakefile needs none of it

    if not tables:  # such as the histories of a dataset whose models are all fitted at once
        return pd.DataFrame(columns=list(columns))
    frames = [
        table.assign(**asdict(run), model=run.cell).astype({"fold": "Int64"}).dropna(axis=1, how="all")
        for run, table in ((RunId.parse(path), table) for path, table in tables.items())
    ]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(columns))


def write_gathered(path: Path, files: Sequence[str | Path], study: bool, samples: int | None) -> None:
    """Write a file of evidence: the records or the tables of runs, or the description of their data, one of `files`.

    samples: on which a study trains, if not on all.
    """
    if path.name in (RUNS, EVALUATIONS):
        write_records(path, map(read_json, files))
    elif path.name == DESCRIPTION:
        description = read_json(files[0])
        if samples is not None:
            train = description["splits"].get("train", {"n": 0})["n"]  # recordings have folds, and train on all
            if samples < train:
                description["title"] += f", {samples:,} of {train:,} training samples"
        path.write_text(json.dumps(description, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    else:
        import pandas as pd

        columns = STUDY_HISTORY if study and path.name == "history.csv" else COLUMNS[path.name]
        gather({str(file): pd.read_csv(file) for file in files}, columns).to_csv(path, index=False)


def predictions_of(model: str) -> str:
    """Return the name of the file of an evidence folder that holds a model's predictions."""
    return f"predictions_{model}.parquet"
