"""Copies of the working tree, fresh or with the miniature pipeline run in them."""

import fcntl
import shutil
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from support.copies import Tree, copy_of_repository

ALONE = "test_chaos.py"
"""Its tests, each with a copy of its own, may run beside one another."""


class ByCopies(LoadFileScheduling):
    """Gives the tests of a file to one worker, because they share a copy; those of `ALONE` to any."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file.endswith(ALONE) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByCopies | None:
    """Divide the tests among workers by the copies that they share."""
    return ByCopies(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A fresh copy."""
    return copy_of_repository(tmp_path / "copy")


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy for tests that leave it as it was."""
    return copy_of_repository(tmp_path_factory.mktemp("shared") / "copy")


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Tree:
    """A copy in which `snakemake all` ran from nothing, tracked renderings included.

    It runs once. Of several workers that share the tests, each has its own copy of what it left.
    """
    own = tmp_path_factory.mktemp("miniature") / "copy"
    if worker_id == "master":
        return run_everything(own)
    common = tmp_path_factory.getbasetemp().parent / "miniature"
    with common.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not common.with_suffix(".done").exists():
            shutil.rmtree(common, ignore_errors=True)
            run_everything(common)
            common.with_suffix(".done").touch()
    shutil.copytree(common, own)
    return Tree(own)


def run_everything(folder: Path) -> Tree:
    """Run `snakemake all` from nothing in a copy of the repository."""
    tree = copy_of_repository(folder)
    shutil.rmtree(tree.path / "paper_figures", ignore_errors=True)
    run = tree.snakemake("--cores", "4", "all")
    assert run.returncode == 0, run.stdout[-20000:]
    return tree
