"""A script that runs in a fork behaves as if Python had started it, and finds its libraries imported."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

import pytest

from replication.runs.forks import run_in_fork

ABOUT = """
import gc, json, os, sys
before = set(sys.modules)
import torch._dynamo, pandas, sklearn.ensemble
about = {
    "process": os.getpid(), "parent": os.getppid(), "name": __name__, "argv": sys.argv, "folder": os.getcwd(),
    "imported": sorted({"torch._dynamo", "pandas", "sklearn.ensemble"} - before),
    "threads": torch.get_num_threads(), "threads_of_parent": len(os.listdir(f"/proc/{os.getppid()}/task")),
    "frozen": gc.get_freeze_count(),
    "group": os.getpgrp(), "temporary": os.environ["TMPDIR"], "cuda_is_lost": torch.cuda._is_in_bad_fork(),
}
with open(sys.argv[0] + ".json", "w") as stream:
    json.dump(about, stream)
"""


@pytest.fixture(scope="module", autouse=True)
def server_of_this_module() -> None:
    """Stop a process with imports that other tests have started: theirs are others."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script."""

    def write(text: str, name: str = "script.py") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def run(path: Path) -> dict[str, object]:
    """What the script ABOUT says of itself."""
    run_in_fork(str(path), str(path.parent))
    return dict(json.loads(Path(f"{path}.json").read_text()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_script_runs_as_alone_but_imports_nothing_again(
    script: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(ABOUT)
    monkeypatch.chdir(tmp_path)
    about = run(path)
    assert (about["name"], about["argv"], about["folder"]) == ("__main__", [str(path)], str(tmp_path))
    assert (about["group"], about["temporary"]) == (os.getpgrp(), str(tmp_path))
    assert about["imported"] == []
    assert about["frozen"] > 100_000, "garbage collection would go through all imports, and copy their memory"
    assert about["threads"] == 1
    assert not about["cuda_is_lost"], "an import has asked for GPUs, and after that no fork can use one"
    assert about["threads_of_parent"] == 1, "a fork has one thread: those that an import starts would be missing"


def test_scripts_that_run_at_the_same_time_are_processes_of_the_same_one(script: Callable[..., Path]) -> None:
    paths = [script(ABOUT, f"script{number}.py") for number in range(8)]
    found: list[dict[str, object]] = []
    threads = [threading.Thread(target=lambda path=path: found.append(run(path))) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({about["process"] for about in found}) == len(paths)
    assert len({about["parent"] for about in found}) == 1


FAILING = {
    "own_hook": ("import sys\nsys.excepthook = lambda kind, error, trace: print('own hook:', error)\n1 / 0", 1),
    "exception": ("[][0]", 1),
    "status": ("raise SystemExit(3)", 3),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9),
}
"""Scripts, and the status with which each ends."""

RUN_ALL = """
import subprocess, sys
from replication.runs.forks import run_in_fork
for script in sys.argv[1:]:
    try:
        run_in_fork(script, "/tmp")
    except subprocess.CalledProcessError as error:
        print("status", error.returncode, flush=True)
"""


def test_a_script_that_fails_says_so(script: Callable[..., Path]) -> None:
    paths = [str(script(text, f"{name}.py")) for name, (text, _) in FAILING.items()]
    done = subprocess.run([sys.executable, "-c", RUN_ALL, *paths], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert [line for line in said if line.startswith("status")] == [
        f"status {status}" for _, status in FAILING.values()
    ]
    assert "own hook: division by zero" in said
    assert "ZeroDivisionError" not in done.stderr, "the script's hook had it"
    assert "IndexError: list index out of range" in done.stderr


COMMAND = """
import sys
known = "snakemake.cli" in sys.modules
import snakemake.cli
from replication.runs.forks import run_in_fork
if __name__ == "__main__":
    run_in_fork(sys.argv[1], "/tmp")
"""
"""A main module that imports Snakemake, as its command does."""


def test_a_fork_does_not_import_snakemake_again_with_the_main_module(script: Callable[..., Path]) -> None:
    command = script(COMMAND, "command.py")
    about = script("import sys; print('known', sys.modules['__mp_main__'].known)")
    done = subprocess.run([sys.executable, str(command), str(about)], capture_output=True, text=True, check=True)
    assert "known True" in done.stdout
