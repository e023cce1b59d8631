"""An interrupted preparation leaves nothing behind: temporary folders hold rows of patients."""

import logging
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

logger = logging.getLogger(__name__)


def remove_leftovers(out_dir: Path) -> None:
    """Delete the temporary folders that killed attempts to write `out_dir` left beside it.

    `tempfile` named them with the prefix `.{out_dir.name}-` or `.{out_dir.name}-duckdb-`.
    """
    leftover = re.compile(rf"\.{re.escape(out_dir.name)}-(duckdb-)?[a-z0-9_]{{8}}")
    for folder in out_dir.parent.iterdir() if out_dir.parent.is_dir() else ():
        if leftover.fullmatch(folder.name) and folder.is_dir():
            logger.info("removing %s, which an interrupted attempt left", folder)
            shutil.rmtree(folder)


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit within the block, so that temporary folders are removed.

    The exit status equals `clai.checkpoints.STOPPED`, which a stopped training has; the import of that module would bring
    torch along. Works in the main thread only.
    """
    terminated = False

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal terminated
        terminated = True
        signal.signal(number, signal.SIG_IGN)  # A second signal would interrupt the removal.
        logger.info("SIGTERM: stopped, and nothing is left; the same command starts anew")
        raise SystemExit(os.EX_TEMPFAIL)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except Exception:
        if terminated:  # DuckDB replaces the SystemExit by an error of its own.
            raise SystemExit(os.EX_TEMPFAIL) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
