"""A job computes with the threads that it was told, and a finished run keeps no checkpoint."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replication.runs.run import THREAD_VARIABLES, remove_finished_checkpoints

POOLS = """
from replication.runs.run import use_threads
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
