"""The record of a run: everything that says where its numbers came from.

A run leaves its record as JSON, and the evaluation of a trained model, a job of its own, one more. The evidence of a dataset or
study keeps them in `runs.jsonl` and `evaluations.jsonl`, a record a line, sorted by run.
"""

import hashlib
import json
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from replication.runs.identity import RunId

PACKAGES = (
    "torch", "numpy", "scikit-learn", "gpytorch", "studenttmixture", "pytorch-metric-learning", "mne", "medmnist", "snakemake",
    "pandas", "scipy", "safetensors", "torchvision",
)  # fmt: skip

WRITTEN = ("paper_figures", "results", "README.md")
"""Tracked paths that the workflow itself writes while runs go on. No run reads them."""
RUNS, EVALUATIONS = "runs.jsonl", "evaluations.jsonl"
"""Files of an evidence folder that hold the records of its runs, and of the evaluations of trained models."""


def digest(value: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a JSON-able value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def file_digest(paths: list[str]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the files' contents, in the order of `paths`."""
    total = hashlib.sha256()
    for path in paths:
        total.update(Path(path).read_bytes())
    return total.hexdigest()[:16]


def commit() -> tuple[str, bool]:
    """Return the checked-out commit, and whether tracked files but `WRITTEN` differ from it; ("unknown", True) without git."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

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
    names = re.findall(r"^model name\s*:(.*)", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else []
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

    settings: all that decide the run's results, kept whole, so that tables can print them. The model of a run on data belongs to
    them: CLaI-M and CLaI-C may differ in nothing else. description: `dataset.json` of the prepared data; its `files` are empty
    for checks and measurements, which have no model.
    """

    def __init__(self, run: RunId, settings: Mapping[str, Any], description: Mapping[str, Any], device: str) -> None:
        revision, dirty = commit()
        self.started = time.perf_counter()
        data = checksums(description)
        recorded = {"model": run.cell, **settings} if data else dict(settings)
        self.record: dict[str, Any] = {
            "run": str(run),
            "commit": revision,
            "dirty": dirty,
            "config_hash": digest(recorded),
            "settings": recorded,
            "data": data,
            "seed": run.seed,
            "fold": run.fold,
            "threads": settings["threads"],
            "device": device,
            "hardware": hardware(device),
            "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
        }

    def finish(self, earlier_seconds: float = 0.0, earlier_cpu_seconds: float = 0.0, **more: Any) -> dict[str, Any]:
        """Return the record with wall and processor time (s), of interrupted processes too, peak memory (MiB) and `more`."""
        return {
            **self.record,
            "wall_seconds": round(earlier_seconds + time.perf_counter() - self.started, 2),
            "cpu_seconds": round(earlier_cpu_seconds + time.process_time(), 2),
            "peak_memory_mb": round(peak_memory()),
            **more,
        }

    def write(self, path: str | Path, **more: Any) -> None:
        Path(path).write_text(json.dumps(self.finish(**more), indent=1, sort_keys=True) + "\n")


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records, in any order, a line each."""
    ordered = sorted(records, key=lambda record: str(record["run"]))
    lines = (json.dumps(record, sort_keys=True, separators=(",", ":")) for record in ordered)
    path.write_text("".join(f"{line}\n" for line in lines))


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, sorted by run."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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


def peak_gpu_memory() -> float:
    """Return the most memory that this process has allocated on its GPU so far, in MiB."""
    import torch

    return float(torch.cuda.max_memory_allocated() / 2**20)
