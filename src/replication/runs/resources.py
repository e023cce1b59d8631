"""Time, memory and disk of a stage of the workflow. Records of runs hold those of models; the other stages have files here."""

import json
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MIB = 2**20


class StageMeter:
    """Measure a stage from its start to `finish`, or to `write`."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.started, self.started_cpu = time.perf_counter(), time.process_time()

    def finish(self, disk_mb: float) -> dict[str, Any]:
        """Return wall and processor time (s) since the start, the peak memory of this process (MiB), and the disk taken (MiB)."""
        return {
            "stage": self.stage,
            "wall_seconds": round(time.perf_counter() - self.started, 2),
            "cpu_seconds": round(time.process_time() - self.started_cpu, 2),
            "peak_memory_mb": round(peak_memory()),
            "disk_mb": disk_mb,
        }

    def write(self, path: str, disk_mb: float) -> None:
        """Write what `finish` returns as JSON."""
        Path(path).write_text(json.dumps(self.finish(disk_mb), indent=1, sort_keys=True) + "\n")


def disk_mb(files: Iterable[str | Path]) -> float:
    """Return the size of those files that are there, in MiB."""
    sizes = [path.stat().st_size for path in map(Path, files) if path.exists()]
    return round(sum(sizes) / MIB, 3)


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def peak_gpu_memory() -> float:
    """Return the most memory that this process has allocated on its GPU so far, in MiB."""
    import torch

    return float(torch.cuda.max_memory_allocated() / MIB)
