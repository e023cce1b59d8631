"""Short jobs that share their imports: each is a fork of one process that has imported the large libraries.

Importing torch, its compiler, pandas and scikit-learn takes longer than the work of most jobs of the miniature pipeline.
"""

import ctypes
import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from multiprocessing.connection import wait
from threading import Lock

from replication.runs.jobs import THREAD_VARIABLES

IMPORTED = [
    "snakemake.cli", "snakemake.script", "torch._dynamo", "safetensors.torch", "pandas", "sklearn.ensemble", "matplotlib.pyplot",
    "matplotlib.backends.backend_pdf",
]  # fmt: skip
"""Modules that many jobs need; optimisers import the compiler of torch. None starts a thread, which a fork would lose.

No job needs `snakemake.cli`, but multiprocessing runs the main module of this process, which imports it, again in each fork."""
THREADS = 1
"""Threads of a job. Libraries read their number when they are imported, so a job with another number cannot be a fork."""

_SIGNAL_AT_END_OF_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

_lock = Lock()


def run_in_fork(script: str, temporary: str) -> None:
    """Run a Python script in a fork of the process that holds the imports, and wait for its end.

    The first call starts that process; it ends with this one. The fork has the working directory and the console of this
    process, and belongs to the same process group, so that signals to the group reach it. Threads may call at the same time.

    Args:
        script: path of the script.
        temporary: folder for its temporary files.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_run, args=(script, temporary))
    with _lock:
        # Inherited by the process with the imports; for other jobs Snakemake sets its own.
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
        context.set_forkserver_preload(IMPORTED)
        process.start()
    # multiprocessing polls all its processes when it starts one. Only one thread may poll a process, hence the lock.
    wait([process.sentinel])
    with _lock:
        process.join()
    if process.exitcode:
        raise subprocess.CalledProcessError(process.exitcode, [sys.executable, script])


def _run(script: str, temporary: str) -> None:
    """Run a script in this process as Python would run it alone.

    Where the system can, the process gets SIGTERM when the one that holds the imports ends, which only a kill makes it do while
    jobs run. Snakemake then counts the job as failed and removes its outputs, so it must write no more.
    """
    gc.freeze()  # a collection writes to every object, and memory that is shared with the other process is then copied
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_END_OF_PARENT, signal.SIGTERM)
    os.environ["TMPDIR"] = temporary
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)  # the script's own; multiprocessing would not call it
        sys.exit(1)
