"""The commands of the README set up what they need, whichever comes first."""

import os
import subprocess

import pytest

from support.copies import Tree


def make(tree: Tree, *arguments: str) -> list[str]:
    """Lines that make prints, as if it was not itself called by the make that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=tree.path, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize(
    ("target", "last"),
    [
        ([], f".venv/bin/snakemake --cores {os.cpu_count()} all"),
        (["CORES=3"], ".venv/bin/snakemake --cores 3 all"),
        (["test"], '.venv/bin/python -m pytest --numprocesses auto -m "not slow" --dist loadfile tests/workflow'),
        (["test-all"], ".venv/bin/python -m pytest --numprocesses auto --dist loadfile tests/workflow"),
    ],
)
def test_make_in_a_fresh_clone_installs_and_then_runs(tree: Tree, target: list[str], last: str) -> None:
    *setting_up, run = make(tree, "--dry-run", *target)
    assert run == last
    assert "--require-hashes -r envs/requirements.lock" in " ".join(setting_up)
    assert "--no-deps --no-build-isolation --no-index -e ." in " ".join(setting_up)


def test_help_names_every_target(tree: Tree) -> None:
    text = (tree.path / "Makefile").read_text()
    (targets,) = [line.split()[1:] for line in text.splitlines() if line.startswith(".PHONY:")]
    assert [line.split()[1] for line in make(tree, "help")] == targets
