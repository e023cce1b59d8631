"""A job that runs out of memory or room says what to do, computes with the threads that it was told, and measures itself."""

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from replication.runs.jobs import THREAD_VARIABLES, remove_finished_checkpoints, start_job
from replication.runs.resources import StageMeter, disk_mb


def on_the_gpu() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    """What a job says whose code raises."""

    def run(code: Callable[[], object]) -> str:
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setattr(gc, "freeze", lambda: None)  # for short processes, which this one is not
        start_job(tmp_path / "log", lower="training.batch_size")
        logging.captureWarnings(False)
        try:
            code()
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
        return caplog.text

    return run


@pytest.mark.parametrize(
    "code", [lambda: torch.empty(2**50), lambda: np.empty(2**50), on_the_gpu], ids=["torch", "numpy", "cuda"]
)
def test_out_of_memory_names_the_setting_to_lower(code: Callable[[], object], said: Callable[..., str]) -> None:
    assert "error: out of memory: lower training.batch_size; or run fewer jobs at once" in said(code)


POOLS = """
from replication.runs.jobs import use_threads
{before}
use_threads(2)
import numpy, sklearn.ensemble, torch
from threadpoolctl import threadpool_info
print(torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info()))
"""


@pytest.mark.parametrize("before", ["", "import numpy, torch, sklearn.ensemble"], ids=["not loaded", "loaded"])
def test_all_libraries_of_threads_get_one_number_whether_loaded_or_not(before: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    command = [sys.executable, "-c", POOLS.format(before=before)]
    done = subprocess.run(
        command, env=environment | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True
    )
    numbers = done.stdout.split()
    assert len(numbers) > 2  # torch, and the pools of at least two libraries
    assert set(numbers) == {"2"}


@pytest.mark.parametrize("last", ["run.json", "embedded.safetensors"])
def test_checkpoints_stay_until_the_last_file_of_a_run_is_there(tmp_path: Path, last: str) -> None:
    checkpoint = tmp_path / "mini/tuning/clai-m/seed0/checkpoint.pt"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    remove_finished_checkpoints(tmp_path)
    assert checkpoint.exists()
    (checkpoint.parent / last).touch()
    remove_finished_checkpoints(tmp_path)
    assert not checkpoint.exists()


def test_a_stage_measures_itself(tmp_path: Path) -> None:
    (tmp_path / "array.npy").write_bytes(bytes(2**20))
    StageMeter("prepare").write(
        str(tmp_path / "found.json"), disk_mb([tmp_path / "array.npy", tmp_path / "missing.npy"])
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["stage"], found["disk_mb"]) == ("prepare", 1.0)
    assert found["wall_seconds"] >= 0
    assert found["peak_memory_mb"] > 10
