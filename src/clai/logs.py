"""Logging for scripts: what a job says goes to its log file and to the console."""

import logging
import sys
from pathlib import Path
from types import TracebackType

from clai.errors import InputError

logger = logging.getLogger("clai")


def log_to(path: str | Path) -> None:
    """Send log records, warnings and uncaught exceptions of this process to `path` as well as to the console.

    An uncaught `InputError` is shown as its message alone; anything else with its traceback.
    """
    handlers: list[logging.Handler] = [logging.FileHandler(path, mode="w"), logging.StreamHandler(sys.stderr)]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", handlers=handlers)
    logging.captureWarnings(True)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            logger.error("error: %s", error)
        else:
            logger.error("uncaught exception", exc_info=(kind, error, trace))

    sys.excepthook = hook
