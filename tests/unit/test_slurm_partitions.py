"""What the profile for Slurm makes of `sinfo` and `sacct`."""

import os
import subprocess
from pathlib import Path

import pytest

from replication.runs import slurm

LISTED = """\
debug 30:00 (null)
long* infinite (null)
long* infinite gpu:a100:4(S:0-1)
day 1-00:00:00 (null)
night 12:30:00 gpu:2
down n/a (null)
"""


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listed").write_text(LISTED)
    program(tmp_path / "bin", "sinfo", f"/bin/cat {tmp_path}/listed")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("partition", "gpus", "minutes"),
    [(None, 1, None), ("long", 1, None), ("debug", 0, 30), ("day", 0, 1440), ("night", 1, 750), ("down", 0, None)],
)
def test_partition_offers_and_allows_what_sinfo_lists(partition: str | None, gpus: int, minutes: int | None) -> None:
    assert slurm.gpus_in(partition) == gpus
    assert slurm.minutes_in(partition) == minutes


@pytest.mark.parametrize("script", [None, "echo slurm_load_partitions: Unable to contact slurm controller >&2; exit 1"])
def test_without_slurm_there_is_no_gpu_and_no_limit(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is not None:
        program(tmp_path, "sinfo", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (slurm.gpus_in(None), slurm.minutes_in(None)) == (0, None)


def test_each_attempt_asks_for_more_minutes_up_to_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    def asked(expression: str) -> list[int]:
        return [eval(expression, {"attempt": attempt}) for attempt in (1, 2, 3)]  # as Snakemake does

    assert asked(slurm.runtime(240, None)) == [240, 480, 720]
    assert asked(slurm.runtime(240, 600)) == [240, 480, 600]
    assert capsys.readouterr().err == ""


def test_limit_below_the_first_attempt_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert [slurm.runtime(47, 11), slurm.runtime(47, 11)] == ["min(47 * attempt, 11)"] * 2
    said = capsys.readouterr().err
    assert said.count("ends jobs after 11 minutes, and some rules ask for 47: their jobs get 11") == 1
    assert "Name a partition with a longer limit" in said


PROFILE = Path(__file__).parents[2] / "profiles" / "slurm"


def test_state_of_a_cancelled_job_is_one_that_the_executor_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "sacct", "echo \"$*\"; printf '7|CANCELLED by 1000\\n8|COMPLETED\\n9|CANCELLED by 0\\n'")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    slurm.mend_states(str(PROFILE / "bin"))
    slurm.mend_states(str(PROFILE / "bin"))
    assert os.environ["PATH"].split(os.pathsep)[:2] == [str(PROFILE / "bin"), str(tmp_path)]
    said = subprocess.run(["sacct", "-X", "--name", "a b"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-X --name a b", "7|CANCELLED", "8|COMPLETED", "9|CANCELLED"]


def test_failure_of_sacct_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "sacct", "echo no database >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    slurm.mend_states(str(PROFILE / "bin"))
    run = subprocess.run(["sacct"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (3, "", "no database\n")
