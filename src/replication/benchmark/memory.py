"""Peak memory of a case, measured in a process that does nothing else."""

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import nn

from replication.runs.jobs import use_threads
from replication.runs.memory import peak_gpu_memory, peak_memory


class Case(Protocol):
    """A computation whose memory is measured; it can be pickled."""

    def peak_memory(self) -> float:
        """Run the computation and return its peak memory in MiB."""


def peak(device: str) -> float:
    """Return the peak memory so far in MiB: of the GPU for the device `cuda`, else of this process."""
    return peak_gpu_memory() if device == "cuda" else peak_memory()


def peaks_alone(cases: Sequence[Case]) -> list[float]:
    """Return the peak memory (MiB) of each case, each run in a process of its own.

    A fresh process imports the libraries, does nothing else, and forks one process after another.
    """
    # The import of the whole benchmark gives all cases the same libraries in memory.
    code = "import replication.benchmark.measure; from replication.benchmark.memory import serve; serve()"
    command = [sys.executable, "-c", code]
    request = pickle.dumps((list(cases), torch.get_num_threads()))
    answer = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=True)
    return list(pickle.loads(answer.stdout))


def serve() -> None:
    """Be the fresh process of `peaks_alone`: read pickled cases from standard input, write their peaks to standard output."""
    cases, threads = pickle.load(sys.stdin.buffer)
    # The first step of an optimiser imports much of torch, which is no memory of the training.
    weight = nn.Parameter(torch.zeros(()))
    weight.grad = torch.zeros(())
    torch.optim.SGD([weight]).step()
    context = multiprocessing.get_context("fork")
    peaks = []
    for case in cases:
        with context.Pool(1, use_threads, [threads]) as child:
            peaks.append(child.apply(case.peak_memory))
    sys.stdout.buffer.write(pickle.dumps(peaks))
