"""The start of a job of the workflow: send its messages to a log, keep short jobs short, and set its number of threads."""

import errno
import gc
import logging
import os
import sys
from pathlib import Path
from types import TracebackType

from threadpoolctl import threadpool_limits

from clai.errors import InputError

logger = logging.getLogger("replication")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that libraries of threads read once, when they are loaded."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Words for it in torch's messages: on the CPU, on the GPU, and from the libraries that torch calls there.
_NO_MEMORY = ("can't allocate memory", "out of memory", "ALLOC_FAILED")


def use_threads(count: int) -> None:
    """Compute with this many threads: OpenMP, MKL, OpenBLAS and torch alike, here and in processes started from here.

    Call it at any time. Libraries that are not loaded yet, and new processes, read the environment; those that are loaded are
    told. Every process that computes calls it, so that results, which depend on the number of threads, follow the settings.
    """
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    threadpool_limits(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def start_job(log: str | Path, lower: str = "") -> None:
    """Send log records, warnings and uncaught exceptions of this process to a file and to the console.

    An uncaught `InputError` shows as its message alone. Any other exception shows with its traceback, and with advice where
    memory or disk space ran out.

    Call it after the imports. It takes their objects out of Python's garbage collection, which would otherwise go through all of
    torch again and again, and once more at the end.

    Args:
        log: the file.
        lower: the settings that decide how much memory the job needs; advice names them if memory runs out.
    """
    gc.freeze()
    handlers: list[logging.Handler] = [logging.FileHandler(log, mode="w"), logging.StreamHandler(sys.stderr)]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", handlers=handlers)
    logging.captureWarnings(True)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            logger.error("error: %s", error)
            return
        logger.error("uncaught exception", exc_info=(kind, error, trace))
        if advice := _advice(error, lower):
            logger.error("error: %s", advice)

    sys.excepthook = hook


def _advice(error: BaseException, lower: str) -> str | None:
    """Return what to do about a limit that was hit, or None for any other error."""
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    ):
        settings = f"lower {lower}; or " if lower else ""
        return (
            f"out of memory: {settings}run fewer jobs at once (--cores, --jobs), or give the job more (mem_mb in the cluster's "
            "profile)"
        )
    if isinstance(error, OSError) and error.errno in _FULL:
        return (
            f"no room to write {error.filename or 'a file'} ({error.strerror}): make room and run the same command again. What "
            "was finished before is untouched, and a training goes on from its last checkpoint"
        )
    return None


def remove_finished_checkpoints(results: Path) -> None:
    """Delete the checkpoints of runs below `results` whose last file is there: a record, or embeddings where there is none.

    A run does not delete its own: until Snakemake has noted that the job is done, which takes minutes on a cluster, an
    interruption would start it anew.
    """
    for last in ("run.json", "embedded.safetensors"):
        for file in results.rglob(last):
            for checkpoint in file.parent.glob("*checkpoint.pt*"):
                checkpoint.unlink()
