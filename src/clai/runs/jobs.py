"""How the workflow's scripts begin: where a job's messages go, and what keeps short jobs short."""

import errno
import gc
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from clai.errors import InputError

logger = logging.getLogger("clai")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What torch calls it: on the CPU, on the GPU, and in the libraries that it calls there.
_NO_MEMORY = ("can't allocate memory", "out of memory", "ALLOC_FAILED")


def start_job(log: str | Path, lower: str = "") -> None:
    """Send log records, warnings and uncaught exceptions of this process to the file `log` as well as to the console.

    An uncaught `InputError` is shown as its message alone; anything else with its traceback, and with what to do about it where
    memory or disk space ran out.

    To be called after the imports: what they made is taken out of Python's garbage collection, which would otherwise go through
    all of torch again and again, and once more at the end.

    Args:
        lower: the settings that decide how much memory the job needs, named if it runs out.
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


def with_block(settings: Mapping[str, Any], block: int) -> dict[str, Any]:
    """The settings with `inference.block`, which jobs get apart and records leave out: it bounds memory and decides no result."""
    return {**settings, "inference": {**settings["inference"], "block": block}}


def _advice(error: BaseException, lower: str) -> str | None:
    """What to do about a limit that was hit, or None for any other error."""
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
    """Delete the checkpoints of runs below `results` whose record is there; a run writes its record last.

    A run does not delete its own: until Snakemake has noted that the job is done, which takes minutes on a cluster, an
    interruption would start it anew.
    """
    for record in results.rglob("run.json"):
        for checkpoint in record.parent.glob("*checkpoint.pt*"):
            checkpoint.unlink()
