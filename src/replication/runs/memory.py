"""The peak memory of this process."""

import resource
import sys


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def peak_gpu_memory() -> float:
    """Return the most memory that this process has allocated on its GPU so far, in MiB."""
    import torch

    return float(torch.cuda.max_memory_allocated() / 2**20)
