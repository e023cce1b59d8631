"""A job computes with the threads that it was told, its failure is told last, and a finished run keeps no checkpoint."""

import os
from pathlib import Path

import pytest

from replication.runs.run import THREAD_VARIABLES, failures, remove_finished_checkpoints, write_checksums
from support.repository import REPOSITORY, run_script

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
    numbers = run_script(POOLS.format(before=before), **dict.fromkeys(THREAD_VARIABLES, "1")).split()
    assert len(numbers) > 2  # torch, and the pools of at least two libraries
    assert set(numbers) == {"2"}


@pytest.mark.parametrize(
    ("there", "last"),
    [
        ([], "run.json"),
        ([], "embedded.safetensors"),
        (["evaluation.json", "embedded.safetensors"], "run.json"),  # of an evaluated run that is trained again
    ],
)
def test_checkpoints_stay_until_the_last_file_of_a_run_is_there(tmp_path: Path, there: list[str], last: str) -> None:
    run = tmp_path / "mini/cifar10/clai-m/seed0"
    run.mkdir(parents=True)
    for file in ("checkpoint.pt", *there):
        (run / file).touch()
    remove_finished_checkpoints(tmp_path)
    assert (run / "checkpoint.pt").exists()
    (run / last).touch()
    remove_finished_checkpoints(tmp_path)
    assert not (run / "checkpoint.pt").exists()


def test_failed_jobs_end_with_their_own_words_and_not_with_those_of_jobs_that_a_retry_finished(tmp_path: Path) -> None:
    logs = {"killed": "12:00:00 epoch 1\n", "wrong": "12:00:00 epoch 1\n12:00:01 error: found a, expected b.\nand c\n"}
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
    error = "Error in rule {}:\n    message: None\n    jobid: {}\n    input: x\n    log: {} (check log file(s))\n"
    said = [error.format("a", 1, tmp_path / "wrong"), error.format("b", 2, tmp_path / "killed")]
    said += [error.format("c", 3, tmp_path / "none"), "Finished jobid: 3 (Rule: c)\n"]
    (tmp_path / "said").write_text("".join(said))
    assert failures([str(tmp_path / "said")]).splitlines() == [
        f"a failed ({tmp_path / 'wrong'}):", "error: found a, expected b.", "and c", "",
        f"b failed ({tmp_path / 'killed'}):", "ended without a message, as if it was killed",
    ]  # fmt: skip


def test_file_of_checksums_is_as_old_as_the_code_and_changes_with_its_content_alone(tmp_path: Path) -> None:
    code = REPOSITORY / "src" / "replication" / "runs"
    path = tmp_path / "code" / "some.sha256"
    write_checksums(path, [code / "run.py", code / "settings.py"])
    names = [line.split("  ")[1] for line in path.read_text().splitlines()]
    assert names == ["src/replication/runs/run.py", "src/replication/runs/settings.py"]
    assert path.stat().st_mtime == max((code / name).stat().st_mtime for name in ("run.py", "settings.py"))
    os.utime(path, (0, 0))
    write_checksums(path, [code / "settings.py", code / "run.py"])
    assert path.stat().st_mtime == 0, "left alone"
    path.write_text(path.read_text().replace("0", "1", 1))
    os.utime(path, (0, 0))
    write_checksums(path, [code / "settings.py", code / "run.py"])
    assert path.stat().st_mtime > 0
