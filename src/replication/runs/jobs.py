"""The start of a job of the workflow: send its messages to a log, keep short jobs short, and set its number of threads."""

import gc
import logging
import os
import sys
from pathlib import Path
from types import TracebackType

from threadpoolctl import threadpool_limits

from clailearn.errors import InputError

logger = logging.getLogger("replication")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that libraries of threads read once, when they are loaded."""


def use_threads(count: int) -> None:
    """Compute with this many threads: OpenMP, MKL, OpenBLAS and torch alike, here and in processes started from here.

    Libraries that are not loaded yet, and new processes, read the environment; those that are loaded are told. Every process that
    computes calls it, because results depend on the number of threads.
    """
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    threadpool_limits(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def start_job(log: str | Path) -> None:
    """Send log records, warnings and exceptions to a file and the console; an `InputError` as its message alone."""
    # After the imports: collections would go through all of torch again and again.
    gc.freeze()
    handlers: list[logging.Handler] = [logging.FileHandler(log, mode="w"), logging.StreamHandler(sys.stderr)]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", handlers=handlers)
    logging.captureWarnings(True)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            logger.error("error: %s", error)
        else:
            logger.error("uncaught exception", exc_info=(kind, error, trace))

    sys.excepthook = hook


def remove_finished_checkpoints(results: Path) -> None:
    """Delete the checkpoints of runs below `results` whose last file is there: a record, or embeddings where there is none.

    A run does not: until Snakemake has noted its end, minutes later on a cluster, an interruption would start it anew.
    """
    for last in ("run.json", "embedded.safetensors"):
        for file in results.rglob(last):
            for checkpoint in file.parent.glob("*checkpoint.pt*"):
                checkpoint.unlink()
