"""The commands of the README set up what they need, whichever comes first."""

import os
import subprocess
from pathlib import Path

import pytest

from support.copies import Tree


def make(tree: Tree, *arguments: str) -> list[str]:
    """Lines that make prints, as if it was not itself called by the make that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=tree.path, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_make_in_a_fresh_clone_installs_and_then_runs(tree: Tree) -> None:
    *setting_up, run = make(tree, "--dry-run", "CORES=3")
    assert run == ".venv/bin/snakemake --cores 3 --quiet reason -- all"
    assert "--require-hashes -r envs/requirements.lock" in " ".join(setting_up)
    assert "--no-deps --no-build-isolation --no-index -e ." in " ".join(setting_up)


def installed(environment: Path, *stale: str) -> None:
    """Lay out an environment that make takes for installed, but for what is stale."""
    environment.mkdir()
    for name in (".packages", ".installed"):
        (environment / name).touch()
        time = 0 if name in stale else 2**32
        os.utime(environment / name, (time, time))


@pytest.mark.parametrize("stale", [".packages", ".installed"])
def test_an_environment_behind_a_link_is_left_alone(tree: Tree, tmp_path: Path, stale: str) -> None:
    installed(tmp_path / "other", stale, ".installed")
    (tree.path / ".venv").symlink_to(tmp_path / "other")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make(tree, "lint")
    assert ".venv is a link" in refused.value.stdout
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [".installed", ".packages"]
