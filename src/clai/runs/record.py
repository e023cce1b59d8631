"""The record of a run: what is needed to say where a number came from."""

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from clai.runs.memory import peak_gpu_memory, peak_memory

PACKAGES = (
    "torch", "numpy", "scikit-learn", "gpytorch", "studenttmixture", "pytorch-metric-learning", "mne", "medmnist", "snakemake",
    "pandas", "scipy", "safetensors", "torchvision",
)  # fmt: skip

WRITTEN = ("paper_figures", "results", "README.md")
"""Tracked, and written by the workflow itself: changed while runs go on, and read by no run."""


def digest(value: Any) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a JSON-able value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def file_digest(paths: list[str]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the files' contents, in the given order."""
    total = hashlib.sha256()
    for path in paths:
        total.update(Path(path).read_bytes())
    return total.hexdigest()[:16]


def commit() -> tuple[str, bool]:
    """The checked-out commit and whether tracked files that decide results differ from it; ("unknown", True) outside a checkout.

    What the workflow itself writes among tracked files, while runs go on, makes no run dirty.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", ":/", *(f":(top,exclude){p}" for p in WRITTEN)
        )
        return git("rev-parse", "HEAD"), bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True


def hardware(device: str = "cpu") -> str:
    """Processor model and number of cores; on the device `cuda` the GPU's model, too."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            model = f"{names[0]}, {len(names)} cores"
    if device == "cuda":
        import torch

        return f"{torch.cuda.get_device_name()}; {model}"
    return model


def checksums(description: Mapping[str, Any]) -> dict[str, str]:
    """Checksum of each raw file of a prepared dataset, by its `dataset.json`."""
    return {file["file"]: file["checksum"] for file in description["files"]}


class Recorder:
    """Collects a run's record from its start on.

    Args:
        run: <dataset or study>/<model or cell>/<seed and fold>.
        settings: all that decide the run's results, `threads` among them; kept whole, so that tables say what it was made with.
        description: `dataset.json` of the prepared data.

    >>> recorder = Recorder("cifar10/clai-m/seed0", {"threads": 1}, {"files": []}, seed=0, fold=None, device="cpu")
    >>> sorted(recorder.finish())[:4]
    ['command', 'commit', 'config_hash', 'cpu_seconds']
    """

    def __init__(
        self,
        run: str,
        settings: Mapping[str, Any],
        description: Mapping[str, Any],
        seed: int,
        fold: int | None,
        device: str,
    ) -> None:
        revision, dirty = commit()
        self.started = time.perf_counter()
        self.record: dict[str, Any] = {
            "run": run,
            "commit": revision,
            "dirty": dirty,
            "config_hash": digest(settings),
            "settings": dict(settings),
            "data": checksums(description),
            "seed": seed,
            "fold": fold,
            "threads": settings["threads"],
            "device": device,
            "hardware": hardware(device),
            "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        }

    def finish(self, earlier_seconds: float = 0.0, **more: Any) -> dict[str, Any]:
        """The record, with wall and processor time (s), peak memory (MiB) and what the run wants to add.

        earlier_seconds: wall time that interrupted processes spent on what this one went on with. Processor time and memory are
        this one's alone.
        """
        seconds = earlier_seconds + time.perf_counter() - self.started
        record = {
            **self.record,
            "wall_seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time(), 2),
            "peak_memory_mb": round(peak_memory()),
            "command": "",
            "pairs": None,
            **more,
        }
        if self.record["device"] == "cuda":
            record["peak_gpu_memory_mb"] = round(peak_gpu_memory())
        return record

    def write(self, path: str | Path, **more: Any) -> None:
        """Write the finished record as JSON."""
        Path(path).write_text(json.dumps(self.finish(**more), indent=1, sort_keys=True) + "\n")


def with_evaluation(record: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a training with that of its evaluation, another job, under `evaluation`.

    Of the evaluation's settings those that the training does not share.
    """
    shared = (
        "commit",
        "dirty",
        "config_hash",
        "device",
        "hardware",
        "wall_seconds",
        "cpu_seconds",
        "peak_memory_mb",
        "command",
    )
    further = {key: value for key, value in evaluation["settings"].items() if record["settings"].get(key) != value}
    return {**record, "evaluation": {**{key: evaluation[key] for key in shared}, "settings": further}}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
