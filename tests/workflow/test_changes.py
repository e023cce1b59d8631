"""What the workflow changes in Snakemake takes hold: a version with other names would ignore it, and be slower."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.copies import REPOSITORY

JOBS = 8
WATCHED = """
from collections import Counter

from snakemake.io import _IOFile
from snakemake.scheduling.job_scheduler import JobScheduler

asked = Counter()


def counted(name):
    plain = getattr(_IOFile, name)

    async def method(self, *arguments, **options):
        asked[f"{name} {self}"] += 1
        return await plain(self, *arguments, **options)

    setattr(_IOFile, name, method)


counted("size")
counted("checksum")


include: CHANGES


initialise = JobScheduler.__init__


def seen(self, *arguments, **options):
    initialise(self, *arguments, **options)
    asked["limit"] = int(self.job_rate_limiter is not None)


JobScheduler.__init__ = seen


onsuccess:
    for name, times in asked.items():
        print("asked", times, name)


rule all:
    input:
        expand("{n}.out", n=range(JOBS)),


rule one:
    input:
        "shared",
        "own/{n}",
    output:
        "{n}.out",
        "{n}.more",
    shell:
        "cat {input} > {output[0]}; touch {output[1]}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small workflow that includes the changes, and counts what Snakemake asks of files after them."""
    changes = REPOSITORY / "workflow" / "rules" / "changes.smk"
    text = WATCHED.replace("CHANGES", f'"{changes}"').replace("JOBS", str(JOBS))
    (tmp_path / "Snakefile").write_text(text)
    (tmp_path / "own").mkdir()
    for path in (tmp_path / "shared", *(tmp_path / "own" / str(n) for n in range(JOBS))):
        path.write_text(f"{path.name}\n")
    return tmp_path


def run(folder: Path, *options: str) -> Counter[str]:
    """Run all jobs, one after another; return how often Snakemake asked what."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", *options], cwd=folder, check=False, text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("asked ")]
    return Counter({name: int(times) for _, times, name in lines})


def test_files_are_measured_once_and_jobs_wait_for_no_rate(folder: Path) -> None:
    asked = run(folder)
    assert asked["limit"] == 0
    assert asked["size shared"] <= 2, (
        "once to choose the next jobs, once to look for a change; unchanged Snakemake asks 24 times"
    )
    assert asked["checksum shared"] == 1, "unchanged Snakemake asks twice a job"
    assert (folder / "3.out").read_text() == "shared\n3\n"


def test_an_input_that_changed_is_measured_again(folder: Path) -> None:
    run(folder)
    (folder / "shared").write_text("other\n")
    run(folder)
    assert (folder / "3.out").read_text() == "other\n3\n"
    assert not [name for name in run(folder) if name.startswith("size")], "nothing is left to do"


def test_checkpoints_of_finished_runs_go_where_nothing_is_left_to_do(folder: Path) -> None:
    finished, begun = (folder / "results" / name / "checkpoint.pt" for name in ("finished", "begun"))
    run(folder)  # Its own `onsuccess` removes no checkpoint.
    for path in (finished, begun):
        path.parent.mkdir(parents=True)
        path.touch()
    (finished.parent / "run.json").touch()
    run(folder, "--dry-run")
    run(folder, "--no-hooks")
    assert finished.exists()
    run(folder)
    assert not finished.exists()
    assert begun.exists()
