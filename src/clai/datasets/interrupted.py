"""Preparing a dataset may be interrupted, and must not leave rows of patients in hidden folders."""

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
    """Delete the temporary folders beside `out_dir` that killed attempts to write it have left.

    They are those that `tempfile` named with the prefix `.{out_dir.name}-`, or `.{out_dir.name}-duckdb-`.
    """
    left = re.compile(rf"\.{re.escape(out_dir.name)}-(duckdb-)?[a-z0-9_]{{8}}")
    for folder in out_dir.parent.iterdir() if out_dir.parent.is_dir() else ():
        if left.fullmatch(folder.name) and folder.is_dir():
            logger.info("removing %s, which an interrupted attempt left", folder)
            shutil.rmtree(folder)


@contextmanager
def leaving_when_asked() -> Iterator[None]:
    """Within the block SIGTERM raises SystemExit, so that temporary folders are cleaned up.

    The exit status is that of a training that is asked to stop (`clai.checkpoints.STOPPED`, which is not imported here because
    it comes with torch). For the main thread only.
    """
    asked = False

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, signal.SIG_IGN)  # a second one would end the cleaning up
        logger.info("SIGTERM: stopped, and nothing is left; the same command starts anew")
        raise SystemExit(os.EX_TEMPFAIL)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except Exception:
        if asked:  # DuckDB turns what the handler raises into an error of its own
            raise SystemExit(os.EX_TEMPFAIL) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
